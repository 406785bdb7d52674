"""What calls compute on a GPU: as near to fp64 as PyTorch's own attention, whatever way they are made."""
import time

import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from cases import cases, reference, same_precision  # noqa: E402
from heddle import nn  # noqa: E402
from heddle.words import causal, full, union  # noqa: E402

pytestmark = pytest.mark.compiler


def share_of_allowed_error(pattern, copies, tensors, out, lse):
    """At most 1: an error of twice that of PyTorch's own attention in this precision. lse within 1e-3, rows that keep nothing exact."""
    name = getattr(pattern, "name", pattern)
    expected, logs = reference(*tensors, copies)
    kept = torch.isfinite(logs)
    allowed = 2 * (same_precision(*tensors, copies) - expected).abs().max().item() + 1e-5
    error = (out.double() - expected).abs().max().item()
    assert error <= allowed, f"{name}: error {error:.2e}, allowed {allowed:.2e}"
    assert (lse.double()[kept] - logs[kept]).abs().max() < 1e-3, f"{name}: lse"
    assert torch.isneginf(lse[~kept]).all() and (out.transpose(1, 2)[~kept] == 0).all(), f"{name}: rows that keep nothing"
    return error / allowed


def test_one_call(place, says):
    worst = 0.0
    for pattern, copies, arguments in cases(place.length, place.device):
        for views in (False, True):
            tensors = place.draw(n=place.length)
            if views:
                tensors = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in tensors]
            out, lse = heddle.attention(*tensors, pattern, return_lse=True, **arguments)
            worst = max(worst, share_of_allowed_error(pattern, copies, tensors, out, lse))
    says(f"worst error {100 * worst:.0f} % of the allowed one")


def test_keys_in_pieces(place, says):
    """Each launch continues the one before."""
    worst = 0.0
    for pattern, copies, arguments in cases(place.length, place.device):
        q, k, v = place.draw(n=place.length)
        carry, cuts = None, (0, 128, 401, place.length)  # the last inside a block or a segment of what has some
        for begin, end in zip(cuts, cuts[1:]):
            made = torch.full_like(q, float("nan"), dtype=torch.float32)
            carry = heddle.attention(q, k[:, begin:end], v[:, begin:end], pattern, k_origin=begin, carry=carry, out=made, return_lse=True, **arguments)
        worst = max(worst, share_of_allowed_error(pattern, copies, (q, k, v), *carry))
    says(f"worst error {100 * worst:.0f} % of the allowed one")


def test_sinks(place):
    q, k, v = place.draw(n=100)
    i = torch.arange(100, device=place.device)
    out, lse = heddle.attention(q, k, v, heddle.pattern(union(causal, sink=0.5)), return_lse=True)
    expected, logs = reference(q, k, v, (i <= i[:, None])[None], sink=0.5)
    assert (lse.double() - logs).abs().max() < 1e-3 and (out.double() - expected).abs().max() < 3e-2


def test_queries_at_the_end(place):
    q, k, v = place.draw(n=100)
    i = torch.arange(100, device=place.device)
    last = heddle.attention(q[:, 90:], k, v, heddle.pattern(causal, q_origin="end"))
    assert (last.double() - reference(q, k, v, (i <= i[:, None])[None])[0][:, 90:]).abs().max() < 3e-2


def test_bad_tensors_are_refused(place):
    q, k, v = place.draw(n=64)
    wrong = [(q, k[:, :, :, :32], v), (q, k.float() if place.on_gpu else k.half(), v), (q[0], k, v), (q, k[:1], v)]
    wrong += [(q, k.cpu(), v), (q[..., ::2], k[..., ::2], v)] if place.on_gpu else []
    for tensors in wrong:
        with pytest.raises(heddle.InvalidArgumentError):
            heddle.attention(*tensors, "causal")


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        return heddle.attention(q * 2, k, v, "sliding_window", left=50) + 1


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.gpu)])
def test_compiled_into_one_graph(place, says, backend):
    q, k, v = place.draw(n=300)
    start = time.perf_counter()
    try:
        compiled = torch.compile(Model(), backend=backend, fullgraph=True)(q, k, v)
    except Exception as error:
        if backend != "inductor" or isinstance(error, heddle.Error):
            raise
        pytest.skip(f"no compiler for inductor's own kernels on this machine: {type(error).__name__}")
    says(f"{time.perf_counter() - start:.1f} s")
    assert torch.equal(compiled, Model()(q, k, v))


def test_exported_for_any_length(place, tmp_path):
    """A program that was written and read again."""
    dynamic = [{1: torch.export.Dim("n", min=2, max=9999)}] * 3
    program = torch.export.export(Model(), tuple(place.draw(n=300)), dynamic_shapes=dynamic)
    torch.export.save(program, tmp_path / "model.pt2")
    again = torch.export.load(tmp_path / "model.pt2").module()
    other = place.draw(n=411)
    assert torch.equal(again(*other), Model()(*other))


@pytest.mark.gpu
def test_tuned(place, says):
    """A search of 4 s files a winner that calls then use."""
    q, k, v = place.draw(batch=1, n=4096, heads=8, kv=8, d=128)
    heddle.attention(q, k, v, "causal")
    winner = heddle.tune("causal", q, k, v, budget=4)
    found = heddle.kernel(q, k, v, "causal")
    assert found.median_us > 0 and found.content_key == winner.content_key, f"{found} is not {winner}"
    out = heddle.attention(q, k, v, "causal")
    sdpa = torch.nn.functional.scaled_dot_product_attention(*(each.transpose(1, 2) for each in (q, k, v)), is_causal=True).transpose(1, 2)
    assert (out.double() - sdpa.double()).abs().max() < 3e-2, "the winner computes something else"
    says(f"{winner.median_us:.1f} us, {winner.match}")


def test_modules_see_nothing_that_comes_later(place):
    module = nn.MultiheadDilatedAttention(256, 4, [1, 2, 4], [64, 128, 512], mixed=True, device=place.device, dtype=place.dtype).eval()
    x = torch.randn(2, 777, 256, device=place.device).to(place.dtype)
    with torch.inference_mode():
        out, _ = module(x, x, x, is_causal=True)
        changed = x.clone()
        changed[:, 500:] = 0
        later, _ = module(changed, changed, changed, is_causal=True)
    assert torch.isfinite(out).all() and torch.equal(out[:, :500], later[:, :500])


def test_flex_attention(place):
    flex = heddle.flex_attention(*(each.transpose(1, 2) for each in place.draw()), block_mask=full, enable_gqa=True)
    assert torch.equal(flex.transpose(1, 2), heddle.attention(*place.draw(), "full"))
