"""The C interface of heddle (runtime/Include/heddle.h) through ctypes: open a store, find a kernel, prepare, launch.

Tensors are anything with data_ptr(), shape and stride(), [batch, rows, heads, dim]; torch is not needed here.
"""
import ctypes as C

DTYPES = {"bf16": 1, "fp16": 2, "fp32": 3}
MATCHES = ("exact", "nearest bucket", "same architecture", "untuned default", "none")


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
    _fields_ = [("struct_size", C.c_uint32), ("match", C.c_int32), ("content_key", C.c_char_p), ("arch", C.c_char_p), ("generator", C.c_char_p),
                ("config", C.c_char_p), ("note", C.c_char_p), ("registers", C.c_int64), ("spill_bytes", C.c_int64),
                ("shared_bytes", C.c_int64), ("param_count", C.c_int64), ("median_us", C.c_double)]


OPERAND_POINTER, OPERAND_INT, OPERAND_FLOAT = 1, 2, 3


class HeddleError(RuntimeError):
    pass


class Library:
    """libheddle_runtime.so; every failing call raises HeddleError with the library's own message."""

    def __init__(self, path):
        self.lib = C.CDLL(path)
        self.launch = C.PyDLL(path).heddle_prepared_launch  # short: giving up the interpreter's lock would cost more
        self.launch.argtypes, self.launch.restype = (C.c_void_p, C.c_void_p), C.c_int
        self.lib.heddle_last_message.restype = C.c_char_p
        self.lib.heddle_status_name.restype = C.c_char_p
        self.lib.heddle_version.restype = C.c_char_p
        for name in ("store", "device", "kernel", "prepared"):
            close = getattr(self.lib, f"heddle_{name}_close")
            close.argtypes, close.restype = [C.c_void_p], None

    def call(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status:
            message = self.lib.heddle_last_message().decode()
            raise HeddleError(f"{name}: {self.lib.heddle_status_name(status).decode()}: {message}")

    def version(self):
        return self.lib.heddle_version().decode()

    def open_device(self, ordinal=-1):
        """-1: the GPU whose context is current on this thread, so make torch's current first."""
        return self._open("device", "heddle_device_open", C.c_int32(ordinal))

    def open_store(self, path):
        return self._open("store", "heddle_store_open", path.encode(), C.c_uint32(0))

    def find_kernel(self, store, device, workload, dtype="bf16", name=None):
        query = KernelQuery(C.sizeof(KernelQuery), DTYPES[dtype], (name or workload.name).encode(), None, workload.head_dim,
                            workload.head_dim, workload.batch, workload.heads, workload.kv, workload.rows, 0)
        return Kernel(self, self._open("kernel", "heddle_kernel_find", store.pointer, device.pointer, C.byref(query)))

    def _open(self, kind, function, *arguments):
        pointer = C.c_void_p()
        self.call(function, *arguments, C.byref(pointer))
        return Handle(self, kind, pointer)


class Handle:
    def __init__(self, library, kind, pointer):
        self.library, self.kind, self.pointer = library, kind, pointer

    def close(self):
        if self.pointer:
            getattr(self.library.lib, f"heddle_{self.kind}_close")(self.pointer)
            self.pointer = None


def describe(tensor, dtype):
    return Tensor(tensor.data_ptr(), DTYPES[dtype], 0, (C.c_int64 * 4)(*tensor.shape), (C.c_int64 * 4)(*tensor.stride()))


class Kernel:
    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def info(self):
        info = KernelInfo(C.sizeof(KernelInfo))
        self.library.call("heddle_kernel_get_info", self.handle.pointer, C.byref(info))
        text = {name: (getattr(info, name) or b"").decode() for name in ("content_key", "arch", "generator", "config", "note")}
        return dict(text, match=MATCHES[info.match], registers=info.registers, spill_bytes=info.spill_bytes,
                    shared_bytes=info.shared_bytes, tuned_us=info.median_us)

    def arguments(self, q, k, v, out, lse, sizes=(), dtype="bf16", tensors=()):
        """`tensors` are those of the pattern, in order, each with the length that the kernel asks for or None; `sizes` the
        values of its run-time sizes and numbers (float), in order, behind them."""
        given = [(i, OPERAND_POINTER, tensor.data_ptr()) for i, (tensor, _) in enumerate(tensors)]
        given += [(i, OPERAND_INT, length) for i, (_, length) in enumerate(tensors) if length is not None]
        given += [(i, OPERAND_FLOAT if isinstance(size, float) else OPERAND_INT, size) for i, size in enumerate(sizes, len(tensors))]
        operands = (Operand * max(1, len(given)))()
        for operand, (number, kind, value) in zip(operands, given):
            operand.id, operand.kind = number, kind
            setattr(operand.value, {OPERAND_POINTER: "ptr", OPERAND_INT: "i64", OPERAND_FLOAT: "f64"}[kind], value)
        args = AttentionArgs()
        args.struct_size = C.sizeof(AttentionArgs)
        args.q, args.k, args.v, args.out = (describe(tensor, dtype) for tensor in (q, k, v, out))
        args.lse = lse.data_ptr()
        args.operands, args.operand_count = operands, len(given)
        return args

    def workspace_bytes(self, args):
        needed = C.c_uint64()
        self.library.call("heddle_kernel_workspace", self.handle.pointer, C.byref(args), C.byref(needed))
        return needed.value

    def prepare(self, args, stream=0):
        """A callable that launches on the stream. The tensors behind `args` must outlive it."""
        prepared = self.library._open("prepared", "heddle_prepare", self.handle.pointer, C.byref(args))
        launch, pointer, stream_pointer = self.library.launch, prepared.pointer, C.c_void_p(stream)

        def run():
            if launch(pointer, stream_pointer):
                raise HeddleError(self.library.lib.heddle_last_message().decode())

        run.keep = (prepared, self)
        return run
