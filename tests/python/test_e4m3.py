"""q, k and v of e4m3: scales, the type of out, and what is refused."""
import pytest

torch = pytest.importorskip("torch")
if not hasattr(torch, "float8_e4m3fn"):
    pytest.skip("this PyTorch has no float8_e4m3fn", allow_module_level=True)

import heddle  # noqa: E402
from heddle import errors  # noqa: E402

pytestmark = pytest.mark.compiler

BATCH, ROWS, HEADS, KV_HEADS, DIM = 2, 130, 4, 2, 32


def tensors():
    torch.manual_seed(0)
    heads = (HEADS, KV_HEADS, KV_HEADS)
    return [torch.randn(BATCH, ROWS, count, DIM).to(torch.float8_e4m3fn) for count in heads], [torch.rand(BATCH, count) + 0.5 for count in heads]


def expected(q, k, v, scales):
    q, k, v = (each.float() * scale[:, None, :, None] for each, scale in zip((q, k, v), scales))
    return heddle.attention(q, k, v, "causal", return_lse=True)


def test_scales_multiply_the_elements_of_their_heads():
    (q, k, v), scales = tensors()
    out, lse = heddle.attention(q, k, v, "causal", descale=scales, return_lse=True)
    wanted, wanted_lse = expected(q, k, v, scales)
    assert out.dtype == torch.bfloat16 and out.shape == (BATCH, ROWS, HEADS, DIM)
    assert torch.allclose(out.float(), wanted, rtol=2**-8, atol=1e-5) and torch.allclose(lse, wanted_lse, atol=1e-4)


def test_scales_may_lack_and_are_read_again_by_later_calls():
    (q, k, v), scales = tensors()
    ones = [torch.ones_like(each) for each in scales]
    plain = heddle.attention(q, k, v, "causal")
    assert torch.equal(plain, heddle.attention(q, k, v, "causal", descale=ones))
    only_of_values = heddle.attention(q, k, v, "causal", descale=(None, None, scales[2]))
    assert torch.allclose(only_of_values.float(), expected(q, k, v, (ones[0], ones[1], scales[2]))[0], rtol=2**-7, atol=1e-5)
    twice = [2 * scales[0], *scales[1:]]
    heddle.attention(q, k, v, "causal", descale=scales)
    assert torch.allclose(heddle.attention(q, k, v, "causal", descale=twice).float(), expected(q, k, v, twice)[0], rtol=2**-7, atol=1e-5)


def test_prepared_calls_have_them_too():
    (q, k, v), scales = tensors()
    prepared = heddle.prepare(q, k, v, "causal", descale=scales)
    assert torch.equal(prepared(), heddle.attention(q, k, v, "causal", descale=scales))
    assert prepared.lse is None
    prepared = heddle.prepare(q, k, v, "causal", descale=scales, precision="exact")
    prepared()
    assert torch.equal(prepared.lse, heddle.attention(q, k, v, "causal", descale=scales, return_lse=True)[1])


def test_fast_weights_are_of_a_gpu_and_of_e4m3():
    (q, k, v), scales = tensors()
    assert torch.equal(heddle.attention(q, k, v, "causal", descale=scales, precision="fast"), heddle.attention(q, k, v, "causal", descale=scales))
    with pytest.raises(errors.InvalidArgumentError, match="precision: 'fast' is for e4m3; q is bf16"):
        heddle.attention(*(each.bfloat16() for each in (q, k, v)), "causal", precision="fast")


@pytest.mark.parametrize("descale, says", [
    ((1.0,), "descale: expected three scales"),
    ((torch.ones(BATCH, HEADS), None, torch.ones(BATCH, HEADS)), "descale_v: expected row-major fp32 of [2, 2]"),
    ((torch.ones(BATCH, HEADS, dtype=torch.float64), None, None), "descale_q: expected row-major fp32 of [2, 4]"),
])
def test_bad_scales_are_named(descale, says):
    (q, k, v), _ = tensors()
    with pytest.raises(errors.InvalidArgumentError) as raised:
        heddle.attention(q, k, v, "causal", descale=descale)
    assert says in str(raised.value)


def test_other_elements_have_no_scales_and_e4m3_no_gradients():
    (q, k, v), scales = tensors()
    with pytest.raises(errors.InvalidArgumentError, match="descale_q: expected null beside q of bf16, which has no scales"):
        heddle.attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), "causal", descale=scales)
    with pytest.raises(errors.UnsupportedError, match="has no gradients"):
        heddle.attention(q.requires_grad_(), k, v, "causal", descale=scales)


@pytest.mark.parametrize("types, says", [
    (("fp32", "e4m3", "e4m3"), "k: dtype: expected fp32 as q, got e4m3"),
    (("bf16", "e4m3", "bf16"), "v: dtype: expected e4m3, got bf16"),
    (("bf16", "bf16", "e4m3"), "v: dtype: expected bf16 as q, got e4m3"),
    (("e4m3", "bf16", "bf16"), "k: dtype: expected e4m3 as q, got bf16"),
    (("e4m3", "e4m3", "bf16"), "v: dtype: expected e4m3 as q, got bf16"),
    (("e4m3", "e4m3", "e5m2"), "v: dtype: expected bf16, fp16, fp32 or e4m3, got torch.float8_e5m2"),
])
def test_types_that_no_kernel_mixes_are_named(types, says):
    known = {"fp32": torch.float32, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
    mixed = [each.to(known[name]) for each, name in zip((of.float() for of in tensors()[0]), types)]
    with pytest.raises(errors.InvalidArgumentError) as raised:
        heddle.attention(*mixed, "causal")
    assert says in str(raised.value)


@pytest.mark.parametrize("dtype, bound", [(torch.bfloat16, 2**-8), (torch.float16, 2**-11), (torch.float32, 1e-5)])
def test_out_is_rounded_once_to_the_type_that_is_given(dtype, bound):
    (q, k, v), scales = tensors()
    out = torch.empty(q.shape, dtype=dtype)
    assert heddle.attention(q, k, v, "causal", descale=scales, out=out) is out
    assert torch.allclose(out.float(), expected(q, k, v, scales)[0], rtol=bound, atol=1e-5)


def test_out_of_a_type_that_no_kernel_writes_is_named():
    (q, k, v), _ = tensors()
    for others, dtype, says in ((torch.float8_e4m3fn, torch.float8_e4m3fn, "expected bf16, fp16 or fp32, got e4m3"),
                                (torch.bfloat16, torch.float16, "expected bf16 or fp32, got fp16")):
        with pytest.raises(errors.InvalidArgumentError) as raised:
            heddle.attention(*(each.to(others) for each in (q, k, v)), "causal", out=torch.empty(q.shape).to(dtype))
        assert f"out: dtype: {says}" in str(raised.value)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), float("nan")])
def test_scales_that_are_not_finite_and_above_0_are_named(bad):
    (q, k, v), scales = tensors()
    scales[1][1, 0] = bad
    for call in (heddle.attention, heddle.prepare):
        with pytest.raises(errors.InvalidArgumentError, match="descale_k: element 2: expected a finite number above 0, got"):
            call(q, k, v, "causal", descale=scales)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_k_and_v_alone_may_be_of_it(dtype):
    (q, k, v), scales = tensors()
    q = q.to(dtype)
    out, lse = heddle.attention(q, k, v, "causal", descale=(None, *scales[1:]), return_lse=True)
    wanted, wanted_lse = expected(q, k, v, (torch.ones_like(scales[0]), *scales[1:]))
    assert out.dtype == dtype and torch.allclose(out.float(), wanted, rtol=2**-7, atol=1e-5) and torch.allclose(lse, wanted_lse, atol=1e-4)
    with pytest.raises(errors.InvalidArgumentError, match="descale_q: expected null beside q of"):
        heddle.attention(q, k, v, "causal", descale=scales)
    with pytest.raises(errors.UnsupportedError, match="k of torch.float8_e4m3fn has no gradients"):
        heddle.attention(q.requires_grad_(), k, v, "causal", descale=(None, *scales[1:]))
