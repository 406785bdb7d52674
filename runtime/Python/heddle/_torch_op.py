"""heddle::attention, the custom op that stands for a call under torch.compile, torch.export and fake tensors.

Its arguments are what a graph can hold: the pattern as text (or a name of the package's library), the values of its run-time sizes and
numbers beside their names. A number that is a whole one travels exactly in a float.
"""
from collections import namedtuple

import torch

from . import _torch, patterns
from ._call import CallSpec
from .errors import InvalidArgumentError


_ARGUMENTS = ("Tensor q, Tensor k, Tensor v, Tensor[] tensors, str pattern, str pattern_name, str names, SymInt[] sizes, float[] numbers, "
              "float? scale, SymInt? q_origin, SymInt k_origin, Tensor? carry_out=None, Tensor? carry_lse=None")
_Node = namedtuple("_Node", [each.split()[-1].partition("=")[0] for each in _ARGUMENTS.split(", ")], defaults=(None, None))


@torch.library.custom_op("heddle::attention", mutates_args=(), schema=f"({_ARGUMENTS}) -> (Tensor, Tensor)")
def attention_op(*given, **named):
    """out [batch, seqlen_q, heads, value_dim] and lse [batch, heads, seqlen_q]. `names`: of the sizes, the numbers, the tensors, with ;
    between the three and , inside each."""
    if _torch.forward_ad._current_level >= 0:
        raise _torch.no_tangents()  # whether a tensor has one cannot be seen in here
    node = _Node(*given, **named)
    called = [part.split(",") if part else [] for part in node.names.split(";")]
    arguments = {name: value for part, values in zip(called, (node.sizes, node.numbers, node.tensors)) for name, value in zip(part, values)}
    made = patterns.pattern(text=node.pattern, name=node.pattern_name) if node.pattern_name else patterns.resolved(node.pattern)
    carry = None if node.carry_out is None or node.carry_lse is None else (node.carry_out.detach(), node.carry_lse.detach())
    return _torch.attention(CallSpec(node.q.detach(), node.k.detach(), node.v.detach(), made, scale=node.scale, q_origin=node.q_origin,
                                     k_origin=node.k_origin, carry=carry, arguments=arguments), True)


@attention_op.register_fake
def _fake(q, k, v, *_, **__):
    for name, each in (("q", q), ("k", k), ("v", v)):
        torch._check(each.dim() == 4, lambda: f"attention arguments: {name}: expected 4 dimensions (batch, row, head, dim), got {each.dim()}")
        torch._check(each.dtype == q.dtype, lambda: f"attention arguments: {name}: dtype: expected {q.dtype} as q, got {each.dtype}")
    batch, rows, heads, _ = q.shape
    return q.new_empty((batch, rows, heads, v.shape[3])), q.new_empty((batch, heads, rows), dtype=torch.float32)


def _refuse_gradients(ctx, inputs, output):
    # Asked only if a gradient is wanted; grad mode itself is off in here.
    raise _torch.no_gradients()


def _no_backward(ctx, *gradients):
    raise AssertionError("refused before")


attention_op.register_autograd(_no_backward, setup_context=_refuse_gradients)


def attention(spec, return_lse):
    """The call as a node of a graph."""
    if spec.out is not None or spec.lse is not None:
        raise InvalidArgumentError("attention: out= and lse= are for calls outside of torch.compile and torch.export")
    if isinstance(spec.pattern, str):
        text, name, values = spec.pattern, "", {}
    else:
        text, name, values = spec.pattern.text, spec.pattern.name, dict(spec.pattern.values)
    values.update(spec.arguments)
    tensors = {key: value for key, value in values.items() if isinstance(value, torch.Tensor)}
    numbers = {key: value for key, value in values.items() if isinstance(value, float)}
    sizes = {key: value for key, value in values.items() if key not in tensors and key not in numbers}
    names = ";".join(",".join(part) for part in (sizes, numbers, tensors))
    results = torch.ops.heddle.attention(spec.q, spec.k, spec.v, list(tensors.values()), text, name, names, list(sizes.values()),
                                         list(numbers.values()), spec.scale, spec.q_origin, spec.k_origin, *(spec.carry or ()))
    return (results[0], results[1]) if return_lse else results[0]
