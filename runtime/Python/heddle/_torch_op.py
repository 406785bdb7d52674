"""heddle::attention, heddle::attention_into and heddle::attention_backward, the custom ops that stand for calls under autograd, torch.compile,
torch.export and fake tensors.

Their arguments are what a graph can hold: the pattern as text (or a name of the package's library), the values of its run-time sizes and
numbers beside their names. A number that is a whole one travels exactly in a float.
"""
import torch

from . import _options, _scalars, _torch, _torch_backward, _torch_nodes, patterns
from ._call import CallSpec, GradientSpec
from ._torch_nodes import detached, names_of_tensors, node_of, refuse_tangents
from .errors import UnsupportedError

CALL = ("Tensor[] tensors, str pattern, str pattern_name, str names, SymInt[] sizes, float[] numbers, float? scale, SymInt? q_origin, "
         "SymInt k_origin, str? precision")
_FORWARD = (f"Tensor q, Tensor k, Tensor v, {CALL}, Tensor? carry_out, Tensor? carry_lse, Tensor? descale_q=None, Tensor? descale_k=None, "
            "Tensor? descale_v=None")
_BACKWARD = f"Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor d_out, Tensor? d_lse, {CALL}, str gradients_of"


_Node, _BackwardNode = node_of("_Node", _FORWARD), node_of("_BackwardNode", _BACKWARD)


def pattern_of(node):
    return patterns.pattern(text=node.pattern, name=node.pattern_name) if node.pattern_name else patterns.resolved(node.pattern)


def arguments_of(node, made):
    """By name, of the pattern of the node."""
    names = [part.split(",") if part else [] for part in node.names.split(";")]
    arguments = {name: value for part, values in zip(names, (node.sizes, node.numbers, node.tensors)) for name, value in zip(part, values)}
    return {name: made.checked(name, value) if _is_number(value) else value for name, value in arguments.items()}


def _is_number(value):
    """A tensor without dimensions: what a graph computes of numbers of the pattern. Its tensors have some."""
    return isinstance(value, torch.Tensor) and value.dim() == 0


def _compute(node, out, lse):
    """out [batch, seqlen_q, heads, value_dim] and lse [batch, heads, seqlen_q]. `names`: of the sizes, the numbers, the tensors, with ;
    between the three and , inside each."""
    made = pattern_of(node)
    carry = None if node.carry_out is None or node.carry_lse is None else (detached(node.carry_out), detached(node.carry_lse))
    scales = _torch_nodes.scales_of(node.descale_q, node.descale_k, node.descale_v)
    return _torch.attention(CallSpec(*map(detached, node[:3]), made, scale=node.scale, out=out, lse=lse, q_origin=node.q_origin,
                                     k_origin=node.k_origin, carry=carry, arguments=arguments_of(node, made), precision=node.precision,
                                     descale=scales), True)


attention_op = _torch_nodes.define("attention", _FORWARD, _compute)


@torch.library.custom_op("heddle::attention_backward", mutates_args=(), schema=f"({_BACKWARD}) -> Tensor[]")
def backward_op(*given, **named):
    """d_q, d_k, d_v, and in fp32 those of the pattern's numbers and tensors that gradients_of names, with , between them."""
    refuse_tangents()
    node = _BackwardNode(*given, **named)
    return _compute_gradients(node, pattern_of(node))


def _compute_gradients(node, made):
    tensors = list(map(detached, node[:7]))
    return _torch_backward.gradients(GradientSpec(*tensors[:6], made, tensors[6], node.scale, node.q_origin, node.k_origin,
                                                  tuple(filter(None, node.gradients_of.split(","))), arguments=arguments_of(node, made),
                                                  precision=node.precision))


@backward_op.register_fake
def _fake_backward(*given, **named):
    node = _BackwardNode(*given, **named)
    _torch_nodes.check_places(node)
    tensors = dict(zip(names_of_tensors(node.names), node.tensors))
    wanted = [tensors[name].shape if name in tensors else () for name in filter(None, node.gradients_of.split(","))]
    return [*(each.new_empty(each.shape) for each in node[:3]), *(node.q.new_empty(shape, dtype=torch.float32) for shape in wanted)]


def _save(ctx, node, output, made=None):
    """`made`: the pattern of the node, where that is at hand."""
    ctx.set_materialize_grads(False)
    ctx.wanted = [name for name, each in zip(names_of_tensors(node.names), node.tensors) if each.requires_grad]
    if node.carry_out is not None and "gradient(detached)" in (made or pattern_of(node)).text:
        raise UnsupportedError("carry: a call that continues another has no gradients where the pattern says gradient(detached), whose branches would "
                               "have to be whole; call it under torch.no_grad(), or let the pattern say gradient(full)")
    carry = [] if node.carry_out is None else [node.carry_out, node.carry_lse]
    ctx.save_for_backward(*node[:3], *output, *carry, *node.tensors)
    ctx.call, ctx.has_carry = node[4:13], bool(carry)


def _gradients_of_carry(carry, ends, d_out, d_lse):
    """The earlier call is a key of that lse and that value: of its share of the softmax, in plain PyTorch."""
    (carry_out, carry_lse), (out, lse) = carry, ends
    share = torch.where(torch.isneginf(lse), 0.0, torch.exp(carry_lse - lse))
    d_share = (d_out.float() * (carry_out - out)).sum(-1).transpose(1, 2)
    return share.transpose(1, 2).unsqueeze(-1) * d_out, share * (d_share if d_lse is None else d_share + d_lse)


def _gradients(ctx, d_out, d_lse, run):
    """Those of q, k and v, of the tensors of the pattern, and of a carry; `run` gives those of a call."""
    q, k, v, out, lse, *others = ctx.saved_tensors
    carry, tensors = (others[:2], others[2:]) if ctx.has_carry else ((), others)
    d_out = torch.zeros_like(out) if d_out is None else d_out
    results = run(q, k, v, out, lse, d_out, d_lse, tensors, *ctx.call, ",".join(ctx.wanted))
    found = dict(zip(ctx.wanted, results[3:]))
    names = names_of_tensors(ctx.call[2])
    of_tensors = [found[name].to(each.dtype) if name in found else None for name, each in zip(names, tensors)]
    of_carry = _gradients_of_carry(carry, (out, lse), d_out, d_lse) if ctx.has_carry else (None, None)
    return results[:3], of_tensors, of_carry


def _backward(ctx, d_out, d_lse):
    of_inputs, of_tensors, of_carry = _gradients(ctx, d_out, d_lse, backward_op)
    no_others = ([] if isinstance(each, list) and not each else None for each in ctx.call)  # PyTorch takes any empty list for one of tensors
    found = (*of_inputs, of_tensors, *no_others, *of_carry)
    return found + (None,) * (len(ctx.needs_input_grad) - len(found))  # of scales, which PyTorch leaves out where they are None


attention_op.register_autograd(_backward, setup_context=lambda ctx, inputs, output: _save(ctx, _Node(*inputs), output))


_torch_nodes.refuse_vmap(backward_op)


def _no_second_derivatives(ctx, *gradients):
    raise UnsupportedError("heddle has no second derivatives: gradients of attention have none of their own; detach() them where they are used, or leave "
                           "create_graph=True out")


backward_op.register_autograd(_no_second_derivatives)


def parts(spec):
    """Tensors of the pattern, and what a node has behind them."""
    if isinstance(spec.pattern, str):
        text, name, values = spec.pattern, "", {}
    else:
        text, name, values = spec.pattern.text, spec.pattern.name, dict(spec.pattern.values)
    values.update(spec.arguments)
    tensors = {key: value for key, value in values.items() if isinstance(value, torch.Tensor)}
    numbers = {key: value for key, value in values.items() if isinstance(value, float)}
    sizes = {key: value for key, value in values.items() if key not in tensors and key not in numbers}
    for key, value in tensors.items():
        if _is_number(value) and value.requires_grad and torch.is_grad_enabled():
            raise _options.bad(f"{key}: expected a number, got a tensor {_scalars.OWES_GRADIENT}")
    if isinstance(spec.scale, torch.Tensor):
        raise _options.bad("scale: expected a number, which a graph holds, got a tensor; q times it, with scale=1.0, is the same")
    names = ";".join(",".join(part) for part in (sizes, numbers, tensors))
    return (list(tensors.values()), text, name, names, list(sizes.values()), list(numbers.values()), spec.scale, spec.q_origin, spec.k_origin,
            spec.precision)


def attention(spec, return_lse):
    """The call as a node of a graph."""
    others, given = parts(spec), _torch_nodes.tensors_of(spec)
    if _torch.wants_gradients(spec):
        _refuse_types(spec)
    if spec.out is not None or spec.lse is not None or spec.descale is not None:
        _torch_nodes.refuse_gradients([*given, *others[0]])
    return _torch_nodes.call("attention", spec, return_lse, (spec.q, spec.k, spec.v, *others, *(spec.carry or (None, None)),
                                                             *(spec.descale or (None, None, None))))


def _refuse_types(spec):
    """That have no gradients."""
    for name, each in (("q", spec.q), ("k", spec.k), ("v", spec.v)):
        if _torch_nodes.type_of_out(each.dtype) != each.dtype:
            _torch_nodes.refuse(UnsupportedError, f"{name} of {each.dtype} has no gradients: give detached ones, or those of bfloat16 or float16")


class _Recorded(torch.autograd.Function):
    """What the op's own node does, in a fraction of the host's time."""

    @staticmethod
    def forward(ctx, spec, q, k, v, carry_out, carry_lse, *tensors):
        results = _torch.attention(spec, True)
        ctx.pattern = spec.pattern
        _save(ctx, _Node(q, k, v, *parts(spec), carry_out, carry_lse), results, spec.pattern)
        return results

    @staticmethod
    def backward(ctx, d_out, d_lse):
        # With create_graph=True the gradients get a node that refuses second ones.
        run = backward_op if torch.is_grad_enabled() else lambda *given: _compute_gradients(_BackwardNode(*given), ctx.pattern)
        of_inputs, of_tensors, of_carry = _gradients(ctx, d_out, d_lse, run)
        return (None, *of_inputs, *of_carry, *of_tensors)


def recorded(spec, return_lse):
    """The call as autograd sees it, outside of any other graph."""
    _torch.refuse_transforms()
    refuse_tangents()
    for name in ("q", "k", "v"):
        _torch.view(getattr(spec, name), name)
    _refuse_types(spec)
    out, lse = _Recorded.apply(spec, spec.q, spec.k, spec.v, *(spec.carry or (None, None)), *parts(spec)[0])
    return (out, lse) if return_lse else out


def backward(spec):
    """d_q, d_k, d_v and the others of a call backward, as a node of a graph."""
    return torch.ops.heddle.attention_backward(spec.q, spec.k, spec.v, spec.out, spec.lse, spec.d_out, spec.d_lse, *parts(spec), ",".join(spec.gradients_of))
