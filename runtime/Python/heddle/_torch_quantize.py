"""heddle.quantize on PyTorch tensors: as calls of _torch, kept by a thread for their sizes and strides."""
import torch

from . import _call, _torch
from .errors import UnsupportedError

_SOME_ADDRESS = 4096  # of results that are not made yet: only sizes count


def _dtype_of(role):
    if role.element == "fp32":
        return torch.float32
    if not hasattr(torch, "float8_e4m3fn"):
        raise UnsupportedError(f"quantize: PyTorch {torch.__version__} has no float8_e4m3fn")
    return torch.float8_e4m3fn


class _KeyMajor:
    """Makes tensors [batch, row, head, dim] whose rows, of a dimension, are keys, at multiples of 16 bytes. `shape`: of the role."""

    _ALIGNMENT = 16

    def __init__(self, shape, dtype, device):
        batch, dim, heads, self._keys = shape
        self._made = _torch.Results((batch, heads, dim, -(-self._keys // self._ALIGNMENT) * self._ALIGNMENT), dtype, device)

    def new(self):
        return self._made.new()[..., :self._keys].permute(0, 3, 1, 2)


def _lies_key_major(role):
    return role.extents[-1] == "seqlen_k"


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
    roles = [role for role in inputs.kind.made if spec.smooths_k or not role.is_optional]
    results = {}
    for role in roles:
        shape = inputs.shape(role.name)
        view = _call.View(_SOME_ADDRESS, role.element, shape, _call.row_major(shape), inputs.first.device)
        if _lies_key_major(role):
            made = _KeyMajor(shape, torch.uint8, "meta").new()
            view = _call.turned(view._replace(shape=tuple(made.shape), stride=made.stride()))
        results[role.name] = view
    return _Ready(_call.Call(spec, inputs, results), spec, roles)


def _refuse_derivatives(tensors):
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise UnsupportedError("quantize has no gradients: call it under torch.no_grad(), or on q.detach(), k.detach(), v.detach()")
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
