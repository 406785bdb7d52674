"""Sequences whose keys are lists of pages of each kv head, or lie in rows: results against fp64, and in CUDA graphs whose lists change."""
import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import serve  # noqa: E402
from pages import Pages, reference, worst_error  # noqa: E402
from test_serving import ARGUMENTS, LIMITS, PATTERNS, offsets, queries  # noqa: E402

pytestmark = pytest.mark.compiler


class Lists(Pages):
    """keys: those of each sequence, for one kv head after the other."""

    def __init__(self, place, keys, **options):
        self.of_heads = len(keys)
        super().__init__(place, [each for head in keys for each in head], kv_heads=len(keys), **options)
        self.table = self.table.view(len(keys), len(keys[0]), -1)
        self.lengths = self.lengths.view(len(keys), len(keys[0]))

    def worst_error(self, out, lse, q, keeps):
        worst, sequences = 0.0, self.lengths.shape[1]
        group = q.shape[2] // self.of_heads
        flat = Pages.__new__(Pages)
        flat.__dict__.update(self.__dict__, table=self.table.view(len(self.keys), -1))
        for number in range(len(self.keys)):
            kv_head, sequence = divmod(number, sequences)
            heads = slice(kv_head * group, (kv_head + 1) * group)
            k, v = (flat.gathered(cache, number)[:, kv_head:kv_head + 1] for cache in (self.k, self.v))
            expected, logs = reference(q[sequence, :, heads], k, v, keeps)
            found, got = out[sequence, :, heads].double(), lse[sequence, heads].double()
            assert torch.isfinite(found).all() and torch.equal(torch.isneginf(got), torch.isneginf(logs))
            finite = torch.isfinite(logs)
            assert not finite.any() or (got - logs)[finite].abs().max() < 1e-3
            worst = max(worst, ((found - expected).abs() / (expected.abs() + 0.3)).max().item())
        return worst


@pytest.mark.parametrize("name", PATTERNS)
def test_a_list_for_each_kv_head(place, name):
    pattern, keeps = PATTERNS[name]
    for page_size, dim, rows in ((16, 64, 1), (64, 128, 4), (1, 64, 40)):
        lists = Lists(place, [(300, 0, 1), (20, 129, 64)], dim=dim, page_size=page_size)
        for heads in (2, 8, 32):
            q = queries(place, [rows] * 3, heads, dim)
            out, lse = serve.paged_attention(q, *lists.arguments(), pattern, return_lse=True, **ARGUMENTS.get(name, {}))
            assert lists.worst_error(out, lse, q, keeps) <= LIMITS[place.dtype]


def test_a_long_list_beside_short_ones(place):
    length = 70_000 if place.on_gpu else 3000
    lists, q = Lists(place, [(5, 40), (length, 1), (1, 0), (300, length // 2)], dim=128), queries(place, [1, 1], 32, 128)
    out, lse = serve.paged_attention(q, *lists.arguments(), "causal", return_lse=True)
    assert lists.worst_error(out, lse, q, PATTERNS["causal"][1]) <= LIMITS[place.dtype]


def in_rows(pages, unused=0):
    """k, v and offsets: the keys of each sequence, and as many behind them that do not count."""
    parts = []
    for cache in (pages.k, pages.v):
        own = [pages.gathered(cache, sequence) for sequence in range(len(pages.keys))]
        rest = torch.full_like(own[0][:1].expand(unused, -1, -1), float("nan"))
        parts.append(torch.cat([each for one in own for each in (one, rest)])[None].contiguous())
    return (*parts, [length + unused for length in pages.keys])


@pytest.mark.parametrize("unused", (0, 5))
def test_keys_in_rows(place, unused):
    for kv_heads, dim in ((8, 64), (1, 128)):
        pages = Pages(place, (500, 33, 0, 270, 1), kv_heads, dim)
        k, v, lengths = in_rows(pages, unused)
        used = pages.lengths if unused else None
        for name, (pattern, keeps) in PATTERNS.items():
            for rows in ([1] * 5, [3, 33, 1, 0, 128]):
                cu = offsets(place, rows) if len(set(rows)) > 1 else None
                q = queries(place, rows, 8, dim, cu)
                out, lse = serve.ragged_attention(q, k, v, offsets(place, lengths), pattern, cu_seqlens_q=cu, seqused_k=used, return_lse=True,
                                                  **ARGUMENTS.get(name, {}))
                assert worst_error(out, lse, pages, rows, q, keeps, cu) <= LIMITS[place.dtype], name


def test_bits_are_those_of_pages(place):
    pages, q = Pages(place, (2000, 17, 900), 2), queries(place, [2, 2, 2])
    k, v, lengths = in_rows(pages)
    assert torch.equal(serve.ragged_attention(q, k, v, offsets(place, lengths), "causal"), serve.paged_attention(q, *pages.arguments(), "causal"))
    same = [each.expand(2, *each.shape).contiguous() for each in (pages.table, pages.lengths)]
    lists = serve.paged_attention(q, pages.k, pages.v, *same, "causal").float()
    assert (lists - serve.paged_attention(q, *pages.arguments(), "causal").float()).abs().max() <= LIMITS[place.dtype]


@pytest.mark.gpu
def test_graphs_are_replayed_with_other_lists(place):
    random = torch.Generator().manual_seed(4)
    lists, q = Lists(place, [(1000, 1000)] * 4, dim=128, room=0), queries(place, [1, 1], 32, 128)
    out, lse = torch.empty_like(q), torch.empty(2, 32, 1, device="cuda")
    serve.paged_attention(q, *lists.arguments(), "causal", out=out, lse=lse)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        serve.paged_attention(q, *lists.arguments(), "causal", out=out, lse=lse)
    for _ in range(200):
        lists.keys = torch.randint(0, 1001, (8,), generator=random).tolist()
        lists.lengths.copy_(torch.tensor(lists.keys, dtype=torch.int32).view(4, 2))
        lists.table.copy_(lists.table[torch.randperm(4, generator=random).to("cuda")])
        out.fill_(float("nan"))
        graph.replay()
        assert lists.worst_error(out, lse, q, PATTERNS["causal"][1]) <= LIMITS[place.dtype]


@pytest.mark.gpu
def test_no_call_waits_for_the_gpu(place):
    pages, q = Pages(place, (300, 20), 2), queries(place, [1, 1])
    k, v, lengths = in_rows(pages)
    cu = offsets(place, lengths)
    serve.ragged_attention(q, k, v, cu, "causal")
    torch.cuda.set_sync_debug_mode("error")
    try:
        serve.ragged_attention(q, k, v, cu, "causal")
    finally:
        torch.cuda.set_sync_debug_mode("default")
