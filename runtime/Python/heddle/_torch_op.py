"""heddle::attention, the custom op that stands for a call under torch.compile, torch.export and fake tensors.

Its arguments are what a graph can hold: the pattern as text (or a name of the package's library), the values of its run-time sizes and
numbers beside their names. A number that is a whole one travels exactly in a float.
"""
from typing import List, Optional, Tuple

import torch

from . import _torch, patterns
from .errors import InvalidArgumentError


@torch.library.custom_op("heddle::attention", mutates_args=())
def attention_op(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, tensors: List[torch.Tensor], pattern: str, pattern_name: str,
                 names: str, sizes: List[int], numbers: List[float], scale: Optional[float], q_origin: Optional[int],
                 k_origin: int, carry_out: Optional[torch.Tensor] = None,
                 carry_lse: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, torch.Tensor]:
    """out [batch, seqlen_q, heads, value_dim] and lse [batch, heads, seqlen_q]. `names`: of the sizes, the numbers, the tensors, with ;
    between the three and , inside each."""
    if _torch.forward_ad._current_level >= 0:
        raise _torch.no_tangents()  # whether a tensor has one cannot be seen in here
    given: list = [sizes, numbers, tensors]
    called = [part.split(",") if part else [] for part in names.split(";")]
    arguments = {name: value for part, values in zip(called, given) for name, value in zip(part, values)}
    made = patterns.pattern(text=pattern, name=pattern_name) if pattern_name else patterns.resolved(pattern)
    carry = None if carry_out is None or carry_lse is None else (carry_out.detach(), carry_lse.detach())
    out, lse = _torch.attention(q.detach(), k.detach(), v.detach(), made, scale, True, None, None, q_origin, k_origin, carry, arguments)
    return out, lse


@attention_op.register_fake
def _fake(q, k, v, tensors, pattern, pattern_name, names, sizes, numbers, scale, q_origin, k_origin, carry_out=None, carry_lse=None):
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


def attention(q, k, v, pattern, scale, return_lse, out, lse, q_origin, k_origin, carry, arguments):
    """The call as a node of a graph."""
    if out is not None or lse is not None:
        raise InvalidArgumentError("attention: out= and lse= are for calls outside of torch.compile and torch.export")
    if isinstance(pattern, str):
        text, name, values = pattern, "", {}
    else:
        text, name, values = pattern.text, pattern.name, dict(pattern.values)
    values.update(arguments)
    tensors = {key: value for key, value in values.items() if isinstance(value, torch.Tensor)}
    numbers = {key: value for key, value in values.items() if isinstance(value, float)}
    sizes = {key: value for key, value in values.items() if key not in tensors and key not in numbers}
    names = ";".join(",".join(part) for part in (sizes, numbers, tensors))
    results = torch.ops.heddle.attention(q, k, v, list(tensors.values()), text, name, names, list(sizes.values()), list(numbers.values()), scale,
                                         q_origin, k_origin, *(carry or ()))
    return (results[0], results[1]) if return_lse else results[0]
