"""heddle.quantize on PyTorch tensors: as calls of _torch, kept by a thread for their sizes and strides."""
import torch

from . import _call, _torch
from .errors import UnsupportedError


def _dtype_of(role):
    if role.element == "fp32":
        return torch.float32
    if not hasattr(torch, "float8_e4m3fn"):
        raise UnsupportedError(f"quantize: PyTorch {torch.__version__} has no float8_e4m3fn")
    return torch.float8_e4m3fn


_ALIGNMENT = 16


def _key_major_memory(shape):
    """The shape of the memory of tensors [batch, row, head, dim] whose rows, of a dimension, are keys, at multiples of 16 bytes. `shape`: of the role."""
    batch, dim, heads, keys = shape
    return batch, heads, dim, keys + -keys % _ALIGNMENT  # of symbols, too, never fewer than keys: a remainder is not negative


def _key_major_view(memory, shape):
    return memory[..., :shape[3]].permute(0, 3, 1, 2)


class _KeyMajor:
    """Makes such tensors."""

    def __init__(self, shape, dtype, device):
        self._shape, self._made = shape, _torch.Results(_key_major_memory(shape), dtype, device)

    def new(self):
        return _key_major_view(self._made.new(), self._shape)


def _lies_key_major(role):
    return role.extents[-1] == "seqlen_k"


def roles_of(spec):
    """Of the results, in their order."""
    return [role for role in spec.kind.made if spec.smooths_k or not role.is_optional]


def made_like(q, role, shape):
    """What a call gives for the role, of fake tensors too."""
    if _lies_key_major(role):
        return _key_major_view(q.new_empty(_key_major_memory(shape), dtype=_dtype_of(role)), shape)
    return q.new_empty(shape, dtype=_dtype_of(role))


class _Ready(_torch.LaunchesByRole):
    def __init__(self, call, spec, roles):
        super().__init__(call, spec)
        self.results = [(role, (_KeyMajor if _lies_key_major(role) else _torch.Results)(call.inputs.shape(role.name), _dtype_of(role), spec.q.device))
                        for role in roles]

    def of(self, spec):
        """New tensors with the results, in the order of the roles."""
        self.take(spec)
        made = [results.new() for _, results in self.results]
        for (role, _), tensor in zip(self.results, made):
            if role.is_tensor:
                getattr(self.args, role.name).ptr = tensor.data_ptr()
            else:
                setattr(self.args, role.name, tensor.data_ptr())
        self.run()
        return made


def _prepare(spec):
    inputs = _call.inputs_of(spec, _torch.view, spec.kind)
    roles, results = roles_of(spec), {}
    for role in roles:
        shape = inputs.shape(role.name)
        view = _call.View(_call.NOWHERE, role.element, shape, _call.row_major(shape), inputs.first.device)
        if _lies_key_major(role):
            made = _KeyMajor(shape, torch.uint8, "meta").new()
            view = _call.turned(view._replace(shape=tuple(made.shape), stride=made.stride()))
        results[role.name] = view
    return _Ready(_call.Call(spec, inputs, results), spec, roles)


def no_gradients():
    return UnsupportedError("quantize has no gradients: call it under torch.no_grad(), or on q.detach(), k.detach(), v.detach()")


def _refuse_derivatives(tensors):
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise no_gradients()
    _torch.refuse_derivatives(tensors)


def quantize(spec):
    _refuse_derivatives([each for each in spec.given().values() if isinstance(each, torch.Tensor)])
    try:
        key = (spec.kind.name, spec.smooths_k, spec.scale_rows, *(part for each in spec.given().values() for part in _torch.tensor_key(each)))
        ready = _torch.kept(key) or _torch.keep(key, _prepare(spec))
    except (AttributeError, TypeError):  # not a tensor: the slow way says what is wrong
        ready = _prepare(spec)
    q, k, v, *others = ready.of(spec)
    return (q, k, v, tuple(others[:3]), *others[3:])
