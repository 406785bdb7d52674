"""Caches of e4m3 beside q in bf16 and fp16: results of heddle.serve and heddle.attention against fp64."""
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
if not hasattr(torch, "float8_e4m3fn"):
    pytest.skip("this PyTorch has no float8_e4m3fn", allow_module_level=True)

import heddle  # noqa: E402
from heddle import serve  # noqa: E402
from heddle.words import causal  # noqa: E402
from pages import Pages, reference, worst_error  # noqa: E402
from test_serving import ARGUMENTS, LIMITS, PATTERNS, offsets, queries  # noqa: E402

pytestmark = pytest.mark.compiler

TYPES = (torch.bfloat16, torch.float16)


def beside(place, dtype):
    """The place with q of another type."""
    return SimpleNamespace(device=place.device, dtype=dtype)


class Low:
    """A cache as e4m3, and another scale for each sequence and kv head; `pages` become those of the same numbers."""

    def __init__(self, pages, kv_heads):
        self.k, self.v = (each.to(torch.float8_e4m3fn) for each in (pages.k, pages.v))
        sequences = len(pages.keys)
        self.scales = [torch.linspace(0.5, last, sequences * kv_heads, device=pages.k.device).view(sequences, kv_heads) for last in (1.5, 2.0)]
        pages.k, pages.v = (self._multiplied(low, scale, pages) for low, scale in ((self.k, self.scales[0]), (self.v, self.scales[1])))

    @staticmethod
    def _multiplied(low, scale, pages):
        numbers = low.float()
        for sequence, length in enumerate(pages.keys):
            own = pages.table[sequence, :-(-length // pages.page_size)].long()
            numbers[own] = numbers[own] * scale[sequence][None, None, :, None]
        return numbers


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("dim", (64, 128))
def test_pages(place, dtype, dim):
    for page_size, kv_heads in ((16, 2), (1, 1), (64, 8)):
        for rows, is_ragged in (([1] * 5, False), ([3, 33, 1, 0, 128], True)):
            pages = Pages(beside(place, dtype), (300, 33, 1, 129, 640), kv_heads, dim, page_size, heads_first=page_size == 64)
            low, cu = Low(pages, kv_heads), offsets(place, rows) if is_ragged else None
            q = queries(beside(place, dtype), rows, 8, dim, cu)
            for name, (pattern, keeps) in PATTERNS.items():
                out, lse = serve.paged_attention(q, low.k, low.v, pages.table, pages.lengths, pattern, cu_seqlens_q=cu, return_lse=True,
                                                 descale=low.scales, **ARGUMENTS.get(name, {}))
                assert worst_error(out, lse, pages, rows, q, keeps, cu) <= LIMITS[dtype], name


@pytest.mark.parametrize("dtype", TYPES)
def test_forward_calls(place, dtype):
    for rows, dim in ((150, 64), (1, 128), (77, 128)):
        q = queries(beside(place, dtype), [rows] * 2, 8, dim)
        k, v = (queries(beside(place, dtype), [150] * 2, 2, dim, seed=seed).to(torch.float8_e4m3fn) for seed in (5, 6))
        scales = [torch.tensor([[0.5, 1.0], [1.5, 2.0]], device=place.device) * each for each in (1.0, 0.75)]
        out, lse = heddle.attention(q, k, v, heddle.pattern(causal, q_origin="end"), descale=(None, *scales), return_lse=True)
        for batch in range(2):
            high = [each[batch].float() * scale[batch][None, :, None] for each, scale in zip((k, v), scales)]
            expected, logs = reference(q[batch], *high, lambda query, key: key <= query)
            assert ((out[batch].double() - expected).abs() / (expected.abs() + 0.3)).max() <= LIMITS[dtype]
            assert (lse[batch].double() - logs).abs().max() < 1e-3
