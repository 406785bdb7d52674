"""One call: its tensors as views, checked, and the argument struct of heddle.h that stands for it."""
import ctypes as C
from typing import NamedTuple, Optional, Tuple

from . import _elements, _engine, _header, _kinds, _library, _scalars, _scales
from . import _structs as S
from ._options import bad, checked_scale, position, stream_address, with_numbers  # noqa: F401 - of this module for its users
from ._specs import CallSpec, GradientSpec  # noqa: F401 - of this module for its users
from .errors import InvalidArgumentError, UnsupportedError

_DIMS = ("batch", "row", "head", "dim")
_KEY_MAJOR_DIMS = ("batch", "dim", "head", "row")


class View(NamedTuple):
    """A tensor in memory, whoever owns it. Strides in elements; `device`: the number of the GPU, None for host memory."""
    ptr: int
    dtype: str  # bf16, fp16, fp32, i32, i64, ... as the adapters spell it
    shape: Tuple[int, ...]
    stride: Tuple[int, ...]
    device: Optional[int]


NOWHERE = 4096  # address of what has no elements, and none of its own: null says that nothing is given


def place(device):
    return "host memory" if device is None else f"GPU {device}"


class Inputs(NamedTuple):
    """What a call of a kind reads: views by role, the sizes that they give, and of the pattern the tensors, by the names of its
    arguments, and the values of sizes and numbers."""
    kind: _kinds.Kind
    views: dict
    sizes: dict
    tensors: dict
    values: dict

    @property
    def first(self):
        """The tensor that the others are held against."""
        return self.views[self.kind.read[0].name]

    def shape(self, name):
        return next(role for role in self.kind.roles if role.name == name).shape(self.sizes)


def inputs_of(spec, view, kind):
    """Checked against each other. `view` makes one of a tensor and its name."""
    values, tensors = call_values(spec.pattern, spec.arguments, kind.has_parts)
    given = spec.given()
    inputs = Inputs(kind, {}, {}, {}, values)
    for role in kind.read:
        if role.name in given:
            found = view(given[role.name], role.label)
            if role.name == "v" and _lies_key_major(found) and _kinds.key_major(kind):
                inputs, found = inputs._replace(kind=_kinds.key_major(kind)), turned(found)
                role = next(each for each in inputs.kind.read if each.name == "v")
            inputs.views[role.name] = found
            _check(role, found, inputs)
    heads, kv_heads = inputs.sizes["heads"], inputs.sizes.get("kv_heads")
    if kv_heads is not None and heads > 0 and (kv_heads == 0 or heads % kv_heads):
        of = next(role.name for role in kind.read if "kv_heads" in role.extents)
        raise bad(f"{of}: size of head: expected a divisor of the {heads} query heads, got {kv_heads}")
    if kind.has_pages:
        inputs.sizes["seqlen_k"] = inputs.sizes.get("max_pages", 1) * inputs.sizes["page_size"]
    _scales.set_rows(inputs, getattr(spec, "scale_rows", None))
    inputs.tensors.update((name, view(each, name)) for name, each in tensors.items())
    return inputs


def _lies_key_major(view):
    """Elements of bytes whose keys, not dimensions, are neighbours in memory."""
    return view.dtype == "e4m3" and len(view.shape) == 4 and view.shape[3] > 1 and view.stride[3] != 1 and view.stride[1] == 1


def turned(view):
    """With rows and dimensions exchanged."""
    def exchanged(each):
        return (each[0], each[3], each[2], each[1])
    return view._replace(shape=exchanged(view.shape), stride=exchanged(view.stride))


def check_results(inputs, views):
    """Of results that the caller brings, by role."""
    for role in inputs.kind.written:
        if role.name in views:
            _check(role, views[role.name], inputs)


def _check(role, view, inputs):
    """Rank, dtype, device and sizes of one tensor; sizes that are not known yet are those of this one."""
    if not role.is_tensor:
        return _check_array(role, view, inputs)
    if len(view.shape) != 4:
        raise bad(f"{role.label}: expected 4 dimensions (batch, row, head, dim), got {len(view.shape)}")
    _check_dtype(role, view, inputs)
    if not role.is_written and view.shape[3] > 1 and view.stride[3] != 1 and 0 not in view.shape:
        raise bad(f"{role.label}: stride of dim: expected 1, got {view.stride[3]}; make the tensor contiguous in dim")
    check_place(role.label, view, inputs.first.device)
    for dim, extent, got in zip(_DIMS if role.extents[3] != "seqlen_k" else _KEY_MAJOR_DIMS, role.extents, view.shape):
        expected = inputs.sizes.setdefault(extent, got)
        if expected != got:
            raise bad(f"{role.label}: size of {'page' if extent == 'pages' else dim}: expected {expected}, got {got}")


def _check_dtype(role, view, inputs):
    first, of = inputs.first, inputs.kind.read[0]
    is_as_first = role.element == of.element or role.element in ("k", "v") and of.element == "q"
    if role.element in ("fp32", "e4m3"):
        if view.dtype != role.element:
            why = ", which the gradient is added to" if role.element == "fp32" else ""
            raise bad(f"{role.label}: dtype: expected {role.element}{why}, got {view.dtype}")
        return
    if is_as_first and view.dtype not in _elements.numbers():
        raise bad(f"{role.label}: dtype: expected {_elements.listed()}, got {view.dtype}")
    if is_as_first and role.element != of.element:
        return _check_keys(role, view, inputs)
    if is_as_first:
        allowed = (first.dtype,)
    elif first.device is None and not inputs.kind.writes("out"):
        allowed = (_elements.of_out(first.dtype).name,)
    else:
        allowed = _elements.outs(first.dtype)
    if view.dtype in allowed:
        return
    *others, last = allowed
    as_first = f" as {of.name}" if not others and last == first.dtype else ""
    raise bad(f"{role.label}: dtype: expected {', '.join(others)}{' or ' if others else ''}{last}{as_first}, got {view.dtype}")


def _check_keys(role, view, inputs):
    """k is as q, or of fewer bits where the kind has scales for it; v is as k."""
    first, name = inputs.first.dtype, inputs.kind.read[0].name
    keys = inputs.views["k"].dtype if role.element == "v" else view.dtype
    mixed = keys != first and inputs.kind.takes_scales and keys in _elements.keys(first)
    expected = keys if mixed else first
    if view.dtype != expected:
        raise bad(f"{role.label}: dtype: expected {expected}{'' if mixed else f' as {name}'}, got {view.dtype}")


def _check_array(role, view, inputs):
    """Kernels read and write it as rows behind one another. Sizes that only arrays have are those of the first one."""
    extents = role.extents_of(len(view.shape))
    if extents != role.extents and inputs.sizes.setdefault(role.may_lack, 1) > 1:
        extents = role.extents
    for extent, got in zip(extents, view.shape):
        inputs.sizes.setdefault(extent, got - role.is_offsets)
    shape = tuple(inputs.sizes.get(extent, 0) + role.is_offsets for extent in extents)
    is_other = view.dtype != role.element or tuple(view.shape) != shape
    if is_other or not is_row_major(view):
        how = "; have the earlier call write it into an out= of fp32" if is_other and role.name == "carry_out" else ""
        strides = "" if is_other else f" with strides {list(view.stride)} in the place of {list(row_major(shape))}"
        raise bad(f"{role.label}: expected row-major {role.element} of {list(shape)} ({', '.join(extents)}){how}, got {view.dtype} of {list(view.shape)}{strides}")
    check_place(role.label, view, inputs.first.device)


def pair_of(carry):
    """out and lse of an earlier call, which this one continues."""
    if not isinstance(carry, (tuple, list)) or len(carry) != 2:
        raise bad(f"carry: expected (out, lse) of an earlier call, got {type(carry).__name__}")
    return carry


def three_of(add_to):
    """d_q, d_k and d_v, which a call adds to."""
    if not isinstance(add_to, (tuple, list)) or len(add_to) != 3:
        raise bad(f"add_to: expected (d_q, d_k, d_v), got {type(add_to).__name__}")
    return tuple(add_to)


def check_place(name, view, device):
    """`device`: of q."""
    if view.device != device:
        raise bad(f"{name}: expected a tensor in {place(device)} as q, got one in {place(view.device)}")


def row_major(shape):
    """The strides of rows behind one another."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def is_row_major(view):
    step = 1
    for extent, stride in zip(reversed(view.shape), reversed(view.stride)):
        if extent != 1 and stride != step and 0 not in view.shape:
            return False
        step *= extent
    return True


def _extents(pattern, values, inputs):
    """What sizes of tensors stand for: batch, heads, rows of queries, keys. In parts keys are those of the whole, and rows, of which the library
    wants enough, those of the call and others behind them."""
    lead = "sequences" if "sequences" in inputs.sizes else "batch"  # rows of several sequences are a batch of one
    batch, heads, rows, keys = (inputs.sizes[size] for size in (lead, "heads", "seqlen_q", "seqlen_k"))
    if sum(each.of_whole for each in pattern.arguments) >= 2:
        rows, keys = None, values.get("whole_columns", values.get("whole_keys"))
    return batch, heads, rows, keys


def check_operand(pattern, argument, view, device, call):
    """A tensor that the pattern reads, against its type and the call: where q lies, and (batch, heads, rows of queries, keys), None for any."""
    extents, element = _header.extents_of(argument.type)
    name = f"pattern {pattern.name}: {argument.name}"
    if view.dtype != _elements.of_pattern(element):
        raise InvalidArgumentError(f"{name}: dtype: expected {element}, got {view.dtype}")
    if len(view.shape) != len(extents):
        raise InvalidArgumentError(f"{name}: expected {len(extents)} dimension{'' if len(extents) == 1 else 's'} ({argument.type}), got {len(view.shape)}")
    if view.device != device:
        raise InvalidArgumentError(f"{name}: expected a tensor in {place(device)} as q, got one in {place(view.device)}")
    batch, heads, _, _ = call
    # What ? stands for, by rank: biases, index lists, relative tables and, of integers, trees of drafts, one number per head.
    of_two = batch if element.startswith("i") else heads
    sizes = {4: call, 3: (batch, heads, None), 2: (of_two, None), 1: (None if argument.takes_length else heads,)}
    for number, (extent, size, got) in enumerate(zip(extents, sizes.get(len(extents), ()), view.shape)):
        if (expected := size if extent == -1 else extent) not in (None, got):
            raise InvalidArgumentError(f"{name}: size of dimension {number}: expected {expected}, got {got}")
    if not is_row_major(view):
        raise InvalidArgumentError(f"{name}: expected a row-major tensor, got strides {list(view.stride)} of {list(view.shape)}")


def call_values(pattern, given, has_parts=False, may_lack=lambda argument: False):
    """Values of all sizes and numbers of the pattern, checked, and its tensors: those of the call over those of the pattern. `has_parts`: without
    those of the whole. `may_lack`: tensors that may be missing."""
    tensors, values = {}, {}
    for name, value in given.items():
        if has_parts and pattern.argument(name).of_whole:
            raise InvalidArgumentError(f"pattern {pattern.name}: {name}: each sequence says it (whole_k), got a value for all of them")
        if pattern.argument(name).kind == "tensor":
            tensors[name] = value
        else:
            values[name] = pattern.checked(name, value)
    for argument in pattern.arguments:
        if argument.kind == "tensor":
            if argument.name not in tensors and not may_lack(argument):
                raise InvalidArgumentError(f"pattern {pattern.name}: {argument.name}: expected a tensor ({argument.type}), none is given")
        elif argument.name not in values and not (has_parts and argument.of_whole):
            value = pattern.default_of(argument)
            if value is None:
                raise InvalidArgumentError(f"pattern {pattern.name}: {argument.name}: expected a value, it has no default")
            values[argument.name] = value
    return values, tensors


def kind_text(kind, spec, gradients_of, dtype, **elements):
    """As questions about kernels name it; `dtype`: of q."""
    return kind.text({spec.pattern.argument(name).id for name in gradients_of}, precision=precision_of(spec.precision, kind, dtype), **elements)


def precision_of(precision, kind, dtype):
    """That a call has with q of this type; None: what is usual where lse is not asked for."""
    if precision is None:
        return _kinds.usual_without_lse(kind, dtype)
    others = _kinds.precisions()
    if precision != _kinds.EXACT and precision not in others:
        *names, last = map(repr, (_kinds.EXACT, *others))
        raise bad(f"precision: expected {', '.join(names)} or {last}, got {_scalars.shown(precision)}")
    if precision != _kinds.EXACT and dtype != others[precision]["of"]:
        raise bad(f"precision: {precision!r} is for {others[precision]['of']}; q is {dtype}")
    return precision


def _describe(tensor, view):
    tensor.ptr, tensor.dtype = view.ptr, _elements.numbers()[view.dtype]
    tensor.size[:], tensor.stride[:] = view.shape, view.stride


def _unusual(inputs, views):
    """What kind_text says of elements: of out, of k and v, and of scales."""
    first = inputs.first.dtype
    usual = _elements.of_out(first)
    outs = [views[role.name].dtype for role in inputs.kind.roles if role.element == "out" and role.name in views]
    keys = [views[role.name].dtype for role in inputs.kind.roles if role.element == "k" and role.is_read and role.name in views]
    return dict(out=next((out for out in outs if usual and out != usual.name), None), keys=next((each for each in keys if each != first), None),
                scale_rows=inputs.sizes.get("scale_rows", 0))


class Call:
    """The argument struct of calls with these sizes, strides and values; only addresses change. Not for two threads at once."""

    def __init__(self, spec, inputs, results):
        """`results`: views by role, as far as they are known."""
        check_results(inputs, results)
        self.lacks_lse = spec.precision is None and precision_of(None, inputs.kind, inputs.first.dtype) != _kinds.EXACT
        self.pattern, self.values, self.device = spec.pattern, inputs.values, inputs.first.device
        self.inputs = inputs
        self.args = args = S.sized(S.AttentionArgs)
        views = {**inputs.views, **results}
        for role in inputs.kind.roles:
            if role.name in views and role.is_tensor:
                _describe(getattr(args, role.name), views[role.name])
            elif role.name in views:
                setattr(args, role.name, views[role.name].ptr or NOWHERE)
        for size in _kinds.fields():
            setattr(args, size, inputs.sizes.get(size, 0))
        if not inputs.kind.has_pages:
            args.q_origin, args.k_origin = _origin(self.pattern, spec.q_origin), position("k_origin", spec.k_origin)
        args.scale = checked_scale(spec.scale)
        extents = _extents(self.pattern, self.values, inputs) if inputs.tensors else ()
        for name, view in inputs.tensors.items():
            check_operand(self.pattern, self.pattern.argument(name), view, self.device, extents)
        self._set_operands(inputs.tensors)
        self.reference = C.byref(args)
        self.gradients_of = getattr(spec, "gradients_of", ())
        elements = _unusual(inputs, views)
        self.kind, self.host_kind = kind_text(inputs.kind, spec, self.gradients_of, inputs.first.dtype, **elements), inputs.kind.text(**elements)

    def _set_operands(self, tensors):
        self.lengths = lengths = {name: _header.length_of(view.shape) for name, view in tensors.items() if self.pattern.argument(name).takes_length}
        operands = (S.Operand * max(1, len(tensors) + len(lengths) + len(self.values)))()
        places = iter(operands)
        self.tensor_operands = {}
        for name, view in tensors.items():
            operand = self.tensor_operands[name] = next(places)
            operand.id, operand.kind, operand.value.ptr = self.pattern.argument(name).id, S.OPERAND_POINTER, view.ptr or NOWHERE
        for name, value in (*lengths.items(), *self.values.items()):
            _engine.set_operand(next(places), self.pattern.argument(name), value)
        self.args.operands, self.args.operand_count = operands, len(operands) if tensors or self.values else 0

    def gradient_shape(self, name):
        """Of a number or tensor of the pattern."""
        return self.inputs.tensors[name].shape if self.pattern.argument(name).kind == "tensor" else ()

    def set_gradients(self, addresses):
        """Where gradients of the pattern's numbers and tensors go, by name: row-major fp32 where q is."""
        self._gradients = (S.Gradient * max(1, len(addresses)))()
        for gradient, (name, address) in zip(self._gradients, addresses.items()):
            gradient.id, gradient.ptr = self.pattern.argument(name).id, address
        self.args.gradients, self.args.gradient_count = self._gradients if addresses else None, len(addresses)

    def question(self):
        sizes = {name: self.inputs.sizes[name] for name in ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_k")}
        if (sequences := self.inputs.sizes.get("sequences", sizes["batch"])) != sizes["batch"]:
            sizes.update(batch=sequences, seqlen_q=-(-sizes["seqlen_q"] // max(1, sequences)))
        return _engine.Question(self.pattern, self.device, _elements.numbers()[self.inputs.first.dtype], self.kind, self.inputs.sizes["head_dim"],
                                self.inputs.sizes["value_dim"], dict(sizes, q_origin=self.args.q_origin, k_origin=self.args.k_origin),
                                {**self.lengths, **self.values})

    def workspace_bytes(self, kernel):
        needed = C.c_uint64()
        self.args.lse = self.args.lse or self.args.out.ptr  # some address: only sizes count here
        if self.gradients_of and not self.args.gradient_count:
            self.set_gradients(dict.fromkeys(self.gradients_of, self.args.out.ptr))
        _engine.engine().library.call("heddle_kernel_workspace", kernel.handle, self.reference, C.byref(needed))
        return needed.value


def _origin(pattern, q_origin):
    if pattern.takes_q_origin:
        if q_origin is None:
            raise bad(f"q_origin: pattern {pattern.name} takes the position of query 0, none is given")
        return position("q_origin", q_origin)
    if q_origin is not None:
        raise bad(f"q_origin: pattern {pattern.name} takes none, only patterns with q_origin(given) do; got {q_origin}")
    return 0


def no_copy(prepared):
    """The __reduce__ of prepared calls."""
    raise UnsupportedError("a prepared call stands for its tensors where they are: it cannot be pickled or copied, heddle.prepare makes another")


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

    def count_pairs(self, pairs):
        self._library.call("heddle_prepared_set_pairs", self._handle, pairs)

    def close(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            self._library.close("prepared", handle)

    def __del__(self):
        try:
            self.close()
        except (AttributeError, TypeError):
            pass  # half made, or the interpreter is ending


def pairs_of(call):
    """That the call keeps, as the compiler counts them."""
    question, pairs = call.question(), C.c_int64()
    problem = question.problem()
    _library.compiler_library("counting pairs").call("heddle_pattern_pairs", question.pattern.handle, C.byref(problem), C.byref(pairs))
    return pairs.value


def check_on_host(call):
    """What run_on_host would refuse now."""
    library = _library.compiler_library("attention on the processor")
    library.call("heddle_cpu_check", call.pattern.handle, call.host_kind, call.reference)


def run_on_host(call):
    library = _library.compiler_library("attention on the processor")
    library.call("heddle_cpu_run", call.pattern.handle, call.host_kind, call.reference, _engine.threads())
