"""heddle.serve in host memory with k and v of e4m3 beside q of bf16 and fp16."""
import pytest

torch = pytest.importorskip("torch")
if not hasattr(torch, "float8_e4m3fn"):
    pytest.skip("this PyTorch has no float8_e4m3fn", allow_module_level=True)

from heddle import errors, serve  # noqa: E402

pytestmark = pytest.mark.compiler

HEADS, KV_HEADS, DIM, SIZE = 4, 2, 32, 16
LENGTHS = (40, 0, 17)


class Cache:
    def __init__(self, dtype=torch.bfloat16):
        torch.manual_seed(0)
        self.q = torch.randn(len(LENGTHS), 1, HEADS, DIM).to(dtype)
        self.k, self.v = (torch.randn(8, SIZE, KV_HEADS, DIM).to(torch.float8_e4m3fn) for _ in range(2))
        self.table = torch.tensor([[5, 2, 7], [0, 0, 0], [1, 4, 0]], dtype=torch.int32)
        self.lengths = torch.tensor(LENGTHS, dtype=torch.int32)
        self.scales = [torch.rand(len(LENGTHS), KV_HEADS) + 0.5 for _ in range(2)]

    def expected(self, sequence):
        """By fp32 tensors of the same numbers."""
        k, v = (each[self.table[sequence].long()].float().reshape(1, -1, KV_HEADS, DIM) * scale[sequence][None, None, :, None]
                for each, scale in zip((self.k, self.v), self.scales))
        rows = torch.tensor([0, LENGTHS[sequence]], dtype=torch.int32)
        return serve.ragged_attention(self.q[sequence:sequence + 1].float(), k[:, :LENGTHS[sequence]], v[:, :LENGTHS[sequence]], rows, "causal", return_lse=True)

    def call(self, **options):
        return serve.paged_attention(self.q, self.k, self.v, self.table, self.lengths, "causal", **{"descale": self.scales, **options})


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_pages_with_a_scale_for_each_sequence_and_kv_head(dtype):
    cache = Cache(dtype)
    out, lse = cache.call(return_lse=True)
    assert out.dtype == dtype and not out[1].any()
    for sequence in (0, 2):
        wanted, wanted_lse = cache.expected(sequence)
        assert torch.allclose(out[sequence].float(), wanted[0], rtol=2**-7, atol=1e-5) and torch.allclose(lse[sequence], wanted_lse[0], atol=1e-4)


def test_scales_are_read_again_and_may_lack():
    cache = Cache()
    cache.call()
    cache.scales = [2 * each for each in cache.scales]
    assert torch.allclose(cache.call().float()[0], cache.expected(0)[0][0], rtol=2**-7, atol=1e-5)
    ones = [torch.ones_like(each) for each in cache.scales]
    assert torch.equal(cache.call(descale=None), cache.call(descale=ones))
    assert torch.equal(cache.call(descale=(ones[0], None)), cache.call(descale=ones))


def test_rows_have_them_too():
    cache, cu = Cache(), torch.tensor([0, 9, 9, 20], dtype=torch.int32)
    k, v = (each.reshape(1, -1, KV_HEADS, DIM)[:, :20] for each in (cache.k, cache.v))
    out = serve.ragged_attention(cache.q, k, v, cu, "full", descale=cache.scales)
    k, v = (each.float()[:, 9:20] * scale[2][None, None, :, None] for each, scale in zip((k, v), cache.scales))
    wanted = serve.ragged_attention(cache.q[2:].float(), k, v, torch.tensor([0, 11], dtype=torch.int32), "full")
    assert torch.allclose(out[2].float(), wanted[0], rtol=2**-7, atol=1e-5)


@pytest.mark.parametrize("descale, says", [
    ((1.0,), "descale: expected two scales, of k and v"),
    ((torch.ones(3, HEADS), None), r"descale_k: expected row-major fp32 of \[3, 2\] \(sequences, kv_heads\)"),
    ((None, -torch.ones(3, KV_HEADS)), "descale_v: element 0: expected a finite number above 0, got -1"),
])
def test_bad_scales_are_named(descale, says):
    with pytest.raises(errors.InvalidArgumentError, match=says):
        Cache().call(descale=descale)


def test_other_elements_have_no_scales_and_q_of_other_types_no_such_keys():
    cache = Cache()
    cache.k, cache.v = cache.k.bfloat16(), cache.v.bfloat16()
    with pytest.raises(errors.InvalidArgumentError, match="descale_k: expected null beside k of bf16, which has no scales"):
        cache.call()
    with pytest.raises(errors.InvalidArgumentError, match="k: dtype: expected fp32 as q, got e4m3"):
        Cache(torch.float32).call()
