"""Caches in pages whose sequences lie on several ranks: each computes its part in fp32, in CUDA graphs too, and parts make one call. As a program
it is one of several processes, over NCCL with a GPU each (calls over them are captured as well), else over gloo: python -m torch.distributed.run --nproc-per-node=2 test_cache_parts.py."""
import copy
import os
import sys

import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import distributed, serve  # noqa: E402
from heddle.words import causal, cols, window  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pages import Pages, worst_error  # noqa: E402

pytestmark = pytest.mark.compiler

LIMITS = {torch.bfloat16: 0.02, torch.float32: 2e-5}  # of an element, beside 0.3 and itself
ROWS, KEYS = [3, 33, 1, 1, 128], (500, 33, 0, 270, 4000)
PATTERNS = {
    "causal": (lambda: "causal", lambda q, k: k <= q),
    "window": (lambda: heddle.library("sliding_window", left=40), lambda q, k: (k <= q) & (k >= q - 40)),
    "streaming": (lambda: heddle.pattern(causal & (window(left=99) | cols(4)), name="near_and_first"),
                  lambda q, k: (k <= q) & ((k >= q - 99) | (k < 4))),
}


def offsets(rows, device):
    return torch.tensor([sum(rows[:i]) for i in range(len(rows) + 1)], dtype=torch.int32, device=device)


def part_of(pages, ranks, rank):
    """Table, lengths and first keys: pages in equal shares, the last ranks have the first keys; the pages of nobody else are named."""
    table, lengths, firsts = torch.full_like(pages.table, -1), torch.zeros_like(pages.lengths), torch.zeros_like(pages.lengths)
    number = ranks - 1 - rank
    for sequence, keys in enumerate(pages.keys):
        needed = -(-keys // pages.page_size)
        first, end = (needed * each // ranks for each in (number, number + 1))
        table[sequence, :end - first] = pages.table[sequence, first:end]
        firsts[sequence] = first * pages.page_size
        lengths[sequence] = max(min(end * pages.page_size, keys) - first * pages.page_size, 0)
    return table, lengths, firsts


def merged(parts):
    outs, lses = (torch.stack(each).double() for each in zip(*parts))
    most = lses.amax(0)
    share = torch.exp(lses - torch.where(torch.isneginf(most), 0, most))
    weights = share.sum(0)
    out = (outs * share.transpose(2, 3)[..., None]).sum(0) / torch.where(weights == 0, 1, weights).transpose(1, 2)[..., None]
    return out, torch.where(weights == 0, -torch.inf, most + torch.log(weights))


def queries(place, heads=8, dim=64):
    return torch.randn(1, sum(ROWS), heads, dim, generator=torch.Generator().manual_seed(2)).to(place.dtype).to(place.device)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("page_size, kv_heads, dim", [(16, 2, 64), (1, 8, 128), (48, 1, 64)])
def test_parts_are_one_call(place, name, page_size, kv_heads, dim):
    made, keeps = PATTERNS[name]
    pages, cu, q = Pages(place, KEYS, kv_heads, dim, page_size), offsets(ROWS, place.device), queries(place, dim=dim)
    for ranks in (1, 3, 4):
        parts = []
        for rank in range(ranks):
            table, lengths, firsts = part_of(pages, ranks, rank)
            out = torch.full((*q.shape[:3], dim), torch.nan, device=place.device)
            parts.append(serve.paged_attention(q, pages.k, pages.v, table, lengths, made(), cu_seqlens_q=cu, k_origins=firsts, whole_k=pages.lengths,
                                               out=out, return_lse=True))
        assert worst_error(*merged(parts), pages, ROWS, q, keeps, cu) <= LIMITS[place.dtype]


@pytest.mark.gpu
def test_a_graph_goes_on_as_sequences_grow(place):
    pages = Pages(place, (500, 333, 100), 2)
    q = torch.randn(3, 1, 8, 64, device=place.device).bfloat16()
    table, lengths, firsts = part_of(pages, 2, 0)
    wholes, out = pages.lengths.clone(), torch.empty(3, 1, 8, 64, device=place.device)
    given = dict(k_origins=firsts, whole_k=wholes, out=out, return_lse=True)
    serve.paged_attention(q, pages.k, pages.v, table, lengths, "causal", **given)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _, lse = serve.paged_attention(q, pages.k, pages.v, table, lengths, "causal", **given)
    for fewer in (0, 3, 60):
        wholes.copy_(pages.lengths - fewer)
        lengths.copy_((wholes - firsts).clamp(min=0))
        graph.replay()
        found = out.clone(), lse.clone()
        expected = serve.paged_attention(q, pages.k, pages.v, table, lengths, "causal", **given)
        assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


class OwnPlace:
    """Of this process."""

    def __init__(self):
        self.on_gpu = torch.cuda.is_available()
        if self.on_gpu:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        self.device = f"cuda:{torch.cuda.current_device()}" if self.on_gpu else "cpu"
        self.dtype = torch.bfloat16 if self.on_gpu else torch.float32


def is_refused(place, call):
    """NaN on a GPU, where nobody waits."""
    if place.on_gpu:
        return bool(torch.isnan(call()[0]).all())
    try:
        call()
    except heddle.InvalidArgumentError as error:
        return "k_origins: sequence 0" in str(error) or "whole_k: sequence 0" in str(error)
    return False


def check_refused(place, rank, call):
    """`call(is_wrong)`: rank 0 alone is refused what it brings, the others hear of it, on a GPU by NaN."""
    try:
        out = call(rank == 0)[0]
    except heddle.InvalidArgumentError as error:
        assert rank == 0 and "page_table" in str(error), error
    except heddle.UnavailableError as error:
        assert rank and not place.on_gpu and "rank 0 takes no part: attention arguments: page_table" in str(error), error
    else:
        assert rank and place.on_gpu and bool(torch.isnan(out).all())


def as_graph(call):
    """What replays it, and leaves results where it left them when it was captured."""
    call()  # ranks are connected by their first messages
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        results = call()

    def replay():
        graph.replay()
        return results
    return replay


def grow(place, rank, group, pages, cu, q, part):
    """Sequences that grow under one call over ranks, on GPUs under one graph: the bits of a call of its own each time, near fp64, and refused where
    ranks do not agree how long one is."""
    table, most, firsts = part
    lengths, origins, wholes, shorter = most.clone(), firsts.clone(), pages.lengths.clone(), copy.copy(pages)

    def call():
        return distributed.paged_attention(q, pages.k, pages.v, table, lengths, "causal", group, k_origins=origins, whole_k=wholes,
                                           cu_seqlens_q=cu, return_lse=True)
    replay = as_graph(call) if place.on_gpu else call
    long, worst = pages.lengths >= 200, 0.0
    for fewer in (150, 33, 16, 1, 0):
        wholes.copy_(torch.where(long, pages.lengths - fewer, pages.lengths))
        origins.copy_(torch.minimum(firsts, wholes))
        lengths.copy_(torch.minimum(wholes - origins, most))
        shorter.keys = wholes.tolist()
        for _ in range(20 if place.on_gpu else 1):
            found = [each.clone() for each in replay()]
            assert all(torch.equal(a, b) for a, b in zip(found, call()))
        worst = max(worst, worst_error(*found, shorter, ROWS, q, PATTERNS["causal"][1], cu))
    wholes += int(rank == 0)
    assert is_refused(place, replay)
    wholes.copy_(pages.lengths)
    assert not place.on_gpu or torch.equal(replay()[0], found[0])
    return worst


def over_processes():
    """Of one process: every rank has the same bits, those of one call within rounding; parts that are no whole are refused."""
    place, rank, ranks = OwnPlace(), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.distributed.init_process_group("nccl" if place.on_gpu else "gloo", init_method=os.environ.get("HEDDLE_MEET"), rank=rank, world_size=ranks)
    group = distributed.Group.of()
    pages, cu, q = Pages(place, KEYS, 2), offsets(ROWS, place.device), queries(place)
    table, lengths, firsts = part_of(pages, ranks, rank)
    for name, (made, keeps) in PATTERNS.items():
        def call(origins=firsts):
            return distributed.paged_attention(q, pages.k, pages.v, table, lengths, made(), group, k_origins=origins, whole_k=pages.lengths,
                                               cu_seqlens_q=cu, return_lse=True)
        out, lse = call()
        error = worst_error(out, lse, pages, ROWS, q, keeps, cu)
        assert error <= LIMITS[q.dtype], error
        everybody = [torch.empty_like(out) for _ in range(ranks)]
        torch.distributed.all_gather(everybody, out)
        assert all(torch.equal(out, each) for each in everybody)
        assert all(torch.equal(out, call()[0]) for _ in range(20 if place.on_gpu else 2))
        beyond = (firsts - 16).clamp(min=0) if rank == 0 else firsts  # rank 0 has the last keys
        assert is_refused(place, lambda: call(beyond))
        check_refused(place, rank, lambda is_wrong: distributed.paged_attention(
            q, pages.k, pages.v, table.long() if is_wrong else table, lengths, made(), group, k_origins=firsts, whole_k=pages.lengths, cu_seqlens_q=cu))
        assert torch.equal(out, call()[0])
        if rank == 0:
            print(f"{name}: ok, over {ranks} ranks, worst error {error:.1e}", flush=True)
    error = grow(place, rank, group, pages, cu, q, (table, lengths, firsts))
    assert error <= LIMITS[q.dtype], error
    if rank == 0:
        print(f"as sequences grow{', in a graph' if place.on_gpu else ''}: ok, over {ranks} ranks, worst error {error:.1e}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    over_processes()
