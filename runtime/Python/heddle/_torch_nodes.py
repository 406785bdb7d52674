"""Ops of PyTorch that stand for calls with out and lse in graphs: one that makes both, and `..._into`, which writes both to tensors of the caller.
Every kind of call has its two from here; what they share is here alone.

A graph writes to memory that the caller gave in place, as far as whoever runs it keeps mutations: an `..._into` copies nothing by itself.
"""
from collections import namedtuple

import torch

from . import _elements, _torch
from ._options import bad
from .errors import UnsupportedError

RESULTS = "Tensor(a!) out, Tensor(b!) lse"


def node_of(name, arguments):
    """A tuple of what an op is given; what has a default may be left out."""
    fields = [each.split()[-1].partition("=") for each in arguments.split(", ")]
    return namedtuple(name, [field for field, _, _ in fields], defaults=[None for _, _, default in fields if default])


def detached(tensor):
    return None if tensor is None else tensor.detach()


def scales_of(*scales):
    """descale of a spec; None where nothing has any."""
    return None if all(each is None for each in scales) else tuple(map(detached, scales))


def refuse_tangents():
    """Whether a tensor has one cannot be seen in an op."""
    if _torch.forward_ad._current_level >= 0:
        raise _torch.no_tangents()


def define(name, arguments, compute):
    """heddle::NAME, which makes out and lse, and heddle::NAME_into, which is given them first. `compute`: of a node, and of out and lse or None
    each, as _torch.attention with return_lse. The op that makes them."""
    node = node_of("_Node", arguments)

    @torch.library.custom_op(f"heddle::{name}", mutates_args=(), schema=f"({arguments}) -> (Tensor, Tensor)")
    def made(*given, **named):
        refuse_tangents()
        return compute(node(*given, **named), None, None)

    @torch.library.custom_op(f"heddle::{name}_into", mutates_args=("out", "lse"), schema=f"({RESULTS}, {arguments}) -> ()")
    def written(out, lse, *given, **named):
        refuse_tangents()
        compute(node(*given, **named), out.detach(), lse.detach())

    made.register_fake(lambda *given, **named: _fake(node(*given, **named)))
    written.register_fake(lambda out, lse, *given, **named: check_places(node(*given, **named), out=out, lse=lse))
    refuse_vmap(made)
    refuse_vmap(written)
    return made


def refuse_vmap(op):
    """In words, where PyTorch (from 2.5 on) lets an op say what it does under torch.vmap."""
    if hasattr(op, "register_vmap"):
        op.register_vmap(_no_vmap)


def _no_vmap(*_, **__):
    raise UnsupportedError("heddle has no rule for torch.vmap: what it maps can be part of the batch")


def names_of_tensors(names):
    """Of the tensors of a node's pattern; `names` as a node has them."""
    part = names.rpartition(";")[2]
    return part.split(",") if part else []


def check_places(node, **others):
    """Of fake tensors, and of calls some of whose tensors are on device meta, which come here as well: all are where q is."""
    named = {**node._asdict(), **others}
    named.update(zip(names_of_tensors(named.pop("names", "")), named.pop("tensors", ())))
    place = node.q.device
    for name, each in named.items():
        if isinstance(each, torch.Tensor) and each.dim() and each.device != place:
            torch._check(False, lambda: f"attention arguments: {name}: expected a tensor on device {place} as q, got one on device {each.device}")


def check_dimensions(q, k, v):
    """Of fake tensors, whose sizes are looked at."""
    for name, each in (("q", q), ("k", k), ("v", v)):
        torch._check(each.dim() == 4, lambda: f"attention arguments: {name}: expected 4 dimensions (batch, row, head, dim), got {each.dim()}")


def _fake(node):
    """out [batch, rows, heads, value_dim] and lse [batch, heads, rows]."""
    q, k, v = node[:3]
    check_dimensions(q, k, v)
    check_places(node)
    allowed = _types_of_keys(q.dtype)
    torch._check(k.dtype in allowed, lambda: f"attention arguments: k: dtype: expected {q.dtype} as q, got {k.dtype}")
    torch._check(v.dtype == k.dtype, lambda: f"attention arguments: v: dtype: expected {k.dtype} as k, got {v.dtype}")
    return new_out(q, v), new_lse(q)


def _types_of_keys(dtype):
    """Of q of this one."""
    return [getattr(torch, _elements.torch_name(name), None) for name in _elements.keys(_torch._spelled(dtype))] if dtype.is_floating_point else [dtype]


def type_of_out(dtype):
    if not torch.compiler.is_dynamo_compiling():
        return _torch.type_of_out(dtype)
    from . import _torch_traced
    return _torch_traced.type_of_out(dtype)


def new_out(q, v):
    return q.new_empty((*q.shape[:3], v.shape[3]), dtype=type_of_out(q.dtype))


def new_lse(q):
    batch, rows, heads, _ = q.shape
    return q.new_empty((batch, heads, rows), dtype=torch.float32)


def refuse(make, *given):
    """Raises make(*given), outside of a graph, which it breaks: whoever asked for a full one would read of something else."""
    if torch.compiler.is_dynamo_compiling():
        from . import _torch_traced
        _torch_traced.refuse(make, *given)
    raise make(*given)


def tensors_of(spec):
    """All that a call was given beside what its pattern reads; others than tensors are refused, which no op could."""
    given = {**spec.given(), "out": getattr(spec, "out", None), "lse": getattr(spec, "lse", None)}
    for role, each in given.items():
        if each is not None and not isinstance(each, torch.Tensor):
            refuse(_torch.no_tensor, role.replace("carry_", "carry: "), each)
    return [each for each in given.values() if each is not None]


def refuse_gradients(tensors):
    """Of calls whose results have none."""
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        refuse(_torch.no_gradients)


def call(name, spec, return_lse, arguments):
    """The results of a node of heddle::NAME, or, where the caller gives one of them, of heddle::NAME_into."""
    if spec.out is None and spec.lse is None:
        out, lse = getattr(torch.ops.heddle, name)(*arguments)
        return (out, lse) if return_lse else out
    for role, tensor in (("q", spec.q), ("v", spec.v)):
        if tensor.dim() != 4:
            refuse(bad, f"{role}: expected 4 dimensions (batch, row, head, dim), got {tensor.dim()}")
    out = new_out(spec.q, spec.v) if spec.out is None else spec.out
    lse = new_lse(spec.q) if spec.lse is None else spec.lse
    getattr(torch.ops.heddle, name + "_into")(out, lse, *arguments)
    return (out, lse) if return_lse else out
