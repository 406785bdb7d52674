"""The structs of heddle.h and heddle_compiler.h, field by field. tests/python/test_headers.py holds them against the C compiler."""
import ctypes as C

BF16, FP16, FP32 = 1, 2, 3
DTYPE_NAMES = {BF16: "bf16", FP16: "fp16", FP32: "fp32"}
OPERAND_POINTER, OPERAND_INT, OPERAND_FLOAT = 1, 2, 3
OPEN_ALLOW_FOREIGN_WRITERS, OPEN_IMMUTABLE = 1, 2
WITHOUT_GRAPH = 1  # of AttentionArgs
COMPILER_READ_ONLY, COMPILER_ALLOW_FOREIGN_WRITERS, COMPILER_FORCE_NETWORK = 1, 2, 4
ONLY_STORED, FIRST_SOON = 1, 2
MATCH_NAMES = ("exact", "nearest bucket", "same architecture", "untuned default", "none")


class Tensor(C.Structure):
    _fields_ = [("ptr", C.c_void_p), ("dtype", C.c_int32), ("reserved", C.c_int32), ("size", C.c_int64 * 4), ("stride", C.c_int64 * 4)]


class OperandValue(C.Union):
    _fields_ = [("ptr", C.c_void_p), ("i64", C.c_int64), ("f64", C.c_double)]


class Operand(C.Structure):
    _fields_ = [("id", C.c_int32), ("kind", C.c_int32), ("value", OperandValue)]


class AttentionArgs(C.Structure):
    _fields_ = [
        ("struct_size", C.c_uint32), ("flags", C.c_uint32), ("q", Tensor), ("k", Tensor), ("v", Tensor), ("out", Tensor), ("lse", C.c_void_p),
        ("q_origin", C.c_int64), ("k_origin", C.c_int64), ("cu_seqlens_q", C.c_void_p), ("cu_seqlens_k", C.c_void_p),
        ("seqused_k", C.c_void_p), ("page_table", C.c_void_p), ("page_size", C.c_int32), ("scale", C.c_float),
        ("descale_q", C.c_void_p), ("descale_k", C.c_void_p), ("descale_v", C.c_void_p), ("descale_q_stride", C.c_int64 * 2),
        ("descale_k_stride", C.c_int64 * 2), ("descale_v_stride", C.c_int64 * 2), ("carry_out", C.c_void_p), ("carry_lse", C.c_void_p),
        ("rng_seed", C.c_uint64), ("rng_offset", C.c_uint64), ("workspace", C.c_void_p), ("workspace_bytes", C.c_uint64),
        ("operands", C.POINTER(Operand)), ("operand_count", C.c_uint64)]


class KernelQuery(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("dtype", C.c_int32), ("pattern", C.c_char_p), ("kind", C.c_char_p), ("head_dim", C.c_int64),
                ("value_dim", C.c_int64), ("batch", C.c_int64), ("heads", C.c_int64), ("kv_heads", C.c_int64), ("seqlen_q", C.c_int64),
                ("tiles_per_row", C.c_int64)]


class KernelInfo(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("match", C.c_int32), ("content_key", C.c_char_p), ("arch", C.c_char_p),
                ("generator", C.c_char_p), ("config", C.c_char_p), ("note", C.c_char_p), ("registers", C.c_int64),
                ("spill_bytes", C.c_int64), ("shared_bytes", C.c_int64), ("param_count", C.c_int64), ("median_us", C.c_double)]


class PatternInfo(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("argument_count", C.c_int32), ("takes_q_origin", C.c_int32), ("reserved", C.c_int32),
                ("name", C.c_char_p), ("digest", C.c_char_p), ("text", C.c_char_p), ("notes", C.c_char_p)]


class PatternArgument(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("id", C.c_int32), ("kind", C.c_int32), ("has_default", C.c_int32), ("takes_length", C.c_int32),
                ("reserved", C.c_int32), ("name", C.c_char_p), ("type", C.c_char_p), ("doc", C.c_char_p), ("default_int", C.c_int64),
                ("min_int", C.c_int64), ("default_float", C.c_double), ("min_float", C.c_double), ("max_float", C.c_double)]


class CompilerOptions(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("flags", C.c_uint32), ("database", C.c_char_p), ("shipped", C.c_char_p),
                ("program", C.c_char_p), ("workers", C.c_int32), ("reserved", C.c_int32)]


class Problem(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("dtype", C.c_int32), ("kind", C.c_char_p), ("head_dim", C.c_int64), ("value_dim", C.c_int64),
                ("batch", C.c_int64), ("heads", C.c_int64), ("kv_heads", C.c_int64), ("seqlen_q", C.c_int64), ("seqlen_k", C.c_int64),
                ("q_origin", C.c_int64), ("k_origin", C.c_int64), ("operands", C.POINTER(Operand)), ("operand_count", C.c_uint64)]


class TuneOptions(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("verified_rows", C.c_int32), ("budget_seconds", C.c_double), ("strategy", C.c_char_p)]


def sized(struct, /, **fields):
    """A struct that says its own size."""
    return struct(struct_size=C.sizeof(struct), **fields)
