"""Calls of kind backward on PyTorch tensors: as those of _torch, kept by a thread for their sizes, strides and values."""
import warnings

import torch

from . import _call, _torch
from .errors import UnsupportedError


class _Ready(_torch.LaunchesByRole):
    def __init__(self, call, spec):
        super().__init__(call, spec)
        inputs = call.inputs
        results = [(role.name, _torch.Results(inputs.shape(role.name), spec.q.dtype, spec.q.device)) for role in inputs.kind.made]
        self.results = [(getattr(self.args, name), result) for name, result in results]
        shapes = {name: call.gradient_shape(name) for name in spec.gradients_of}
        self.gradients = {name: _torch.Results(shape, torch.float32, spec.q.device) for name, shape in shapes.items()}


def _prepare(spec):
    inputs = _call.inputs_of(spec, _torch.view, spec.kind)
    results = {}
    for role in inputs.kind.made:
        shape = inputs.shape(role.name)
        results[role.name] = inputs.first._replace(shape=shape, stride=_call.row_major(shape))
    return _Ready(_call.Call(spec, inputs, results), spec)


def _key(spec):
    parts = ["backward", spec.pattern, spec.scale, spec.q_origin, spec.k_origin, spec.gradients_of, spec.deterministic, spec.precision]
    for name, tensor in spec.given().items():
        parts += (name, *_torch.tensor_key(tensor))
    return _torch.whole_key(parts, spec.arguments)


def _readable(tensor):
    """Gradients come as they come: expanded, as views that negate, at any address."""
    if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided or tensor.dim() < 2:
        return tensor
    tensor, size = tensor.resolve_neg(), tensor.element_size()
    is_aligned = tensor.stride(-1) == 1 and tensor.data_ptr() % 16 == 0 and not any(stride * size % 16 for stride in tensor.stride()[:-1])
    return tensor if is_aligned else _torch.copied(tensor)


def _in_rows(tensor):
    """Of a gradient that has no strides in a call."""
    is_strided = isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided
    return _torch.copied(tensor) if is_strided and not tensor.is_contiguous() else tensor


def gradients(spec):
    """As torch.use_deterministic_algorithms says, where the call does not."""
    if spec.deterministic or not torch.are_deterministic_algorithms_enabled():
        return _gradients(spec)
    try:
        return _gradients(spec._replace(deterministic=True))
    except UnsupportedError as error:
        if not torch.is_deterministic_algorithms_warn_only_enabled():
            raise
        warnings.warn(f"heddle.attention: gradients whose bits depend on the run: {error}", stacklevel=2)
        return _gradients(spec)


def _gradients(spec):
    """d_q, d_k, d_v, and those of the numbers and tensors of the pattern that are asked for, in fp32."""
    spec = spec._replace(d_out=_readable(spec.d_out), d_lse=_in_rows(spec.d_lse))
    ready = _torch.ready_for(spec, _key, _prepare)
    ready.take(spec)
    made = []
    for field, results in ready.results:
        made.append(results.new())
        field.ptr = made[-1].data_ptr()
    others = {name: results.new() for name, results in ready.gradients.items()}
    ready.call.set_gradients({name: each.data_ptr() for name, each in others.items()})
    ready.run()
    return [*(spec.add_to or made), *others.values()]


def added(spec):
    """As gradients, in place: autograd sees changed tensors, and no node."""
    for name, each in zip(("d_q", "d_k", "d_v"), spec.add_to):
        if isinstance(each, torch.Tensor) and each.requires_grad:
            raise _call.bad(f"{name}: expected a tensor that requires no gradient, as it is added to in place; give {name}.detach()")
    with torch.no_grad():
        results = gradients(spec)
        for each in spec.add_to:
            torch.autograd.graph.increment_version(each)
    return results
