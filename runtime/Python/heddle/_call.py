"""One call: its tensors as views, checked, and the argument struct of heddle.h that stands for it."""
import ctypes as C
import math
import numbers
import operator
from typing import Any, NamedTuple, Optional, Tuple

from . import _engine, _header, _library
from . import _structs as S
from .errors import InvalidArgumentError, UnsupportedError

_DIMS = ("batch", "row", "head", "dim")
_ELEMENT_BYTES = {S.BF16: 2, S.FP16: 2, S.FP32: 4}


class CallSpec(NamedTuple):
    """What a call was given, as heddle.attention takes it."""
    q: Any
    k: Any
    v: Any
    pattern: Any
    scale: Optional[float] = None
    out: Any = None
    lse: Any = None
    q_origin: Optional[int] = None
    k_origin: int = 0
    carry: Optional[Tuple[Any, Any]] = None
    stream: Optional[int] = None
    arguments: dict = {}

    def refuse_unclear(self, what, **others):
        """Of the pattern: `others` are what the call takes beside these."""
        options = dict(scale=self.scale, out=self.out, lse=self.lse, q_origin=self.q_origin, k_origin=self.k_origin or None, carry=self.carry,
                       stream=self.stream, **others)
        self.pattern.refuse_unclear(what, [name for name, value in options.items() if value is not None])


class View(NamedTuple):
    """A tensor in memory, whoever owns it. Strides in elements; `device`: the number of the GPU, None for host memory."""
    ptr: int
    dtype: str  # bf16, fp16, fp32, i32, i64, ... as the adapters spell it
    shape: Tuple[int, ...]
    stride: Tuple[int, ...]
    device: Optional[int]


_CODES = {"bf16": S.BF16, "fp16": S.FP16, "fp32": S.FP32}
_MLIR_TYPES = {"bf16": "bf16", "f16": "fp16", "f32": "fp32", "i32": "i32", "i64": "i64"}


def bad(what):
    return InvalidArgumentError(f"attention arguments: {what}")


def place(device):
    return "host memory" if device is None else f"GPU {device}"


class Inputs(NamedTuple):
    """What a call reads: views, and the values of sizes and numbers of the pattern. `tensors`: by the names of its arguments."""
    q: View
    k: View
    v: View
    tensors: dict
    carry: Optional[list]
    values: dict

    @property
    def shape(self):
        """Of out."""
        return (*self.q.shape[:3], self.v.shape[3])

    @property
    def lse_shape(self):
        return (self.q.shape[0], self.q.shape[2], self.q.shape[1])


def inputs_of(spec, view):
    """Checked against each other. `view` makes one of a tensor and its name."""
    values, tensors = call_values(spec.pattern, spec.arguments)
    q, k, v = (view(getattr(spec, name), name) for name in ("q", "k", "v"))
    check_tensors(q, k, v)
    carry = None if spec.carry is None else [view(each, f"carry: {name}") for name, each in zip(("out", "lse"), spec.carry)]
    return Inputs(q, k, v, {name: view(each, name) for name, each in tensors.items()}, carry, values)


def check_tensors(q, k, v):
    """Ranks, dtypes, devices and sizes that have to agree, before a kernel is looked for."""
    for name, view in (("q", q), ("k", k), ("v", v)):
        if len(view.shape) != 4:
            raise bad(f"{name}: expected 4 dimensions (batch, row, head, dim), got {len(view.shape)}")
        if view.dtype not in _CODES:
            raise bad(f"{name}: dtype: expected bf16, fp16 or fp32, got {view.dtype}")
        if view.shape[3] > 1 and view.stride[3] != 1 and 0 not in view.shape:
            raise bad(f"{name}: stride of dim: expected 1, got {view.stride[3]}; make the tensor contiguous in dim")
    for name, view in (("k", k), ("v", v)):
        if view.dtype != q.dtype:
            raise bad(f"{name}: dtype: expected {q.dtype} as q, got {view.dtype}")
        check_place(name, view, q.device)
    (batch, _, heads, head_dim), (_, keys, kv_heads, _) = q.shape, k.shape
    check_sizes("k", k, (batch, keys, kv_heads, head_dim))
    check_sizes("v", v, (batch, keys, kv_heads, v.shape[3]))
    if heads > 0 and (kv_heads == 0 or heads % kv_heads):
        raise bad(f"k: size of head: expected a divisor of the {heads} query heads, got {kv_heads}")


def check_sizes(name, view, expected):
    for dim, want, got in zip(_DIMS, expected, view.shape):
        if want != got:
            raise bad(f"{name}: size of {dim}: expected {want}, got {got}")


def check_results(inputs, out, lse):
    """Of results that the caller brings."""
    q = inputs.q
    if out is not None:
        if len(out.shape) != 4:
            raise bad(f"out: expected 4 dimensions (batch, row, head, dim), got {len(out.shape)}")
        if q.device is None and out.dtype != q.dtype:
            raise bad(f"out: dtype: expected {q.dtype} as q (fp32 beside bf16 is for a GPU), got {out.dtype}")
        if out.dtype not in (q.dtype, "fp32"):
            raise bad(f"out: dtype: expected {q.dtype} or fp32, got {out.dtype}")
        check_sizes("out", out, inputs.shape)
        check_place("out", out, q.device)
    if lse is not None:
        expected = inputs.lse_shape
        if lse.dtype != "fp32" or tuple(lse.shape) != expected or not is_row_major(lse):
            raise bad(f"lse: expected row-major fp32 of {list(expected)} (batch, heads, seqlen_q), got {lse.dtype} of {list(lse.shape)}")
        check_place("lse", lse, q.device)


def pair_of(carry):
    """out and lse of an earlier call, which this one continues."""
    if not isinstance(carry, (tuple, list)) or len(carry) != 2:
        raise bad(f"carry: expected (out, lse) of an earlier call, got {type(carry).__name__}")
    return carry


def check_carry(inputs):
    """Kernels read it as rows behind one another."""
    shapes = inputs.shape, inputs.lse_shape
    words = "(batch, seqlen_q, heads, value_dim); have the earlier call write it into an out= of fp32", "(batch, heads, seqlen_q)"
    for name, view, shape, meant in zip(("out", "lse"), inputs.carry, shapes, words):
        if view.dtype != "fp32" or tuple(view.shape) != shape or not is_row_major(view):
            raise bad(f"carry: {name}: expected row-major fp32 of {list(shape)} {meant}, got {view.dtype} of {list(view.shape)}")
        check_place(f"carry: {name}", view, inputs.q.device)


def check_apart(args):
    """Rows that are written may be read again by then: neither can a carry be continued in place, nor a result replace an input."""
    for name, written in (("out", args.out.ptr), ("lse", args.lse)):
        for read, tensor in (("q", args.q), ("k", args.k), ("v", args.v)):
            if written and tensor.ptr == written and 0 not in tensor.size[:]:
                raise bad(f"{name}: expected memory apart from {read}, which is still read when it is written, got the same address")
    if args.lse and args.lse == args.out.ptr and 0 not in args.out.size[:]:
        raise bad("lse: expected memory apart from out, got the same address")
    for name, carried, written in (("out", args.carry_out, args.out.ptr), ("lse", args.carry_lse, args.lse)):
        if carried and carried == written:
            raise bad(f"carry: {name}: expected memory apart from the {name} that this call writes, got the same address")


def check_place(name, view, device):
    """`device`: of q."""
    if view.device != device:
        raise bad(f"{name}: expected a tensor in {place(device)} as q, got one in {place(view.device)}")


def is_row_major(view):
    step = 1
    for extent, stride in zip(reversed(view.shape), reversed(view.stride)):
        if extent != 1 and stride != step and 0 not in view.shape:
            return False
        step *= extent
    return True


def check_operand(pattern, argument, view, q, k):
    """A tensor that the pattern reads, against its type and the call."""
    extents, element = _header.extents_of(argument.type)
    name = f"pattern {pattern.name}: {argument.name}"
    if view.dtype != _MLIR_TYPES.get(element, element):
        raise InvalidArgumentError(f"{name}: dtype: expected {element}, got {view.dtype}")
    if len(view.shape) != len(extents):
        raise InvalidArgumentError(f"{name}: expected {len(extents)} dimension{'' if len(extents) == 1 else 's'} ({argument.type}), got {len(view.shape)}")
    if view.device != q.device:
        raise InvalidArgumentError(f"{name}: expected a tensor in {place(q.device)} as q, got one in {place(view.device)}")
    batch, rows, heads, _ = q.shape
    # What ? stands for, by rank: biases, index lists, relative tables, one number per head.
    calls = {4: (batch, heads, rows, k.shape[1]), 3: (batch, heads, None), 2: (heads, None), 1: (None if argument.takes_length else heads,)}
    for number, (extent, size, got) in enumerate(zip(extents, calls.get(len(extents), ()), view.shape)):
        expected = extent if extent != -1 else size
        if expected is not None and got != expected:
            raise InvalidArgumentError(f"{name}: size of dimension {number}: expected {expected}, got {got}")
    if not is_row_major(view):
        raise InvalidArgumentError(f"{name}: expected a row-major tensor, got strides {list(view.stride)} of {list(view.shape)}")


def call_values(pattern, given):
    """Values of all sizes and numbers of the pattern, checked, and its tensors: those of the call over those of the pattern."""
    tensors, values = {}, {}
    for name, value in given.items():
        if pattern.argument(name).kind == "tensor":
            tensors[name] = value
        else:
            values[name] = pattern.checked(name, value)
    for argument in pattern.arguments:
        if argument.kind == "tensor":
            if argument.name not in tensors:
                raise InvalidArgumentError(f"pattern {pattern.name}: {argument.name}: expected a tensor ({argument.type}), none is given")
        elif argument.name not in values:
            value = pattern.default_of(argument)
            if value is None:
                raise InvalidArgumentError(f"pattern {pattern.name}: {argument.name}: expected a value, it has no default")
            values[argument.name] = value
    return values, tensors


def _describe(tensor, view):
    tensor.ptr, tensor.dtype = view.ptr, _CODES[view.dtype]
    tensor.size[:], tensor.stride[:] = view.shape, view.stride


class Call:
    """The argument struct of calls with these sizes, strides and values; only addresses change. Not for two threads at once."""

    def __init__(self, spec, inputs, out):
        """`out`: a view."""
        check_results(inputs, out, None)
        if inputs.carry is not None:
            check_carry(inputs)
        q, k, v = inputs[:3]
        self.pattern, self.values, self.device = spec.pattern, inputs.values, q.device
        pattern = spec.pattern
        self.lse_shape = inputs.lse_shape
        self.args = args = S.sized(S.AttentionArgs)
        for tensor, view in ((args.q, q), (args.k, k), (args.v, v), (args.out, out)):
            _describe(tensor, view)
        args.q_origin, args.k_origin = _origin(pattern, spec.q_origin), _position("k_origin", spec.k_origin)
        args.scale = _scale(spec.scale)
        args.carry_out, args.carry_lse = (view.ptr for view in inputs.carry) if inputs.carry is not None else (None, None)
        for name, view in inputs.tensors.items():
            check_operand(pattern, pattern.argument(name), view, q, k)
        self._set_operands(inputs.tensors)
        self.reference = C.byref(args)
        self.kind = b"forward_fp32_out" if out.dtype != q.dtype else None
        self._sizes = dict(batch=q.shape[0], heads=q.shape[2], kv_heads=k.shape[2], seqlen_q=q.shape[1], seqlen_k=k.shape[1],
                           q_origin=args.q_origin, k_origin=args.k_origin)
        self._dims = (q.shape[3], v.shape[3])

    def _set_operands(self, tensors):
        self.lengths = lengths = {name: view.shape[-1] for name, view in tensors.items() if self.pattern.argument(name).takes_length}
        operands = (S.Operand * max(1, len(tensors) + len(lengths) + len(self.values)))()
        places = iter(operands)
        self.tensor_operands = {}
        for name, view in tensors.items():
            operand = self.tensor_operands[name] = next(places)
            operand.id, operand.kind, operand.value.ptr = self.pattern.argument(name).id, S.OPERAND_POINTER, view.ptr
        for name, value in (*lengths.items(), *self.values.items()):
            _engine.set_operand(next(places), self.pattern.argument(name), value)
        self.args.operands, self.args.operand_count = operands, len(operands) if tensors or self.values else 0

    def question(self):
        return _engine.Question(self.pattern, self.device, self.args.q.dtype, self.kind, *self._dims, self._sizes,
                                {**self.lengths, **self.values})

    def workspace_bytes(self, kernel):
        needed = C.c_uint64()
        self.args.lse = self.args.lse or self.args.out.ptr  # some address: only sizes count here
        _engine.engine().library.call("heddle_kernel_workspace", kernel.handle, self.reference, C.byref(needed))
        return needed.value


def _origin(pattern, q_origin):
    if pattern.takes_q_origin:
        if q_origin is None:
            raise bad(f"q_origin: pattern {pattern.name} takes the position of query 0, none is given")
        return _position("q_origin", q_origin)
    if q_origin is not None:
        raise bad(f"q_origin: pattern {pattern.name} takes none, only patterns with q_origin(given) do; got {q_origin}")
    return 0


def _position(name, value):
    """An int of 32 bits: ctypes would cut longer ones off."""
    try:
        position = operator.index(value)
    except TypeError:
        raise bad(f"{name}: expected an int, got {value!r}") from None
    if not -2**31 <= position < 2**31:
        raise bad(f"{name}: expected 32 bits, got {position}")
    return position


def _scale(scale):
    """As f32; 0 stands for None, so no number may become 0 on the way."""
    if scale is None:
        return 0.0
    is_number = isinstance(scale, numbers.Real) and not isinstance(scale, bool)
    value = _float(scale) if is_number else math.nan
    if not math.isfinite(value) or not 0 < C.c_float(value).value < math.inf:
        raise bad(f"scale: expected a finite number above 0 (or None for 1 / sqrt(head_dim)), got {scale!r}")
    return value


def _float(number):
    """Infinity for ints that no float reaches."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def no_copy(prepared):
    """The __reduce__ of prepared calls."""
    raise UnsupportedError("a prepared call stands for its tensors where they are: it cannot be pickled or copied, heddle.prepare makes another")


def stream_address(stream):
    """An address; None and 0 are the default stream."""
    try:
        address = operator.index(0 if stream is None else stream)
    except TypeError:
        raise bad(f"stream: expected an address (an int; None for the default stream), got {stream!r}") from None
    if not 0 <= address < 2**64:
        raise bad(f"stream: expected an address (an int; None for the default stream), got {address}")
    return address


class Frozen:
    """A prepared call of the C interface. Whoever makes it keeps the kernel and the tensors.

    It may be closed while its launches are queued: kernels stay loaded until the process ends, and the driver frees a graph that runs
    once it has run (cuGraphExecDestroy). Their memory is what has to outlive them.
    """

    def __init__(self, library, kernel, args):
        args.flags = _engine.prepare_flags()
        self._library = library
        self._handle = library.opened("heddle_prepare", kernel.handle, C.byref(args))
        self._pointer = C.c_void_p(self._handle)
        self._launch = library.quick("heddle_prepared_launch")

    def launch(self, stream):
        status = self._launch(self._pointer, stream)
        if status:
            raise self._library.error(status)

    def close(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            self._library.close("prepared", handle)

    def __del__(self):
        try:
            self.close()
        except (AttributeError, TypeError):
            pass  # half made, or the interpreter is ending


def run_on_host(call):
    library = _library.compiler_library("attention on the processor")
    library.call("heddle_cpu_attention", call.pattern.handle, call.reference, _engine.threads())
