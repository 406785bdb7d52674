"""Calls over pages on PyTorch tensors: as those of _torch, kept by a thread for their sizes, strides and values. What lengths, offsets
and tables hold is read by the launch, so nothing here waits for a GPU."""
import torch

from . import _call, _torch
from .errors import InvalidArgumentError


class _Ready(_torch.Launches):
    def __init__(self, call, spec):
        super().__init__(call, spec.q.device)
        inputs = call.inputs
        self.tensors = [(role.name, getattr(self.args, role.name)) for role in inputs.kind.read if role.is_tensor]
        self.arrays = [role.name for role in inputs.kind.read if not role.is_tensor and role.name in inputs.views]
        self.outs = _torch.Results(inputs.shape("out"), spec.q.dtype, spec.q.device)
        self.logs = _torch.Results(inputs.shape("lse"), torch.float32, spec.q.device)


def _prepare(spec):
    inputs = _call.inputs_of(spec, _torch.view, spec.kind)
    shape = inputs.shape("out")
    results = {"out": inputs.first._replace(shape=shape, stride=_call.row_major(shape)) if spec.out is None else _torch.view(spec.out, "out")}
    if spec.lse is not None:
        results["lse"] = _torch.view(spec.lse, "lse")
    given = (*spec.given().values(), spec.out, spec.lse, *(spec.arguments[name] for name in inputs.tensors))
    _torch.refuse_derivatives([each for each in given if each is not None])
    return _Ready(_call.Call(spec, inputs, results), spec)


def _key(spec):
    parts = ["decode", spec.pattern, spec.scale]
    for name, tensor in (*spec.given().items(), ("out", spec.out), ("lse", spec.lse)):
        parts += (name, *(_torch.tensor_key(tensor) if tensor is not None else ()))
    for name, value in spec.arguments.items():
        parts.append(name)
        parts += _torch.tensor_key(value) if isinstance(value, torch.Tensor) else (type(value), value)
    return tuple(parts)


def _ready(spec):
    try:
        key = _key(spec)
        return _torch.kept(key) or _torch.keep(key, _prepare(spec))
    except (AttributeError, TypeError):  # not a tensor, or no value: the slow way says what is wrong
        return _prepare(spec)


def attention(spec, return_lse):
    if torch.jit.is_tracing():
        raise InvalidArgumentError("heddle is not recorded by torch.jit.trace: use torch.export or torch.compile")
    ready = _ready(spec)
    out = ready.outs.new() if spec.out is None else spec.out
    lse = ready.logs.new() if spec.lse is None else spec.lse
    given = spec.given()
    for name, field in ready.tensors:
        field.ptr = given[name].data_ptr()
    for name in ready.arrays:
        setattr(ready.args, name, given[name].data_ptr())
    ready.args.out.ptr, ready.args.lse = out.data_ptr(), lse.data_ptr()
    for name, operand in ready.call.tensor_operands.items():
        operand.value.ptr = spec.arguments[name].data_ptr()
    ready.run()
    return (out, lse) if return_lse else out
