"""heddle::paged_attention and heddle::paged_attention_into, the custom ops that stand for calls of heddle.serve under torch.compile, torch.export
and fake tensors: as those of _torch_op. Lengths, offsets and tables are tensors of the graph, which nothing reads before the launch."""
from . import _torch_nodes, _torch_op, _torch_pages
from ._pages import INTEGERS, PagesSpec
from ._torch_nodes import detached

_PAGES = (f"Tensor q, Tensor k, Tensor v, {', '.join('Tensor? ' + name for name in INTEGERS)}, bool batch_invariant, {_torch_op.CALL}, "
          "Tensor? descale_k=None, Tensor? descale_v=None")


def _compute(node, out, lse):
    """out, of the shape of q with value_dim, and lse [batch of q, heads, rows of q]."""
    made = _torch_op.pattern_of(node)
    q, k, v, *integers = map(detached, node[:3 + len(INTEGERS)])
    spec = PagesSpec(q, k, v, pattern=made, scale=node.scale, out=out, lse=lse, arguments=_torch_op.arguments_of(node, made),
                     descale=_torch_nodes.scales_of(node.descale_k, node.descale_v), batch_invariant=node.batch_invariant,
                     **dict(zip(INTEGERS, integers)))
    return _torch_pages.attention(spec.settled(), True)


_torch_nodes.define("paged_attention", _PAGES, _compute)


def attention(spec, return_lse):
    """The call as a node of a graph."""
    others = _torch_op.parts(spec)
    _torch_nodes.refuse_gradients([*_torch_nodes.tensors_of(spec), *others[0]])
    return _torch_nodes.call("paged_attention", spec, return_lse, (spec.q, spec.k, spec.v, *spec.integers(), spec.batch_invariant, *others,
                                                                   *(spec.descale or (None, None))))
