"""Calls over caches in pages: results against fp64, in CUDA graphs whose lengths and tables change, the same bits in every run."""
import os

import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import serve  # noqa: E402
from heddle.words import causal, cols, tree, tensor, window  # noqa: E402
from pages import Pages, worst_error, worst_of_all  # noqa: E402

pytestmark = pytest.mark.compiler

LIMITS = {torch.bfloat16: 0.02, torch.float16: 0.003, torch.float32: 2e-5}  # of an element, beside 0.3 and itself
STREAMING = heddle.pattern(causal & (window(left=99) | cols(4)), name="near_and_first") if heddle.has_compiler() else None
PATTERNS = {
    "causal": ("causal", lambda q, k: k <= q),
    "full": ("full", lambda q, k: k >= 0),
    "window": ("sliding_window", lambda q, k: (k <= q) & (k >= q - 40)),
    "streaming": (STREAMING, lambda q, k: (k <= q) & ((k >= q - 99) | (k < 4))),
}
ARGUMENTS = {"window": dict(left=40)}


def queries(place, rows, heads=8, dim=64, cu=None, seed=2):
    random = torch.Generator().manual_seed(seed)
    shape = (len(rows), max(rows)) if cu is None else (1, sum(rows))
    return torch.randn(*shape, heads, dim, generator=random).to(place.dtype).to(place.device)


def offsets(place, rows):
    return torch.tensor([sum(rows[:i]) for i in range(len(rows) + 1)], dtype=torch.int32, device=place.device)


def check(place, pages, rows, heads=8, dim=64, name="causal", is_ragged=False):
    cu = offsets(place, rows) if is_ragged else None
    q = queries(place, rows, heads, dim, cu)
    pattern, keeps = PATTERNS[name]
    out, lse = serve.paged_attention(q, *pages.arguments(), pattern, cu_seqlens_q=cu, return_lse=True, **ARGUMENTS.get(name, {}))
    error = worst_error(out, lse, pages, rows, q, keeps, cu)
    assert error <= LIMITS[place.dtype], f"{name}, pages of {pages.page_size}: {error}"
    return error


def test_pages_lengths_and_groups(place, says):
    worst = 0.0
    for page_size in (1, 16, 48, 64, 256):
        for kv_heads, dim in ((8, 64), (2, 128), (1, 64)):
            pages = Pages(place, (300, 0, 1, 129, 64), kv_heads, dim, page_size, heads_first=page_size == 64)
            worst = max(worst, check(place, pages, [1] * 5, 8, dim))
    says(f"worst error {worst:.1e} of 0.3 and the element, allowed {LIMITS[place.dtype]:.0e}")


def test_patterns_and_ragged_queries(place):
    pages = Pages(place, (500, 33, 0, 270, 1000), 2)
    for name in PATTERNS:
        check(place, pages, [1, 1, 1, 1, 1], name=name)
        check(place, pages, [3, 33, 1, 0, 128], name=name, is_ragged=True)


def test_sixteen_heads_of_a_group(place):
    check(place, Pages(place, (700, 65), 1, 128), [4, 4], heads=16, dim=128)


def test_trees_of_drafts(place):
    ancestors = []
    for token in range(7):
        parent = (token - 1) // 2
        ancestors.append((ancestors[parent] if token else 0) | 1 << token)
    pattern = heddle.pattern(tree(tensor("ancestors", "?xi64")), q_origin="end")
    pages, rows = Pages(place, (100, 7, 260), 2), [7, 7, 7]
    bits = torch.tensor(ancestors, dtype=torch.int64, device=place.device)
    q = queries(place, rows)
    out, lse = serve.paged_attention(q, *pages.arguments(), pattern, ancestors=bits, return_lse=True)
    for sequence, length in enumerate(pages.keys):
        one = Pages.__new__(Pages)
        one.__dict__.update(pages.__dict__)

        def keeps(query, key, first=length - 7):
            draft = (key - first).clamp(min=0)
            return (key < first) | ((bits[(query - first).clamp(0, 6)] >> draft) & 1 == 1)
        one.keys, one.table = [length], pages.table[sequence:sequence + 1]
        error = worst_error(out[sequence:sequence + 1], lse[sequence:sequence + 1], one, [7], q[sequence:sequence + 1], keeps)
        assert error <= LIMITS[place.dtype]


def test_a_long_sequence_beside_short_ones(place):
    length = 70_000 if place.on_gpu else 3000
    check(place, Pages(place, (length, 5, 40, 1), 2, 128), [1] * 4, dim=128)
    check(place, Pages(place, (length, 5, 40, 1), 2, 128), [1] * 4, dim=128, name="streaming")


def test_bits_are_those_of_every_run(place):
    pages, q = Pages(place, (2000, 17, 900), 2), queries(place, [1, 1, 1])
    first = serve.paged_attention(q, *pages.arguments(), "causal")
    for _ in range(1000 if place.on_gpu else 3):
        assert torch.equal(serve.paged_attention(q, *pages.arguments(), "causal"), first)


@pytest.mark.gpu
def test_graphs_are_replayed_with_other_lengths_and_tables(place, says):
    """Of sequences that grow by a token, end, and begin anew, in the memory that was captured."""
    replays = int(os.environ.get("HEDDLE_REPLAYS", "300"))
    random = torch.Generator().manual_seed(4)
    pages = Pages(place, [1000] * 6, 2, 128, room=0)
    q = queries(place, [2] * 6, dim=128)
    pattern, keeps = PATTERNS["streaming"]
    out, lse = (torch.empty_like(q), torch.empty(6, 8, 2, device="cuda"))
    serve.paged_attention(q, *pages.arguments(), pattern, out=out, lse=lse)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        serve.paged_attention(q, *pages.arguments(), pattern, out=out, lse=lse)
    whole, worst = pages.table.clone(), torch.zeros((), dtype=torch.float64, device="cuda")
    for replay in range(replays):
        pages.keys = torch.randint(0, 1001, (6,), generator=random).tolist()
        pages.lengths.copy_(torch.tensor(pages.keys, dtype=torch.int32))
        pages.table.copy_(whole[torch.randperm(6, generator=random).to("cuda")])
        q.copy_(torch.randn(q.shape, generator=random))
        out.fill_(float("nan"))
        graph.replay()
        worst = torch.maximum(worst, worst_of_all(out, lse, pages, q, keeps))
        if replay < 20:
            assert worst_error(out, lse, pages, [2] * 6, q, keeps) <= LIMITS[place.dtype]
    assert worst.item() <= LIMITS[place.dtype]
    says(f"{replays} replays, all of them compared, worst error {worst.item():.1e}")


def test_errors_of_all_sequences_at_once_are_those_of_each(place):
    pages, q = Pages(place, (40, 0, 300, 1), 2, 128, room=0), queries(place, [2] * 4, dim=128)
    out, lse = serve.paged_attention(q, *pages.arguments(), "sliding_window", left=40, return_lse=True)
    keeps = PATTERNS["window"][1]
    each, together = worst_error(out, lse, pages, [2] * 4, q, keeps), worst_of_all(out, lse, pages, q, keeps).item()
    assert abs(each - together) < 1e-9 and together <= LIMITS[place.dtype]
    assert worst_of_all(out + 1, lse, pages, q, keeps) > 0.5 and torch.isinf(worst_of_all(out, lse + 0.01, pages, q, keeps))


def replayed(call, q):
    """On a GPU the replay of a graph of the call, else the call."""
    if not q.is_cuda:
        return call
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def test_prepared_calls_read_lengths_and_tables_again(place):
    pages, q = Pages(place, (300, 20), 2), queries(place, [1, 1])
    k, v, table, lengths = pages.arguments()
    call = serve.prepare(q, k, v, "causal", page_table=table, seqused_k=lengths)
    launch = replayed(call, q)
    for keys in ((300, 20), (17, 0), (255, 1)):
        lengths.copy_(torch.tensor(keys, dtype=torch.int32))
        q.mul_(-0.5)
        call.out.fill_(float("nan"))
        launch()
        expected, logs = serve.paged_attention(q, k, v, table, lengths, "causal", return_lse=True)
        assert torch.equal(call.out, expected) and torch.equal(call.lse, logs)


def test_prepared_calls_of_few_units_have_lengths_alike_and_far_apart(place):
    longest = 20_000 if place.on_gpu else 2000
    pages, q = Pages(place, (longest, longest // 2, 900), 2, 128, page_size=64), queries(place, [1, 1, 1], dim=128)
    k, v, table, lengths = pages.arguments()
    call = serve.prepare(q, k, v, "causal", page_table=table, seqused_k=lengths)
    launch = replayed(call, q)
    for keys in ((900, 700, 3), (longest, 5, 40), (0, 1, 900), (longest - 1, longest // 2, 64), (20, 17, 1), (7, longest // 2, 0)):
        pages.keys = list(keys)
        lengths.copy_(torch.tensor(keys, dtype=torch.int32))
        call.out.fill_(float("nan"))
        launch()
        assert worst_error(call.out, call.lse, pages, [1] * 3, q, PATTERNS["causal"][1]) <= LIMITS[place.dtype], keys


@pytest.mark.gpu
def test_no_call_waits_for_the_gpu(place):
    pages, q = Pages(place, (300, 20), 2), queries(place, [1, 1])
    serve.paged_attention(q, *pages.arguments(), "causal")
    torch.cuda.set_sync_debug_mode("error")
    try:
        serve.paged_attention(q, *pages.arguments(), "causal")
    finally:
        torch.cuda.set_sync_debug_mode("default")
