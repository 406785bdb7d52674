"""Compiled calls that write where they are told, with scales, of caches: the bits of calls that are not compiled; tables that are checked."""
import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import serve  # noqa: E402

pytestmark = [pytest.mark.compiler, pytest.mark.gpu]


def tensors(*shape, count=3):
    random = torch.Generator().manual_seed(1)
    return [torch.randn(*shape, generator=random).cuda().bfloat16() for _ in range(count)]


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_results_where_the_caller_says(mode):
    q, k, v = tensors(2, 300, 4, 64)
    out, lse = torch.empty_like(q), torch.empty(2, 4, 300, device="cuda")
    expected = heddle.attention(q, k, v, "causal", return_lse=True)

    @torch.compile(fullgraph=True, mode=mode)
    def call(q, k, v):
        heddle.attention(q, k, v, "causal", out=out, lse=lse)
        return out * 1

    for _ in range(3):
        out.zero_(), lse.zero_()
        result = call(q, k, v)
    assert torch.equal(result, expected[0]) and torch.equal(out, expected[0]) and torch.equal(lse, expected[1])


def test_scales():
    low = heddle.quantize(*tensors(1, 256, 4, 128))
    expected = heddle.attention(low.q, low.k, low.v, "causal", descale=low.descale)
    compiled = torch.compile(lambda *given: heddle.attention(*given[:3], "causal", descale=given[3:]), fullgraph=True)
    assert torch.equal(compiled(low.q, low.k, low.v, *low.descale), expected)


def cache():
    q, (k,) = tensors(2, 1, 8, 128, count=1)[0], tensors(12, 16, 2, 128, count=1)
    table, lengths = (torch.tensor(each, dtype=torch.int32, device="cuda") for each in ([[0, 1], [2, 11]], [32, 30]))
    return q, k, table, lengths


def test_caches():
    q, k, table, lengths = cache()
    expected = serve.paged_attention(q, k, k, table, lengths, "causal", return_lse=True)
    out, lse = torch.empty_like(q), torch.empty(2, 8, 1, device="cuda")

    @torch.compile(fullgraph=True)
    def call(q, k, table, lengths):
        return serve.paged_attention(q, k, k, table, lengths, "causal", out=out, lse=lse)

    call(q, k, table, lengths)
    assert torch.equal(out, expected[0]) and torch.equal(lse, expected[1])


def test_tables_are_checked_where_that_is_asked_for():
    q, k, table, lengths = cache()
    expected = serve.paged_attention(q, k, k, table, lengths, "causal")
    heddle.configure(check_pages=True)
    try:
        assert torch.equal(serve.paged_attention(q, k, k, table, lengths, "causal"), expected)
        table[1, 1] = 12
        with pytest.raises(heddle.Error, match="page_table: sequence 1, page 1: expected 0 to 11, got 12"):
            serve.paged_attention(q, k, k, table, lengths, "causal")
        table[1, 1] = 11
        assert torch.equal(serve.paged_attention(q, k, k, table, lengths, "causal"), expected)
    finally:
        heddle.configure(check_pages=False)
