"""heddle::quantize, the custom op that stands for heddle.quantize under torch.compile, torch.export and fake tensors."""
import torch

from . import _quantize, _scales, _torch_nodes, _torch_quantize
from ._torch_nodes import detached

_QUANTIZE = "Tensor q, Tensor k, Tensor v, str pattern, bool smooths_k, Tensor? rotation, int scale_rows, bool v_key_major"
_Node = _torch_nodes.node_of("_QuantizeNode", _QUANTIZE)


def _spec_of(node):
    tensors = {name: detached(getattr(node, name)) for name in ("q", "k", "v", "rotation")}
    return _quantize.QuantizeSpec(**{**node._asdict(), **tensors, "pattern": node.pattern or None})


@torch.library.custom_op("heddle::quantize", mutates_args=(), schema=f"({_QUANTIZE}) -> Tensor[]")
def quantize_op(*given, **named):
    """q, k, v, their scales, and k_mean where k is smoothed. `pattern`: a name or text; "" is none."""
    _torch_nodes.refuse_tangents()
    low = _quantize.quantize(_spec_of(_Node(*given, **named)))
    return [low.q, low.k, low.v, *low.descale, *([] if low.k_mean is None else [low.k_mean])]


@quantize_op.register_fake
def _fake(*given, **named):
    node = _Node(*given, **named)
    spec = _spec_of(node)
    _torch_nodes.check_dimensions(spec.q, spec.k, spec.v)
    _torch_nodes.check_places(node)
    batch, rows, heads, dim = spec.q.shape
    _, keys, kv_heads, value_dim = spec.v.shape
    sizes = dict(batch=batch, seqlen_q=rows, seqlen_k=keys, heads=heads, kv_heads=kv_heads, head_dim=dim, value_dim=value_dim, scale_rows=spec.scale_rows,
                 q_blocks=_scales.blocks(rows, spec.scale_rows), k_blocks=_scales.blocks(keys, spec.scale_rows))
    return [_torch_quantize.made_like(spec.q, role, role.shape(sizes)) for role in _torch_quantize.roles_of(spec)]


_torch_nodes.refuse_vmap(quantize_op)


def quantize(spec):
    """The call as a node of a graph."""
    given = _torch_nodes.tensors_of(spec)
    if torch.is_grad_enabled() and any(each.requires_grad for each in given):
        _torch_nodes.refuse(_torch_quantize.no_gradients)
    pattern = "" if spec.pattern is None else spec.pattern if isinstance(spec.pattern, str) else spec.pattern.text
    results = torch.ops.heddle.quantize(spec.q, spec.k, spec.v, pattern, spec.smooths_k, spec.rotation, spec.scale_rows, spec.v_key_major)
    return _quantize.Quantized(*results[:3], tuple(results[3:6]), *results[6:])
