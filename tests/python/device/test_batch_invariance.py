"""batch_invariant=True: the bits of a sequence alone are those in batches of others, at any place in them, beside pieces of prompts, and in a
graph whose batch changes around it; results against fp64. Without it bits differ."""
import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import serve  # noqa: E402
from pages import Pages, worst_error  # noqa: E402
from test_serving import ARGUMENTS, LIMITS, PATTERNS, offsets, queries  # noqa: E402

pytestmark = pytest.mark.compiler


class Pool:
    """Sequences of one cache, of which batches are made."""

    def __init__(self, place, keys, rows, kv_heads=2, heads=8, dim=64, name="causal", **options):
        self.place, self.rows, self.name, self.options = place, rows, name, options
        self.pages = Pages(place, keys, kv_heads, dim)
        self.cu = offsets(place, rows)
        self.q = queries(place, rows, heads, dim, self.cu)

    def batch(self, numbers):
        """out and lse of the sequences with these numbers, as one batch, sequence by sequence."""
        rows = [self.rows[number] for number in numbers]
        cu, parts = offsets(self.place, rows), [slice(int(self.cu[number]), int(self.cu[number + 1])) for number in numbers]
        q = torch.cat([self.q[:, part] for part in parts], 1)
        chosen = torch.tensor(numbers, device=self.place.device)
        out, lse = serve.paged_attention(q, self.pages.k, self.pages.v, self.pages.table[chosen], self.pages.lengths[chosen], PATTERNS[self.name][0],
                                         cu_seqlens_q=cu, return_lse=True, **self.options, **ARGUMENTS.get(self.name, {}))
        return [(out[0, first:end], lse[0, :, first:end]) for first, end in zip(cu.tolist(), cu.tolist()[1:])]

    def changed(self, batches):
        """How many sequences of these batches differ from what they are alone."""
        alone = [self.batch([number])[0] for number in range(len(self.rows))]
        return sum(not all(torch.equal(a, b) for a, b in zip(found, alone[number])) for numbers in batches for number, found in zip(numbers, self.batch(numbers)))

    def check(self):
        out, lse = serve.paged_attention(self.q, *self.pages.arguments(), PATTERNS[self.name][0], cu_seqlens_q=self.cu, return_lse=True, **self.options,
                                         **ARGUMENTS.get(self.name, {}))
        assert worst_error(out, lse, self.pages, self.rows, self.q, PATTERNS[self.name][1], self.cu) <= LIMITS[self.place.dtype]


def batches_of(count):
    random = torch.Generator().manual_seed(5)
    return [list(range(count)), list(reversed(range(count))), [0] * 40, [1, 1], *(torch.randint(count, (size,), generator=random).tolist() for size in (2, 3, 7, 40))]


@pytest.mark.parametrize("name, kv_heads, heads, dim", [("causal", 8, 32, 128), ("causal", 2, 8, 64), ("causal", 1, 16, 128), ("streaming", 8, 32, 128), ("full", 2, 8, 64)])
def test_bits_in_batches(place, name, kv_heads, heads, dim):
    keys = (5000, 700, 1, 12000, 300, 4000, 2100) if place.on_gpu else (900, 70, 1, 300)
    rows = (1, 1, 1, 1, 3, 150, 33) if place.on_gpu else (1, 1, 1, 20)
    pool = Pool(place, keys, rows, kv_heads, heads, dim, name, batch_invariant=True)
    pool.check()
    assert pool.changed(batches_of(len(keys))) == 0


@pytest.mark.gpu
def test_bits_differ_without_it(place):
    pool = Pool(place, (9000, 700, 1, 20000), (1, 1, 1, 1), 8, 32, 128)
    assert pool.changed([[0, 1, 2, 3], [3, 0, 1]]) > 0


def changed_by_count(place, keys, rows, kv_heads, heads, dim, counts, ends, **options):
    """How many calls of the last of a sequence's queries up to some of them have other bits than the call of all of them."""
    pages = Pages(place, (keys,), kv_heads, dim)
    q = queries(place, [rows], heads, dim)

    def call(first, end):
        lengths = torch.full_like(pages.lengths, keys - rows + end)
        return serve.paged_attention(q[:, first:end].contiguous(), pages.k, pages.v, pages.table, lengths, "causal", return_lse=True, **options)
    out, lse = call(0, rows)
    changed = 0
    for count in counts:
        for end in ends:
            if count <= end:
                own, own_lse = call(end - count, end)
                changed += not (torch.equal(own[0], out[0, end - count:end]) and torch.equal(own_lse[0], lse[0, :, end - count:end]))
    return changed


@pytest.mark.parametrize("kv_heads, heads, dim", [(4, 32, 128), (2, 8, 64)])
def test_bits_of_queries_in_calls_of_fewer(place, kv_heads, heads, dim):
    shapes = [(5000, 512, (1, 8, 33, 128), (1, 77, 500, 512)), (20000, 128, (1, 16), (9, 128)), (1024, 33, (1, 8), (20, 33))] if place.on_gpu else [(300, 40, (1, 8), (8, 40))]
    for keys, rows, counts, ends in shapes:
        assert changed_by_count(place, keys, rows, kv_heads, heads, dim, counts, ends, batch_invariant=True) == 0


@pytest.mark.gpu
def test_bits_of_queries_in_calls_of_fewer_differ_without_it(place):
    assert changed_by_count(place, 5000, 128, 4, 32, 128, (1, 8), (1, 128)) > 0


def test_keys_in_rows_and_tables_behind_each_other(place):
    pages = Pages(place, (700, 330, 64), 2, 64)
    q = queries(place, [2, 2, 2], 8, 64)
    expected = serve.paged_attention(q, *pages.arguments(), "causal", batch_invariant=True)
    k, v = (torch.cat([pages.gathered(each, s) for s in range(3)])[None] for each in (pages.k, pages.v))
    found = serve.ragged_attention(q, k, v, offsets(place, [700, 330, 64]), "causal", batch_invariant=True)
    assert torch.equal(found, expected)
    counts = [44, 21, 4]
    entries = torch.cat([row[:count] for row, count in zip(pages.table, counts)])
    last = torch.tensor([12, 10, 16], dtype=torch.int32, device=place.device)
    found = serve.indexed_attention(q, pages.k, pages.v, offsets(place, counts), entries, last, "causal", batch_invariant=True)
    assert torch.equal(found, expected)


@pytest.mark.gpu
def test_a_graph_whose_batch_changes(place):
    pages = Pages(place, (9000, 700, 3000, 20000), 8, 128)
    q = queries(place, [1] * 4, 32, 128)
    lengths, out = pages.lengths.clone(), torch.empty_like(q)

    def run():
        serve.paged_attention(q, pages.k, pages.v, pages.table, lengths, "causal", out=out, batch_invariant=True)
    run()
    first, graph = out[0].clone(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    for others in ((0, 0, 0), (700, 3000, 20000), (1, 2999, 64), (650, 1, 0), (0, 0, 19999)):
        lengths[1:] = torch.tensor(others, dtype=torch.int32)
        for _ in range(20):
            graph.replay()
            assert torch.equal(out[0], first)
