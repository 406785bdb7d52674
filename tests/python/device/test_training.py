"""Gradients on a GPU: as near to fp64 as plain attention in the same precision, under autograd, torch.compile and in a CUDA graph."""
import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from cases import cases  # noqa: E402

pytestmark = pytest.mark.compiler


def gradients(tensors, copies, d_out, d_lse, dtype=torch.float64):
    """By their formulas; products of `dtype`, the rest of the softmax in at least fp32."""
    group, scale = tensors[0].shape[2] // tensors[1].shape[2], tensors[0].shape[-1] ** -0.5
    wide = torch.promote_types(dtype, torch.float32)
    q, k, v, d_out = (each.to(dtype).transpose(1, 2) for each in (*tensors, d_out))
    k, v = (each.repeat_interleave(group, 1) for each in (k, v))
    scores = (q @ k.mT).to(wide) * scale + copies.to(wide).log()
    weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True).clamp(min=-1e30))
    delta = (d_out.to(wide) * (weights.to(dtype) @ v).to(wide)).sum(-1, keepdim=True) - d_lse.to(wide).unsqueeze(-1)
    d_scores = (weights * ((d_out @ v.mT).to(wide) - delta)).to(dtype)
    of_kv = [each.unflatten(1, (-1, group)).sum(2, dtype=wide) for each in (d_scores.mT @ q * scale, weights.to(dtype).mT @ d_out)]
    return [each.transpose(1, 2) for each in (d_scores @ k * scale, *of_kv)]


def test_autograd(place, says):
    worst = 0.0
    for pattern, copies, arguments in cases(place.length, place.device):
        name = getattr(pattern, "name", pattern)
        if name == "longnet":  # whose weights of branches have no gradient
            continue
        tensors = [each.requires_grad_() for each in place.draw(n=place.length)]
        out, lse = heddle.attention(*tensors, pattern, return_lse=True, **arguments)
        d_out, d_lse = torch.randn_like(out), torch.randn_like(lse)
        found = torch.autograd.grad((out, lse), tensors, (d_out, d_lse))
        with torch.no_grad():
            expected = gradients(tensors, copies, d_out, d_lse)
            plain = gradients(tensors, copies, d_out, d_lse, place.dtype)
        for role, one, two, three in zip(("d_q", "d_k", "d_v"), found, expected, plain):
            allowed = 2 * (three.double() - two).abs().max().item() + 1e-5
            error = (one.double() - two).abs().max().item()
            assert error <= allowed, f"{name}: {role}: error {error:.2e}, allowed {allowed:.2e}"
            worst = max(worst, error / allowed)
    says(f"worst error {100 * worst:.0f} % of the allowed one")


@pytest.mark.gpu
def test_deterministic_gradients_have_the_same_bits_in_every_run(place):
    q, k, v = place.draw(n=1500, heads=8, kv=2)
    out, lse = heddle.attention(q, k, v, "causal", return_lse=True)
    first = heddle.attention_backward(out, q, k, v, out, lse, "causal", deterministic=True)
    for _ in range(20):
        for one, two in zip(first, heddle.attention_backward(out, q, k, v, out, lse, "causal", deterministic=True)):
            assert torch.equal(one, two)
    torch.use_deterministic_algorithms(True)
    try:
        for one, two in zip(first, heddle.attention_backward(out, q, k, v, out, lse, "causal")):
            assert torch.equal(one, two)
    finally:
        torch.use_deterministic_algorithms(False)


def test_gradients_are_added_to_what_is_given(place):
    q, k, v = place.draw(n=500)
    out, lse = heddle.attention(q, k, v, "causal", return_lse=True)
    expected = heddle.attention_backward(out, q, k, v, out, lse, "causal")
    sums = [torch.ones_like(each, dtype=torch.float32) for each in (q, k, v)]
    for first, last in ((0, 128), (128, 500)):
        part = [sums[0], *(each[:, first:last] for each in sums[1:])]
        heddle.attention_backward(out, q, k[:, first:last], v[:, first:last], out, lse, "causal", k_origin=first, add_to=part)
    near([each - 1 for each in sums], [each.float() for each in expected])


def step(q, k, v):
    out, lse = heddle.attention(q * 2, k, v, "sliding_window", left=50, return_lse=True)
    return out.float().square().sum() + lse.sum()


def near(found, expected):
    for one, two in zip(found, expected):
        torch.testing.assert_close(one, two, atol=2e-2 * two.abs().max().item(), rtol=0)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.gpu)])
def test_compiled_into_one_graph_each(place, backend):
    tensors = [each.requires_grad_() for each in place.draw(n=300)]
    try:
        found = torch.autograd.grad(torch.compile(step, backend=backend, fullgraph=True)(*tensors), tensors)
    except Exception as error:
        if backend != "inductor" or isinstance(error, heddle.Error):
            raise
        pytest.skip(f"no compiler for inductor's own kernels on this machine: {type(error).__name__}")
    near(found, torch.autograd.grad(step(*tensors), tensors))


@pytest.mark.gpu
def test_forward_and_backward_in_a_cuda_graph(place):
    tensors = [each.requires_grad_() for each in place.draw(n=300)]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            torch.autograd.grad(step(*tensors), tensors)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = torch.autograd.grad(step(*tensors), tensors)
    with torch.no_grad():
        for mine, new in zip(tensors, place.draw(n=300, seed=1)):
            mine.copy_(new)
    graph.replay()
    near(captured, torch.autograd.grad(step(*tensors), tensors))
