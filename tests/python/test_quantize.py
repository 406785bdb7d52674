"""heddle.quantize: what PyTorch makes of the same numbers, calls that read it, what is refused."""
import math

import pytest

torch = pytest.importorskip("torch")
if not hasattr(torch, "float8_e4m3fn"):
    pytest.skip("this PyTorch has no float8_e4m3fn", allow_module_level=True)

import heddle  # noqa: E402
from heddle import errors  # noqa: E402

pytestmark = pytest.mark.compiler


def tensors(dtype=torch.bfloat16):
    torch.manual_seed(0)
    return [torch.randn(2, rows, heads, dim).to(dtype) for rows, heads, dim in ((50, 4, 32), (70, 2, 32), (70, 2, 48))]


def expected(tensor):
    scale = tensor.float().abs().amax(dim=(1, 3)) / 448
    return (tensor.float() * (1 / scale)[:, None, :, None]).clamp(-448, 448).to(torch.float8_e4m3fn), scale


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_elements_and_scales_are_those_of_each_head(dtype):
    given = tensors(dtype)
    low = heddle.quantize(*given)
    for tensor, quantized, scale in zip(given, (low.q, low.k, low.v), low.descale):
        wanted, wanted_scale = expected(tensor)
        assert quantized.dtype == torch.float8_e4m3fn and quantized.shape == tensor.shape and torch.equal(scale, wanted_scale)
        assert torch.equal(quantized.view(torch.uint8), wanted.view(torch.uint8))


def expected_blocks(tensor, rows):
    scales = torch.stack([block.float().abs().amax(dim=(1, 3)) / 448 for block in tensor.split(rows, 1)], 2)
    factors = (1 / scales).repeat_interleave(rows, 2)[:, :, :tensor.shape[1]].transpose(1, 2)[..., None]
    return (tensor.float() * factors).clamp(-448, 448).to(torch.float8_e4m3fn), scales


@pytest.mark.parametrize("rows", [64, 128])
def test_blocks_of_rows_of_q_and_k_have_scales_of_their_own(rows):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, length, heads, 32) for length, heads in ((130, 4), (300, 2), (300, 2)))
    q[0, 3], k[1, 70] = 1000, -500
    low = heddle.quantize(q, k, v, scale_rows=rows)
    for tensor, quantized, scale in zip((q, k), (low.q, low.k), low.descale):
        wanted, wanted_scale = expected_blocks(tensor, rows)
        assert scale.shape == wanted_scale.shape and torch.equal(scale, wanted_scale)
        assert torch.equal(quantized.view(torch.uint8), wanted.view(torch.uint8))
    assert torch.equal(low.v.view(torch.uint8), expected(v)[0].view(torch.uint8)) and low.descale[2].shape == (2, 2)
    smoothed = heddle.quantize(q, k, v, "causal", smooth_k=True, scale_rows=rows)
    assert torch.allclose(smoothed.k_mean, k.mean(1), atol=1e-3) and smoothed.descale[1].shape == low.descale[1].shape


def test_calls_multiply_by_the_scales_of_rows_and_keys():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, length, heads, 32) for length, heads in ((130, 4), (300, 2), (300, 2)))
    q[:, 3] *= 1e5  # beside it others are 0, in its block alone
    wanted = heddle.attention(q, k, v, "full")
    by_heads, by_blocks = heddle.quantize(q, k, v), heddle.quantize(q, k, v, scale_rows=64)
    errors_of = [(heddle.attention(*low[:3], "full", descale=low.descale).float() - wanted)[:, 64:].square().mean() for low in (by_heads, by_blocks)]
    assert errors_of[1] < errors_of[0] / 10
    rows = [(low * scale.repeat_interleave(64, 2)[:, :, :low.shape[1]].transpose(1, 2)[..., None])
            for low, scale in ((by_blocks.q.float(), by_blocks.descale[0]), (by_blocks.k.float(), by_blocks.descale[1]))]
    exact = heddle.attention(*rows, by_blocks.v.float() * by_blocks.descale[2][:, None, :, None], "full")
    assert torch.allclose(heddle.attention(*by_blocks[:3], "full", descale=by_blocks.descale).float(), exact, rtol=2**-7, atol=1e-4)
    prepared = heddle.prepare(*by_blocks[:3], "full", descale=by_blocks.descale)
    assert torch.equal(prepared(), heddle.attention(*by_blocks[:3], "full", descale=by_blocks.descale))


def test_scales_of_whole_tensors_and_of_q_by_kv_head():
    low = heddle.quantize(*(torch.randn(2, 20, heads, 16) for heads in (4, 2, 2)))
    def call(*descale):
        return heddle.attention(*low[:3], "causal", descale=descale)

    of_heads = torch.full((2, 4), 0.5), torch.full((2, 2), 0.25), torch.full((2, 2), 2.0)
    expected = call(*of_heads)
    assert torch.equal(call(0.5, torch.tensor(0.25), torch.tensor([2.0])), expected)
    by_group = torch.tensor([[0.5, 1], [0.25, 2]])
    assert torch.equal(call(by_group, *of_heads[1:]), call(by_group.repeat_interleave(2, 1), *of_heads[1:]))
    assert torch.equal(call(None, None, None), call(1, 1.0, torch.tensor(1.0)))
    for wrong in (torch.ones(2, 3), -1, float("nan"), "one", True):
        with pytest.raises(errors.InvalidArgumentError, match="descale_q"):
            call(wrong, *of_heads[1:])
    with pytest.raises(errors.InvalidArgumentError, match="k: expected a tensor of the same library as q, list"):
        heddle.attention([1], low.k, low.v, "causal", descale=(1, 1, 1))


@pytest.mark.parametrize("call, match", [
    (lambda q: heddle.quantize(q, q, q, scale_rows=64.0), "scale_rows: expected 0, 64 or 128, got 64.0"),
    (lambda q: heddle.random_signs("a"), "head_dim: expected an int of 1 or more, got 'a'"),
    (lambda q: heddle.random_signs(-1), "head_dim: expected an int of 1 or more, got -1"),
    (lambda q: heddle.random_signs(16, 0.5), "seed: expected an int of 0 or more, got 0.5")])
def test_numbers_that_are_none_are_named(call, match):
    with pytest.raises(errors.InvalidArgumentError, match=match):
        call(torch.randn(1, 20, 2, 16))


def test_scales_of_blocks_are_refused_with_what_fits():
    q, k, v = tensors()
    with pytest.raises(errors.InvalidArgumentError, match="scale_rows: expected 0, 64 or 128, got 32"):
        heddle.quantize(q, k, v, scale_rows=32)
    low = heddle.quantize(q, k, v, scale_rows=64)
    assert low.descale[0].shape == (2, 4, 1) and low.descale[1].shape == (2, 2, 2)
    with pytest.raises(errors.InvalidArgumentError, match=r"descale: expected scales of q and k .* of 64 or 128 rows of both, got \[2, 4, 3\] beside 50"):
        heddle.attention(*low[:3], "full", descale=(torch.ones(2, 4, 3), *low.descale[1:]))
    with pytest.raises(errors.InvalidArgumentError, match=r"descale_v: expected row-major fp32 of \[2, 2\]"):
        heddle.attention(*low[:3], "full", descale=(*low.descale[:2], torch.ones(2, 2, 2)))


def test_calls_read_what_it_gives():
    q, k, v = tensors()
    low = heddle.quantize(q, k, v)
    out = heddle.attention(low.q, low.k, low.v, "full", descale=low.descale)
    near = heddle.attention(q, k, v, "full")
    assert (out.float() - near.float()).square().mean().sqrt() < 0.05 * near.float().square().mean().sqrt()


def test_views_are_read_in_place_and_tensors_may_be_empty():
    q, k, v = tensors()
    both = torch.stack((k, k), 3)  # a fused projection
    turned = q.transpose(1, 2).contiguous().transpose(1, 2)
    low, view = heddle.quantize(q, k, v), heddle.quantize(turned, both[:, :, :, 1], v)
    for a, b in zip((*low[:3], *low.descale), (*view[:3], *view.descale)):
        assert torch.equal(a.view(torch.uint8), b.view(torch.uint8))
    none = heddle.quantize(q[:, :0], k, v)
    assert none.q.shape == (2, 0, 4, 32) and torch.equal(none.descale[0], torch.ones(2, 4)) and torch.equal(none.descale[1], low.descale[1])


def test_infinity_and_nan_become_nan_and_others_are_as_without_them():
    q, k, v = tensors()
    plain = heddle.quantize(q, k, v)
    k[0, 3, 1, 5], k[1, 4, 0, 6] = math.inf, math.nan
    low = heddle.quantize(q, k, v)
    found = low.k.float().isnan()
    assert found.sum() == 2 and found[0, 3, 1, 5] and found[1, 4, 0, 6]
    assert torch.equal(low.k.float()[~found], plain.k.float()[~found])


def test_k_less_its_mean_gives_the_same_weights_and_smaller_steps():
    q, k, v = tensors()
    k += (torch.arange(32) % 5 * 8.0).bfloat16()
    wanted, wanted_lse = heddle.attention(q, k, v, "causal", return_lse=True)
    plain, low = heddle.quantize(q, k, v), heddle.quantize(q, k, v, "causal", smooth_k=True)
    assert plain.k_mean is None and low.k_mean.shape == (2, 2, 32) and torch.allclose(low.k_mean, k.float().mean(1), atol=1e-4)
    assert (low.descale[1] < plain.descale[1] / 4).all() and torch.equal(low.descale[0], plain.descale[0])
    errors_of = [(heddle.attention(*each[:3], "causal", descale=each.descale).float() - wanted.float()).square().mean() for each in (plain, low)]
    assert errors_of[1] < errors_of[0] / 10
    _, lse = heddle.attention(*low[:3], "causal", descale=low.descale, return_lse=True)
    lacking = torch.einsum("bihd,bhd->bhi", q.float(), low.k_mean.repeat_interleave(2, 1)) / 32**0.5
    assert torch.allclose(lse + lacking, wanted_lse, atol=0.3)


def test_rotated_rows_have_the_same_scores_and_outliers_cost_less():
    q, k, v = tensors(torch.float32)
    for tensor in (q, k):
        tensor[..., 7] *= 50
    wanted = heddle.attention(q, k, v, "full")
    signs = heddle.random_signs(32, seed=4)
    plain, low = heddle.quantize(q, k, v), heddle.quantize(q, k, v, rotation=signs)
    errors_of = [(heddle.attention(*each[:3], "full", descale=each.descale).float() - wanted).square().mean() for each in (plain, low)]
    assert errors_of[1] < errors_of[0] / 4
    assert torch.equal(low.v.view(torch.uint8), plain.v.view(torch.uint8)) and torch.equal(low.descale[2], plain.descale[2])
    matrix = torch.tensor([[(-1.0) ** bin(i & j).count("1") for j in range(32)] for i in range(32)], dtype=torch.float64)
    rotated = (k.double() * signs) @ matrix / 32**0.5
    assert torch.allclose(low.descale[1].double(), rotated.abs().amax(dim=(1, 3)) / 448, rtol=1e-6)
    assert torch.allclose(low.k.double() * low.descale[1][:, None, :, None].double(), rotated, rtol=1 / 15, atol=2**-10 * low.descale[1].max().item())
    smoothed = heddle.quantize(q, k, v, "full", smooth_k=True, rotation=signs)
    assert torch.allclose(smoothed.k_mean.double(), rotated.mean(1), atol=1e-3)


def test_signs_are_those_of_the_command_line():
    signs = heddle.random_signs(16, seed=1)
    assert signs.dtype == torch.float32 and signs.tolist() == [-1, 1, 1, 1, 1, 1, 1, 1, -1, 1, 1, 1, -1, -1, -1, -1]
    assert not torch.equal(heddle.random_signs(64, 2), heddle.random_signs(64, 3)) and torch.equal(heddle.random_signs(64, 2), heddle.random_signs(64, 2))


def test_a_rotation_is_of_signs_in_fp32():
    q, k, v = tensors()
    with pytest.raises(errors.InvalidArgumentError, match=r"rotation: expected row-major fp32 of \[32\] \(head_dim\), got bf16 of \[32\]"):
        heddle.quantize(q, k, v, rotation=torch.ones(32).bfloat16())
    with pytest.raises(errors.InvalidArgumentError, match=r"rotation: expected row-major fp32 of \[32\] \(head_dim\), got fp32 of \[16\]"):
        heddle.quantize(q, k, v, rotation=torch.ones(16))
    with pytest.raises(errors.InvalidArgumentError, match="rotation: element 31: expected 1 or -1, got 2"):
        heddle.quantize(q, k, v, rotation=torch.cat((torch.ones(31), torch.full((1,), 2.0))))
    with pytest.raises(errors.InvalidArgumentError, match="rotation: expected a PyTorch tensor as q, got list"):
        heddle.quantize(q, k, v, rotation=[1.0] * 32)


@pytest.mark.parametrize("pattern, of, says", [
    ("softcap", errors.UnsupportedError, "smooth_k: beside softcap a number"), ("sink", errors.UnsupportedError, "smooth_k: beside sink a number"),
    (None, errors.InvalidArgumentError, "smooth_k: expected the pattern of the calls")])
def test_smoothing_is_refused_where_weights_see_it(pattern, of, says):
    with pytest.raises(of, match=says):
        heddle.quantize(*tensors(), pattern, smooth_k=True)


def test_what_is_refused_says_what_works():
    q, k, v = tensors()
    with pytest.raises(errors.UnsupportedError, match="expected PyTorch tensors, got list"):
        heddle.quantize([1], k, v)
    with pytest.raises(errors.InvalidArgumentError, match="k: expected a PyTorch tensor as q"):
        heddle.quantize(q, None, v)
    with pytest.raises(errors.InvalidArgumentError, match="k: size of batch: expected 2, got 1"):
        heddle.quantize(q, k[:1], v)
    with pytest.raises(errors.InvalidArgumentError, match="k: dtype: expected bf16 as q, got fp16"):
        heddle.quantize(q, k.half(), v)
    low = heddle.quantize(q, k, v)
    with pytest.raises(errors.UnsupportedError, match="calls of kind quantize take bf16, fp16 or fp32, not e4m3"):
        heddle.quantize(low.q, low.k, low.v)
    with pytest.raises(errors.UnsupportedError, match="quantize has no gradients"):
        heddle.quantize(q.requires_grad_(), k, v)


@pytest.mark.parametrize("rows", [64, 70])
def test_values_that_are_written_key_major_are_read_as_they_lie(rows):
    q, k, v = tensors()
    k, v = k[:, :rows], v[:, :rows]
    plain, low = heddle.quantize(q, k, v), heddle.quantize(q, k, v, v_key_major=True)
    assert low.v.shape == v.shape and low.v.stride(1) == 1 and all(low.v.stride(dim) % 16 == 0 for dim in (0, 2, 3))
    assert torch.equal(low.v.view(torch.uint8), plain.v.view(torch.uint8)) and torch.equal(low.q.view(torch.uint8), plain.q.view(torch.uint8))
    out, lse = heddle.attention(low.q, low.k, low.v, "causal", descale=low.descale, return_lse=True)
    wanted = heddle.attention(plain.q, plain.k, plain.v, "causal", descale=plain.descale, return_lse=True)
    assert torch.equal(out, wanted[0]) and torch.equal(lse, wanted[1])
    transposed = plain.v.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)  # nobody asked for it
    assert torch.equal(heddle.attention(low.q, low.k, transposed, "causal", descale=low.descale), wanted[0])
    assert torch.equal(heddle.prepare(low.q, low.k, transposed, "causal", descale=low.descale)(), wanted[0])
    rotated = heddle.quantize(q, k, v, rotation=heddle.random_signs(32), v_key_major=True)
    assert torch.equal(rotated.v.view(torch.uint8), plain.v.view(torch.uint8))


def test_values_of_other_elements_lie_as_rows_of_dimensions():
    q, k, v = tensors()
    transposed = v.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    with pytest.raises(errors.InvalidArgumentError, match="v: stride of dim: expected 1, got 70; make the tensor contiguous in dim"):
        heddle.attention(q, k, transposed, "causal")
    low = heddle.quantize(q, k, v, v_key_major=True)
    with pytest.raises(errors.UnsupportedError, match="v that lies key-major beside q, k and v of e4m3, not beside bf16, e4m3 and e4m3"):
        heddle.attention(q, low.k, low.v, "causal", descale=(None, *low.descale[1:]))
    with pytest.raises(errors.InvalidArgumentError, match="v: size of row: expected 70, got 64"):
        heddle.attention(low.q, low.k, low.v[:, :64], "causal", descale=low.descale)


class LowCall(torch.nn.Module):
    def forward(self, q, k, v):
        low = heddle.quantize(q, k, v, v_key_major=True)
        return low.v, heddle.attention(low.q, low.k, low.v, "causal", descale=low.descale)


@pytest.mark.parametrize("strict", [False, True])
def test_exported_programs_with_values_key_major_take_multiples_of_16_keys(strict):
    def draw(rows, keys):
        torch.manual_seed(rows)
        return [torch.randn(2, each, heads, 32).bfloat16() for each, heads in ((rows, 4), (keys, 2), (keys, 2))]
    rows, keys = torch.export.Dim("rows", min=2, max=4096), 16 * torch.export.Dim("blocks", min=1, max=256)
    program = torch.export.export(LowCall(), tuple(draw(50, 48)), dynamic_shapes=({1: rows}, {1: keys}, {1: keys}), strict=strict).module()
    for given in (draw(50, 48), draw(7, 16), draw(33, 160)):
        for got, wanted in zip(program(*given), LowCall()(*given)):
            assert got.stride() == wanted.stride() and torch.equal(got.float(), wanted.float())
