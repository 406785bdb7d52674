"""Sequences whose first keys lie in the same pages, and are read once for those that share them; tables behind each other: results against
fp64, and in CUDA graphs whose groups change."""
import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import serve  # noqa: E402
from pages import Pages, worst_error  # noqa: E402
from test_serving import ARGUMENTS, LIMITS, PATTERNS, offsets, queries  # noqa: E402

pytestmark = pytest.mark.compiler


class Sharing(Pages):
    """shared: how many of its first keys a sequence has in the same pages as the one before it."""

    def __init__(self, place, keys, shared, **options):
        super().__init__(place, keys, **options)
        self.own_table = self.table.clone()
        self.shared = torch.zeros(len(keys), dtype=torch.int32, device=place.device)
        self.share(shared)

    def share(self, shared):
        self.table.copy_(self.own_table)
        for sequence, count in enumerate(shared):
            entries = -(-count // self.page_size)
            self.table[sequence, :entries] = self.table[sequence - 1, :entries]
        self.shared.copy_(torch.tensor(shared, dtype=torch.int32))

    def indexed(self):
        """k, v, kv_indptr, kv_indices, kv_last_page_len."""
        counts = [-(-keys // self.page_size) for keys in self.keys]
        last = [keys - (count - 1) * self.page_size if count else 0 for keys, count in zip(self.keys, counts)]
        entries = torch.cat([row[:count] for row, count in zip(self.table, counts)])
        device = self.table.device
        return (self.k, self.v, torch.tensor([sum(counts[:i]) for i in range(len(counts) + 1)], dtype=torch.int32, device=device), entries,
                torch.tensor(last, dtype=torch.int32, device=device))


@pytest.mark.parametrize("name", PATTERNS)
def test_groups_of_sequences(place, name):
    pattern, keeps = PATTERNS[name]
    keys, shared = (700, 660, 300, 690, 650, 0, 33), (0, 640, 16, 256, 640, 0, 0)
    for kv_heads, dim, heads in ((2, 64, 8), (8, 128, 32), (1, 64, 16)):
        pages = Sharing(place, keys, shared, kv_heads=kv_heads, dim=dim)
        for rows in ([1] * 7, [3] * 7, [3, 1, 2, 9, 1, 0, 30]):
            cu = offsets(place, rows) if len(set(rows)) > 1 else None
            q = queries(place, rows, heads, dim, cu)
            options = dict(cu_seqlens_q=cu, return_lse=True, shared_k=pages.shared, **ARGUMENTS.get(name, {}))
            out, lse = serve.paged_attention(q, *pages.arguments(), pattern, **options)
            assert worst_error(out, lse, pages, rows, q, keeps, cu) <= LIMITS[place.dtype]
            out, lse = serve.indexed_attention(q, *pages.indexed(), pattern, **options)
            assert worst_error(out, lse, pages, rows, q, keeps, cu) <= LIMITS[place.dtype]


def test_tables_behind_each_other(place):
    for page_size in (1, 16, 48):
        pages = Sharing(place, (500, 33, 0, 270, 1), [0] * 5, page_size=page_size)
        for rows in ([1] * 5, [3, 33, 1, 0, 128]):
            cu = offsets(place, rows) if len(set(rows)) > 1 else None
            q = queries(place, rows, 8, 64, cu)
            out = serve.indexed_attention(q, *pages.indexed(), "causal", cu_seqlens_q=cu)
            assert torch.equal(out, serve.paged_attention(q, *pages.arguments(), "causal", cu_seqlens_q=cu))


def test_many_sequences_in_groups(place):
    count = 300 if place.on_gpu else 140
    keys, shared = [200 + i % 50 for i in range(count)], [0 if i % 60 == 0 else 192 for i in range(count)]
    pages = Sharing(place, keys, shared, kv_heads=2, dim=128)
    q = queries(place, [1] * count, 8, 128)
    out, lse = serve.paged_attention(q, *pages.arguments(), "causal", shared_k=pages.shared, return_lse=True)
    assert worst_error(out, lse, pages, [1] * count, q, PATTERNS["causal"][1]) <= LIMITS[place.dtype]


@pytest.mark.gpu
def test_a_pattern_that_cannot_share(place):
    pages = Sharing(place, (300, 290), (0, 256))
    with pytest.raises(heddle.UnsupportedError, match="kind decode serves this pattern"):
        serve.paged_attention(queries(place, [1, 1]), *pages.arguments(), "dilated", shared_k=pages.shared)


@pytest.mark.gpu
def test_graphs_are_replayed_with_other_groups(place):
    random = torch.Generator().manual_seed(4)
    pages, q = Sharing(place, (1000,) * 8, [0] * 8, dim=128), queries(place, [1] * 8, 32, 128)
    out, lse = torch.empty_like(q), torch.empty(8, 32, 1, device="cuda")
    call = lambda: serve.paged_attention(q, *pages.arguments(), "causal", shared_k=pages.shared, out=out, lse=lse)  # noqa: E731
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    for _ in range(200):
        pages.keys = torch.randint(0, 1001, (8,), generator=random).tolist()
        pages.lengths.copy_(torch.tensor(pages.keys, dtype=torch.int32))
        most = [0] + [min(pair) // 16 * 16 for pair in zip(pages.keys, pages.keys[1:])]
        pages.share([each if torch.rand(1, generator=random) < 0.7 else 0 for each in most])
        out.fill_(float("nan"))
        graph.replay()
        assert worst_error(out, lse, pages, [1] * 8, q, PATTERNS["causal"][1]) <= LIMITS[place.dtype]
        bits = out.clone()
        graph.replay()
        assert torch.equal(out, bits)
