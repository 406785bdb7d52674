"""The C interface of heddle (runtime/Include/heddle.h) through ctypes: open a store, find a kernel, prepare, launch.

Tensors are anything with data_ptr(), shape and stride(), [batch, rows, heads, dim]; torch is not needed here.
"""
import ctypes as C
import importlib.util
import os


def _structs():
    """Declared once, in the Python package; of this repository, whatever package is installed."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found = importlib.util.spec_from_file_location("heddle_structs", os.path.join(root, "runtime", "Python", "heddle", "_structs.py"))
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


structs = _structs()
_FIELD_OF_OPERAND = {structs.OPERAND_POINTER: "ptr", structs.OPERAND_INT: "i64", structs.OPERAND_FLOAT: "f64"}


class HeddleError(RuntimeError):
    pass


def number_of(dtype):
    """The heddle_dtype of "bf16"."""
    return getattr(structs, dtype.upper())


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

    def find_kernel(self, store, device, workload, dtype="bf16", name=None, kind="forward"):
        query = structs.sized(structs.KernelQuery, dtype=number_of(dtype), pattern=(name or workload.name).encode(), head_dim=workload.head_dim,
                              value_dim=workload.head_dim, batch=workload.batch, heads=workload.heads, kv_heads=workload.kv,
                              seqlen_q=workload.rows, kind=kind.encode())
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
    return structs.Tensor(tensor.data_ptr(), number_of(dtype), 0, (C.c_int64 * 4)(*tensor.shape), (C.c_int64 * 4)(*tensor.stride()))


class Kernel:
    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def info(self):
        info = structs.sized(structs.KernelInfo)
        self.library.call("heddle_kernel_get_info", self.handle.pointer, C.byref(info))
        text = {name: (getattr(info, name) or b"").decode() for name in ("content_key", "arch", "generator", "config", "note")}
        return dict(text, match=structs.MATCH_NAMES[info.match], registers=info.registers, spill_bytes=info.spill_bytes,
                    shared_bytes=info.shared_bytes, tuned_us=info.median_us)

    def arguments(self, q, k, v, out, lse, sizes=(), dtype="bf16", tensors=()):
        """`tensors` are those of the pattern, in order, each with the length that the kernel asks for or None; `sizes` the
        values of its run-time sizes and numbers (float), in order, behind them."""
        given = [(i, structs.OPERAND_POINTER, tensor.data_ptr()) for i, (tensor, _) in enumerate(tensors)]
        given += [(i, structs.OPERAND_INT, length) for i, (_, length) in enumerate(tensors) if length is not None]
        given += [(i, structs.OPERAND_FLOAT if isinstance(size, float) else structs.OPERAND_INT, size) for i, size in enumerate(sizes, len(tensors))]
        operands = (structs.Operand * max(1, len(given)))()
        for operand, (number, kind, value) in zip(operands, given):
            operand.id, operand.kind = number, kind
            setattr(operand.value, _FIELD_OF_OPERAND[kind], value)
        args = structs.sized(structs.AttentionArgs)
        args.q, args.k, args.v, args.out = (describe(tensor, dtype) for tensor in (q, k, v, out))
        args.lse = lse.data_ptr()
        args.operands, args.operand_count = operands, len(given)
        return args

    @staticmethod
    def with_gradients(args, d_out, d_q, d_k, d_v, dtype="bf16"):
        """Of a forward call, for one of kind backward: out and lse are read."""
        args.d_out, args.d_q, args.d_k, args.d_v = (describe(tensor, dtype) for tensor in (d_out, d_q, d_k, d_v))
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
