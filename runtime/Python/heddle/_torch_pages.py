"""Calls over pages on PyTorch tensors: as those of _torch, kept by a thread for their sizes, strides and values. What lengths, offsets
and tables hold is read by the launch, so nothing here waits for a GPU."""
import torch

from . import _call, _engine, _torch
from .errors import InvalidArgumentError


class _Ready(_torch.LaunchesByRole):
    def __init__(self, call, spec):
        super().__init__(call, spec)
        self.outs = _torch.Results(call.inputs.shape("out"), spec.q.dtype, spec.q.device)
        self.logs = _torch.Results(call.inputs.shape("lse"), torch.float32, spec.q.device)
        self._checks_pages = self.found is not None and _engine.checks_pages()

    def check(self, spec):
        if self._checks_pages:
            from . import _torch_page_checks
            _torch_page_checks.check(spec)


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
    parts = ["decode", spec.pattern, spec.scale, spec.batch_invariant]
    for name, tensor in (*spec.given().items(), ("out", spec.out), ("lse", spec.lse)):
        parts += (name, *(_torch.tensor_key(tensor) if tensor is not None else ()))
    return _torch.whole_key(parts, spec.arguments)


def bound(spec):
    return _torch.Bound(spec, _prepare)


def attention(spec, return_lse):
    if torch.jit.is_tracing():
        raise InvalidArgumentError("heddle is not recorded by torch.jit.trace: use torch.export or torch.compile")
    ready = _torch.ready_for(spec, _key, _prepare)
    out = ready.outs.new() if spec.out is None else spec.out
    lse = ready.logs.new() if spec.lse is None else spec.lse
    ready.take(spec)
    ready.args.out.ptr, ready.args.lse = out.data_ptr(), lse.data_ptr()
    ready.check(spec)
    ready.run()
    return (out, lse) if return_lse else out
