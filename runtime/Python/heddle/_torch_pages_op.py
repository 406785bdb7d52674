"""heddle::paged_attention, the custom op that stands for calls of heddle.serve under torch.compile, torch.export and fake tensors: as those of
_torch_op. Lengths, offsets and tables are tensors of the graph, which nothing reads before the launch."""
import torch

from . import _torch_op, _torch_pages
from ._pages import INTEGERS, PagesSpec
from .errors import InvalidArgumentError

_PAGES = f"Tensor q, Tensor k, Tensor v, {', '.join('Tensor? ' + name for name in INTEGERS)}, bool batch_invariant, {_torch_op.CALL}"
_Node = _torch_op.node_of("_PagesNode", _PAGES)


@torch.library.custom_op("heddle::paged_attention", mutates_args=(), schema=f"({_PAGES}) -> (Tensor, Tensor)")
def paged_op(*given, **named):
    """out, of the shape of q with value_dim, and lse [batch of q, heads, rows of q]."""
    node = _Node(*given, **named)
    made = _torch_op.pattern_of(node)
    q, k, v, *integers = (each if each is None else each.detach() for each in node[:3 + len(INTEGERS)])
    spec = PagesSpec(q, k, v, pattern=made, scale=node.scale, arguments=_torch_op.arguments_of(node, made), batch_invariant=node.batch_invariant,
                     **dict(zip(INTEGERS, integers)))
    return _torch_pages.attention(spec.settled(), True)


@paged_op.register_fake
def _fake(q, k, v, *_, **__):
    for name, each in (("q", q), ("k", k), ("v", v)):
        torch._check(each.dim() == 4, lambda: f"attention arguments: {name}: expected 4 dimensions, got {each.dim()}")
    batch, rows, heads, _ = q.shape
    return q.new_empty((batch, rows, heads, v.shape[3])), q.new_empty((batch, heads, rows), dtype=torch.float32)


def attention(spec, return_lse):
    """The call as a node of a graph."""
    if spec.out is not None or spec.lse is not None or spec.descale is not None:
        raise InvalidArgumentError(f"{spec.name}: out=, lse= and descale= are for calls outside of torch.compile and torch.export")
    out, lse = torch.ops.heddle.paged_attention(spec.q, spec.k, spec.v, *spec.integers(), spec.batch_invariant, *_torch_op.parts(spec))
    return (out, lse) if return_lse else out
