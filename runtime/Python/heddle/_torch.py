"""Calls on PyTorch tensors: on their device's current stream, results and workspace from PyTorch's allocator.

A call with the sizes, strides and values of an earlier one of the same thread changes addresses in an argument struct and launches.
"""
import ctypes as C
import functools
import math
import threading
import time

import torch
from torch.autograd import forward_ad

from . import _call, _elements, _engine
from .errors import InvalidArgumentError, UnsupportedError

if not hasattr(torch.library, "custom_op"):
    raise UnsupportedError(f"heddle takes tensors of PyTorch 2.4 or newer, this is {torch.__version__}")

_MOST_CALLS = 512  # kept by a thread
_empty_like = torch.empty_like
_grad_enabled = torch.is_grad_enabled
_is_deterministic = torch.are_deterministic_algorithms_enabled
_now = time.monotonic

try:
    current_stream = torch._C._cuda_getCurrentRawStream  # what Triton's launchers call too
except AttributeError:
    def current_stream(index):
        return torch.cuda.current_stream(index).cuda_stream if torch.cuda.is_available() else 0


@functools.lru_cache(maxsize=None)
def _spelled(dtype):
    return _elements.spelled(str(dtype).replace("torch.", "")) or str(dtype)


def view(tensor, name):
    if not isinstance(tensor, torch.Tensor):
        raise no_tensor(name, tensor)
    device = tensor.device
    if device.type not in ("cuda", "cpu"):
        raise UnsupportedError(f"{name}: expected a tensor on a CUDA device or in host memory, got device {device}")
    if tensor.is_nested:
        raise no_nested(name)
    if tensor.layout is not torch.strided:
        raise UnsupportedError(f"{name}: expected a strided tensor, got {tensor.layout}")
    if tensor.is_neg():
        raise UnsupportedError(f"{name}: expected its numbers in memory, got a view that negates them; {name}.resolve_neg() makes a copy")
    try:
        address = tensor.data_ptr()
    except RuntimeError as error:  # of torch.vmap and other transforms
        raise UnsupportedError(f"{name}: expected a tensor with memory of its own, which torch.vmap and other transforms give none (what they map can be "
                               f"part of the batch): {error}") from None
    index = None if device.type == "cpu" else device.index
    return _call.View(address, _spelled(tensor.dtype), tuple(tensor.shape), tensor.stride(), index)


@functools.lru_cache(maxsize=None)
def type_of_out(dtype):
    """PyTorch's, where q has this one."""
    found = _elements.of_out(_spelled(dtype))
    return getattr(torch, found.torch) if found else dtype


def no_tensor(name, got):
    return InvalidArgumentError(f"{name}: expected a PyTorch tensor as q, got {type(got).__name__}")


def no_nested(name):
    return UnsupportedError(f"{name}: expected a strided tensor, got a nested one; heddle.words.documents reads sequences that lie behind one another")


def no_gradients():
    return UnsupportedError("calls with out= or lse=, and prepared ones, have no gradients: take what heddle.attention returns, or call under torch.no_grad() "
                            "or torch.inference_mode(), or on q.detach(), k.detach(), v.detach()")


def refuse_transforms():
    if torch._C._are_functorch_transforms_active():
        raise UnsupportedError("heddle.attention has no rule for the transforms of torch.func (grad, vjp, vmap, ...): torch.autograd.grad and backward() "
                               "give its gradients, and what torch.vmap maps can be part of the batch")


def no_tangents():
    return UnsupportedError("heddle has no forward-mode derivatives: call it on q.detach(), k.detach(), v.detach(), and compiled functions outside "
                            "of torch.autograd.forward_ad.dual_level()")


def refuse_derivatives(tensors):
    """Of either mode: results would come without them."""
    if _grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise no_gradients()
    if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors):
        raise no_tangents()


def _unfilled(shape, dtype, device):
    """torch.empty without what torch.use_deterministic_algorithms adds to it, a pass that fills all of the memory
    (torch.utils.deterministic.fill_uninitialized_memory): calls write all of a result, and read of a workspace what they wrote."""
    memory = torch.UntypedStorage(math.prod(shape) * dtype.itemsize, device=device)
    return torch.empty(0, dtype=dtype, device=device).set_(memory, 0, shape, _call.row_major(shape))


def copied(tensor):
    """Row-major, in memory of its own."""
    return Results(tuple(tensor.shape), tensor.dtype, tensor.device).new().copy_(tensor)


class Results:
    """Makes row-major tensors of one shape. From the second one on of a template, which takes torch.empty_like half the time of torch.empty
    and one element of memory; a size that comes once, as of a text that grows, needs none."""

    def __init__(self, shape, dtype, device):
        self._made = shape, dtype, device
        self._template, self._is_first = None, True

    def new(self):
        if _is_deterministic():
            return _unfilled(*self._made)
        if self._template is not None:
            return _empty_like(self._template)
        shape, dtype, device = self._made
        if not self._is_first and 0 not in shape:
            template = torch.empty(1, dtype=dtype, device=device).expand(shape)
            assert torch.empty_like(template).is_contiguous()
            self._template = template
        self._is_first = False
        return torch.empty(shape, dtype=dtype, device=device)


class Launches:
    """A Call with its kernel and what its launches need."""

    def __init__(self, call, device):
        self.call, self.device = call, device
        self.generation = _engine.generation
        self.args, self.reference = call.args, call.reference
        self.found = None if call.device is None else _engine.engine().find(call.question())
        if self.found is not None:
            self.library = _engine.engine().library
            self.launch = self.library.quick("heddle_kernel_launch")
            self.use_kernel()

    def use_kernel(self):
        self.kernel = self.found.kernel
        self.handle = C.c_void_p(self.kernel.handle)
        self.args.workspace_bytes = self.workspace_bytes = self.call.workspace_bytes(self.kernel)
        self.workspaces = Results((self.workspace_bytes,), torch.uint8, self.device)
        self.next_check = self.found.next_check

    def look_again_if_due(self):
        """A better kernel may be there; not while a stream is captured, where nothing may be loaded."""
        if _now() < self.next_check or torch.cuda.is_current_stream_capturing():
            return
        if _now() >= self.found.next_check:
            self.found.refresh()
        self.use_kernel()

    def check(self, spec):
        """Raises what a launch would not say of the values of tensors."""

    def run(self):
        """With the addresses in `args`."""
        if self.found is None:
            return _call.run_on_host(self.call)
        if _now() >= self.next_check:
            self.look_again_if_due()
        if self.workspace_bytes:
            workspace = self.workspaces.new()
            self.args.workspace = workspace.data_ptr()
        status = self.launch(self.handle, current_stream(self.device.index), self.reference)
        if status:
            raise self.library.error(status)


class LaunchesByRole(Launches):
    """Launches of calls whose addresses come by the roles that they read."""

    def __init__(self, call, spec):
        super().__init__(call, spec.q.device)
        read = call.inputs.kind.read
        self._tensors = [(role.name, getattr(self.args, role.name)) for role in read if role.is_tensor]
        self._arrays = [role.name for role in read if not role.is_tensor and role.name in call.inputs.views]

    def take(self, spec):
        given = spec.given()
        try:
            for name, field in self._tensors:
                field.ptr = given[name].data_ptr()
            for name in self._arrays:
                setattr(self.args, name, given[name].data_ptr() or _call.NOWHERE)
            for name, operand in self.call.tensor_operands.items():
                operand.value.ptr = spec.arguments[name].data_ptr() or _call.NOWHERE
        except RuntimeError:  # of torch.vmap and other transforms: says of which tensor
            for name, each in {**given, **spec.arguments}.items():
                view(each, name)
            raise


class _Ready(Launches):
    def __init__(self, call, q):
        super().__init__(call, q.device)
        self.q, self.k, self.v, self.out = call.args.q, call.args.k, call.args.v, call.args.out
        self.outs = Results(tuple(call.args.out.size), type_of_out(q.dtype), q.device)
        self.logs = Results(call.inputs.shape("lse"), torch.float32, q.device)


class _Calls(threading.local):
    def __init__(self):
        self.ready = {}


_calls = _Calls()


def _prepare(spec):
    """The slow way: everything is checked, the kernel is found."""
    if torch.jit.is_tracing():  # where sizes are tensors
        raise UnsupportedError("heddle is not recorded by torch.jit.trace: use torch.export or torch.compile")
    inputs = _call.inputs_of(spec, view, spec.kind)
    shape = inputs.shape("out")
    of_out = _elements.of_out(inputs.first.dtype).name
    made = inputs.first._replace(dtype=of_out, shape=shape, stride=_call.row_major(shape))
    results = {"out": made if spec.out is None else view(spec.out, "out")}
    if spec.lse is not None:
        results["lse"] = view(spec.lse, "lse")
    given = (spec.q, spec.k, spec.v, spec.out, spec.lse, *(spec.carry or ()), *spec.factors().values(), *(spec.arguments[name] for name in inputs.tensors))
    refuse_derivatives([each for each in given if each is not None])
    return _Ready(_call.Call(spec, inputs, results), spec.q)


def tensor_key(tensor):
    """Of a tensor that few calls have."""
    return (tensor.dtype, tensor.device, tensor.shape, tensor.stride(), tensor.is_neg(), tensor.requires_grad and _grad_enabled())


def _key(spec):
    q, k, v, pattern, scale, out, lse, q_origin, k_origin, carry, _, arguments, precision, descale = spec
    parts = [pattern, q.dtype, k.dtype, v.dtype, q.device, k.device, v.device, q.shape, k.shape, v.shape, q.stride(), k.stride(), v.stride(),
             q.is_neg() or k.is_neg() or v.is_neg(), scale, q_origin, k_origin, precision]
    if out is not None or lse is not None:
        parts.append(_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad))
    if out is not None:
        parts += tensor_key(out)
    if lse is not None:
        parts += ("lse", *tensor_key(lse))
    if carry is not None:
        for each in carry:
            parts += ("carry", *tensor_key(each))
    if descale is not None:
        for each in descale:
            parts += ("descale", *(() if each is None else tensor_key(each)))
    return whole_key(parts, arguments)


def whole_key(parts, arguments):
    """With what the pattern was given."""
    for name, value in arguments.items():
        parts.append(name)
        parts += tensor_key(value) if isinstance(value, torch.Tensor) else (type(value), value)
    return tuple(parts)


def ready_for(spec, key_of, prepare):
    """The call that is kept for these sizes, else a new one."""
    try:
        key = key_of(spec)
        return kept(key) or keep(key, prepare(spec))
    except (AttributeError, TypeError):  # not a tensor, or no value: the slow way says what is wrong
        return prepare(spec)


def _ready(spec):
    """The call that is kept for these sizes, else a new one."""
    if forward_ad._current_level >= 0:  # the slow way looks at every tensor
        return _prepare(spec)
    try:
        key = _key(spec)
        ready = kept(key)
    except (AttributeError, TypeError, RuntimeError):
        # Not a tensor, no value, or nested tensors, which have no sizes: the slow way says what is wrong.
        return _prepare(spec)
    return ready or keep(key, _prepare(spec))


def kept(key):
    """What this thread made for such a call before, or None."""
    ready = _calls.ready.get(key)
    return ready if ready is not None and ready.generation == _engine.generation else None


def keep(key, ready):
    if len(_calls.ready) >= _MOST_CALLS:
        _calls.ready.clear()
    _calls.ready[key] = ready
    return ready


def wants_gradients(spec):
    """Of results that the call makes itself."""
    if not _grad_enabled() or spec.out is not None or spec.lse is not None:
        return False
    if spec.q.requires_grad or getattr(spec.k, "requires_grad", False) or getattr(spec.v, "requires_grad", False):
        return True
    others = spec.arguments.values() if spec.carry is None else (*spec.carry, *spec.arguments.values())
    return any(getattr(each, "requires_grad", False) for each in others)


def attention(spec, return_lse):
    ready = _ready(spec)
    q, k, v, out, lse, carry, arguments = spec.q, spec.k, spec.v, spec.out, spec.lse, spec.carry, spec.arguments
    if out is None:
        out = ready.outs.new()
    if lse is None:
        lse = ready.logs.new()
    try:
        ready.q.ptr, ready.k.ptr, ready.v.ptr = q.data_ptr(), k.data_ptr(), v.data_ptr()
        ready.out.ptr, ready.args.lse = out.data_ptr(), lse.data_ptr()
        if carry is not None:
            ready.args.carry_out, ready.args.carry_lse = carry[0].data_ptr(), carry[1].data_ptr()
        if spec.descale is not None:
            for name, factors in spec.factors().items():
                setattr(ready.args, name, factors.data_ptr())
        for name, operand in ready.call.tensor_operands.items():
            operand.value.ptr = arguments[name].data_ptr() or _call.NOWHERE
    except RuntimeError:  # of torch.vmap and other transforms: the slow way says of which tensor
        _prepare(spec)
        raise
    ready.run()
    return (out, lse) if return_lse else out


class Bound:
    """One call with its tensors, which it keeps: checked, the kernel found, results and workspace there. `launch` may be repeated."""

    is_traced = staticmethod(torch.compiler.is_dynamo_compiling)

    def __init__(self, spec, prepare=_prepare):
        self._ready = ready = prepare(spec)
        if ready.found is not None:
            ready.look_again_if_due()
        self.kernel = None if ready.found is None else ready.kernel
        self.out = ready.outs.new() if spec.out is None else spec.out
        self.lse = ready.logs.new() if spec.lse is None else spec.lse
        self.lacks_lse = ready.call.lacks_lse
        ready.args.out.ptr, ready.args.lse = self.out.data_ptr(), self.lse.data_ptr()
        self._spec = spec
        self._frozen = self.workspace = None

    def freeze(self):
        """Checks once: later launches are those of a prepared call."""
        ready = self._ready
        if ready.found is None:
            _call.check_on_host(ready.call)
            return
        if ready.workspace_bytes:
            self.workspace = ready.workspaces.new()
            ready.args.workspace = self.workspace.data_ptr()
        self._frozen = _call.Frozen(ready.library, self.kernel, ready.args)
        self._index = ready.device.index
        self._streams = {current_stream(self._index)}  # those after whose work PyTorch's allocator gives our memory to others
        given = ((self.out, self._spec.out), (self.lse, self._spec.lse), (self.workspace, None))
        self._own = [each for each, theirs in given if each is not theirs]

    def _add_stream(self, address):
        stream = torch.cuda.current_stream(self._index)
        for each in self._own:
            each.record_stream(stream)
        self._streams.add(address)

    def count_pairs(self, pairs):
        if self._frozen is not None:
            self._frozen.count_pairs(_call.pairs_of(self._ready.call) if pairs is None else pairs)

    def launch(self):
        self._ready.check(self._spec)
        if self._frozen is None:
            _call.run_on_host(self._ready.call)
        else:
            stream = current_stream(self._index)
            if stream not in self._streams:
                self._add_stream(stream)
            self._frozen.launch(stream)

    def close(self):
        """Lets go of the launch, also while work is still queued."""
        if self._frozen is not None:
            self._frozen.close()
