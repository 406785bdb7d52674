#!/usr/bin/env python3
"""Attention over caches in pages, beside what else is installed:

    PYTHONPATH=runtime/Python HEDDLE_LIBRARY=build/lib/libheddle.so python3 bench/serving.py [--calls=N] [--invariant] [CASE...]

Each call is a CUDA graph; the L2 is flushed before every replay, events stand around it, the median of N (40) counts. Rates are the bytes of
K and V that the pattern keeps, and percent of the fastest read of 4 GB in the same run. Results are checked against fp64 at a few rows
before they are timed. --invariant has calls with batch_invariant=True as well, in turn with the others. FlashInfer (whose plans are made before, and not
timed) and FlexAttention stand beside heddle where they import. bf16.
"""
import argparse
import itertools
import os
import sys
import tempfile
from typing import NamedTuple, Tuple

import heddle
import torch
from heddle import serve
from heddle.words import causal, cols, tree, tensor, window

DEVICE, MIB = "cuda", 1 << 20


class Case(NamedTuple):
    name: str
    keys: Tuple[int, ...]  # of each sequence
    heads: int = 32
    kv_heads: int = 8
    page_size: int = 64
    pattern: str = "causal"
    queries: Tuple[int, ...] = ()  # of each sequence; 1 each
    dim: int = 128
    listed: float = 1.0  # share of the pages of a sequence that each kv head has in a list of its own; 1: there are no lists
    in_rows: bool = False  # keys without pages
    shared: int = 0  # first keys of all sequences that lie in the same pages
    is_told: bool = False  # the call is told of these
    is_indexed: bool = False  # tables behind each other
    room: int = 0  # keys that tables have room for, where they are more


def spread(count, least, most):
    random = torch.Generator().manual_seed(3)
    return tuple(torch.randint(least, most + 1, (count,), generator=random).tolist())


K = 1024
CASES = [
    Case("32 x 4k, page 16", (4 * K,) * 32, page_size=16),
    Case("32 x 4k, page 256", (4 * K,) * 32, page_size=256),
    Case("32 x 4k, page 1", (4 * K,) * 32, page_size=1),
    Case("128 x 512 to 32k, 64/8", spread(128, 512, 32 * K), heads=64),
    Case("1 x 1k, 32/4", (K,), kv_heads=4),
    Case("1 x 16k, 32/4", (16 * K,), kv_heads=4),
    Case("1 x 1k in tables of 1M, 32/4", (K,), kv_heads=4, room=K * K),
    Case("1 x 16k in tables of 1M, 32/4", (16 * K,), kv_heads=4, room=K * K),
    Case("40k, 2k, 300 and 100, 32/4", (40 * K, 2 * K, 300, 100), kv_heads=4),
    Case("1 x 1M", (K * K,)),
    Case("window 4096 + 4 sinks, 16 x 64k", (64 * K,) * 16, pattern="streaming"),
    Case("window 4096 + 4 sinks, 16 x 256k", (256 * K,) * 16, pattern="streaming"),
    Case("64 drafts, 8 x 8k", (8 * K,) * 8, pattern="tree", queries=(64,) * 8),
    Case("64 queries causal, 8 x 8k", (8 * K,) * 8, queries=(64,) * 8),
    Case("prefill 512 + 31 decodes, 8k", (8 * K,) * 32, queries=(512,) + (1,) * 31),
    Case("prefill 512, 8k", (8 * K,), queries=(512,)),
    Case("31 decodes, 8k", (8 * K,) * 31),
    Case("per-kv-head page lists, 10% of 128k keys, 1", (128 * K,), listed=0.1),
    Case("per-kv-head page lists, 10% of 128k keys, 16", (128 * K,) * 16, listed=0.1),
    Case("32 x 4k in rows", (4 * K,) * 32, in_rows=True),
    Case("32 x 4,160 in rows", (4 * K + 64,) * 32, in_rows=True),
    Case("32 x 4k, page 16, indices", (4 * K,) * 32, page_size=16, is_indexed=True),
    Case("64 x 4.5k, pages apart", (4 * K + 512,) * 64),
    Case("64 x 4.5k, 4k in the same pages", (4 * K + 512,) * 64, shared=4 * K),
    Case("64 x 4.5k, 4k shared", (4 * K + 512,) * 64, shared=4 * K, is_told=True),
    Case("64 x 4.5k, nothing shared, told so", (4 * K + 512,) * 64, is_told=True),
]
WINDOW, SINKS = 4096, 4


def pattern_of(case):
    if case.pattern == "streaming":
        return heddle.pattern(causal & (window(left=WINDOW - 1) | cols(SINKS)), name="streaming"), {}
    if case.pattern == "tree":
        ancestors = []
        for token in range(case.queries[0]):
            ancestors.append((ancestors[(token - 1) // 2] if token else 0) | 1 << token)
        bits = torch.tensor([each - (1 << 64) if each >> 63 else each for each in ancestors], dtype=torch.int64, device=DEVICE)
        return heddle.pattern(tree(tensor("ancestors", "?xi64")), q_origin="end"), dict(ancestors=bits)
    return case.pattern, {}


def listed_pages(case, keys):
    return max(1, round(case.listed * -(-keys // case.page_size)))


def kept_keys(case):
    if case.listed < 1:
        return sum(listed_pages(case, keys) * case.page_size for keys in case.keys)
    return sum(min(keys, WINDOW + SINKS) if case.pattern == "streaming" else keys for keys in case.keys)


class Call:
    """Tensors of a case. Sequences that would not fit into memory share pages, in different order."""

    def __init__(self, case):
        self.case = case
        queries = case.queries or (1,) * len(case.keys)
        needed = [-(-keys // case.page_size) for keys in case.keys]
        bytes_of_page = case.page_size * case.kv_heads * case.dim * 4
        pages = min(sum(needed), 48 * K * MIB // bytes_of_page)
        random = torch.Generator(device=DEVICE).manual_seed(1)
        self.cache = torch.empty(pages, 2, case.page_size, case.kv_heads, case.dim, dtype=torch.bfloat16, device=DEVICE)
        for part in self.cache.split(max(1, 256 * MIB // bytes_of_page)):
            part.normal_(generator=random)
        self.table = torch.zeros(len(needed), max(*needed, case.room // case.page_size), dtype=torch.int32, device=DEVICE)
        order, first = torch.randperm(pages, generator=random, device=DEVICE).to(torch.int32), 0
        for row, count in zip(self.table, needed):
            row[:count] = torch.roll(order, -first)[:count] if count <= pages else order.repeat(-(-count // pages))[:count]
            first = (first + count) % pages
        self.lengths = torch.tensor(case.keys, dtype=torch.int32, device=DEVICE)
        self.table[1:, :case.shared // case.page_size] = self.table[0, :case.shared // case.page_size]
        self.shared_k = torch.tensor([case.shared if s else 0 for s in range(len(case.keys))], dtype=torch.int32, device=DEVICE) if case.is_told else None
        if case.is_indexed:
            self.indices = torch.cat([row[:count] for row, count in zip(self.table, needed)])
            self.indptr = torch.tensor([sum(needed[:i]) for i in range(len(needed) + 1)], dtype=torch.int32, device=DEVICE)
            self.last = torch.tensor([(keys - 1) % case.page_size + 1 for keys in case.keys], dtype=torch.int32, device=DEVICE)
        if case.listed < 1:
            self.choose_lists(random)
        if case.in_rows:
            self.cu_k = torch.tensor([sum(case.keys[:i]) for i in range(len(case.keys) + 1)], dtype=torch.int32, device=DEVICE)
            self.rows = [self.cache[:, i].flatten(0, 1)[None].contiguous() for i in (0, 1)]
        is_ragged = len(set(queries)) > 1
        shape = (1, sum(queries)) if is_ragged else (len(queries), queries[0])
        self.q = torch.randn(*shape, case.heads, case.dim, generator=random, device=DEVICE).to(torch.bfloat16)
        self.queries = queries
        self.cu = torch.tensor([sum(queries[:i]) for i in range(len(queries) + 1)], dtype=torch.int32, device=DEVICE) if is_ragged else None
        self.pattern, self.arguments = pattern_of(case)
        self.out = torch.empty_like(self.q)
        self.lse = torch.empty(self.q.shape[0], case.heads, self.q.shape[1], device=DEVICE)

    def choose_lists(self, random):
        """Pages of each sequence, others for each kv head, in their order."""
        counts = [listed_pages(self.case, keys) for keys in self.case.keys]
        tables = torch.zeros(self.case.kv_heads, len(counts), max(counts), dtype=torch.int32, device=DEVICE)
        for of_head in tables:
            for row, all_pages, keys, count in zip(of_head, self.table, self.case.keys, counts):
                chosen = torch.randperm(-(-keys // self.case.page_size), generator=random, device=DEVICE)[:count].sort().values
                row[:count] = all_pages[chosen]
        self.table = tables
        self.lengths = torch.tensor(counts, dtype=torch.int32, device=DEVICE).mul(self.case.page_size).expand(self.case.kv_heads, -1).contiguous()

    def run(self, batch_invariant=False):
        if self.case.in_rows:
            serve.ragged_attention(self.q, *self.rows, self.cu_k, self.pattern, out=self.out, lse=self.lse, batch_invariant=batch_invariant)
            return
        k, v, options = self.cache[:, 0], self.cache[:, 1], dict(cu_seqlens_q=self.cu, shared_k=self.shared_k, out=self.out, lse=self.lse, batch_invariant=batch_invariant,
                                                                **self.arguments)
        if self.case.is_indexed:
            serve.indexed_attention(self.q, k, v, self.indptr, self.indices, self.last, self.pattern, **options)
        else:
            serve.paged_attention(self.q, k, v, self.table, self.lengths, self.pattern, **options)

    def check(self, **options):
        """The last query of the first and the last sequence, in fp64: it sees all keys of a causal pattern and of a tree on its path."""
        if self.case.pattern == "tree":
            return
        self.run(**options)
        if self.case.listed < 1 or self.case.in_rows:
            return self.check_last_heads()
        for s in {0, len(self.case.keys) - 1}:
            keys = self.case.keys[s]
            rows = self.table[s, :-(-keys // self.case.page_size)].long()
            first = 0 if self.case.pattern != "streaming" else max(0, (keys - WINDOW) // self.case.page_size)
            chosen = rows[first:]
            positions = torch.arange(first * self.case.page_size, first * self.case.page_size + len(chosen) * self.case.page_size, device=DEVICE)
            if first:
                chosen, positions = torch.cat([rows[:1], chosen]), torch.cat([torch.arange(self.case.page_size, device=DEVICE), positions])
            kept = positions < keys
            if self.case.pattern == "streaming":
                kept &= (positions >= keys - WINDOW) | (positions < SINKS)
            k, v = (self.cache[chosen, i].flatten(0, 1)[kept].double() for i in (0, 1))
            batch, row = (0, int(self.cu[s + 1]) - 1) if self.cu is not None else (s, self.queries[s] - 1)
            for head in (0, self.case.heads - 1):
                kv_head = head // (self.case.heads // self.case.kv_heads)
                weights = torch.softmax(k[:, kv_head] @ self.q[batch, row, head].double() * self.case.dim ** -0.5, 0)
                error = (weights @ v[:, kv_head] - self.out[batch, row, head].double()).abs().max().item()
                assert error < 0.02, f"{self.case.name}: sequence {s}, head {head}: error {error}"


    def check_last_heads(self):
        """The last query of the last sequence, of the first and the last head."""
        case, s = self.case, len(self.case.keys) - 1
        for head in (0, case.heads - 1):
            kv_head = head // (case.heads // case.kv_heads)
            if case.in_rows:
                k, v = (each[0, int(self.cu_k[s]):, kv_head].double() for each in self.rows)
            else:
                k, v = (self.cache[self.table[kv_head, s].long(), i, :, kv_head].flatten(0, 1).double() for i in (0, 1))
            weights = torch.softmax(k @ self.q[s, -1, head].double() * case.dim ** -0.5, 0)
            error = (weights @ v - self.out[s, -1, head].double()).abs().max().item()
            assert error < 0.02, f"{case.name}: head {head}: error {error}"


class Clock:
    def __init__(self, calls):
        self.calls, self.flush = calls, torch.empty(256 * MIB, dtype=torch.int8, device=DEVICE)

    def microseconds(self, run):
        return self.in_turn(run)[0]

    def in_turn(self, *runs):
        """Medians of replays of a graph of each, one after the other, each with an empty L2."""
        graphs, times = [self.graph(run) for run in runs], [[] for _ in runs]
        for _ in range(self.calls):
            for graph, own in zip(graphs, times):
                self.flush.zero_()
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                graph.replay()
                end.record()
                own.append((begin, end))
        torch.cuda.synchronize()
        return [sorted(begin.elapsed_time(end) * 1000 for begin, end in own)[len(own) // 2] for own in times]

    @staticmethod
    def graph(run):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        return graph


def read_rate(clock):
    """GB/s of the fastest way that PyTorch reads 4 GB."""
    data = torch.zeros(1 << 30, dtype=torch.int32, device=DEVICE)
    ways = [lambda: data.max(), lambda: data.view(torch.float32).sum(), lambda: data.view(torch.float32).view(1 << 12, -1).sum(1), lambda: data.view(torch.float32).amax()]
    return max(data.nbytes / clock.microseconds(way) / 1000 for way in ways)


def flashinfer(call):
    """Its tables, planned on the host before anything is timed; its kernels fa2, for single tokens those of tensor cores."""
    import flashinfer
    case = call.case
    if case.pattern == "streaming" or case.listed < 1 or case.in_rows or case.is_told:
        return None
    table = [row[:-(-keys // case.page_size)] for row, keys in zip(call.table, case.keys)]
    tables = offsets(map(len, table)), torch.cat(table), on_device((keys - 1) % case.page_size + 1 for keys in case.keys)
    workspace, sizes = torch.empty(256 * MIB, dtype=torch.uint8, device=DEVICE), (case.heads, case.kv_heads, case.dim, case.page_size)
    if max(call.queries) == 1:
        planned = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD", use_tensor_cores=True)
        planned.plan(*tables, *sizes, q_data_type=torch.bfloat16)
    else:
        planned = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD", backend="fa2")
        planned.plan(offsets(call.queries), *tables, *sizes, **kept_of(call), q_data_type=torch.bfloat16)
    q, out = call.q.flatten(0, 1), torch.empty_like(call.q.flatten(0, 1))
    call.run()
    error = (planned.run(q, call.cache, out=out) - call.out.flatten(0, 1)).abs().max().item()
    assert error < 0.02, f"differs by {error}"
    return lambda: planned.run(q, call.cache, out=out)


def on_device(numbers):
    return torch.tensor(list(numbers), dtype=torch.int32, device=DEVICE)


def offsets(counts):
    return on_device([0, *itertools.accumulate(counts)])


def kept_of(call):
    """What FlashInfer is told of the pattern: causal, or the pairs of a tree, whose drafts are the last keys."""
    if call.case.pattern != "tree":
        return dict(causal=True)
    ancestors, masks = call.arguments["ancestors"], []
    for keys, queries in zip(call.case.keys, call.queries):
        drafts = (ancestors[:, None] >> torch.arange(queries, device=DEVICE)) & 1
        masks.append(torch.cat([torch.ones(queries, keys - queries, dtype=torch.bool, device=DEVICE), drafts.bool()], 1).flatten())
    return dict(custom_mask=torch.cat(masks))


def flex(call):
    """On dense keys, all of one length."""
    from torch.nn.attention.flex_attention import flex_attention
    case = call.case
    if case.pattern != "causal" or call.cu is not None or call.queries[0] != 1 or len(set(case.keys)) > 1 or sum(case.keys) > K * K or case.listed < 1 or case.in_rows:
        return None
    k, v = (torch.randn(len(case.keys), case.kv_heads, case.keys[0], case.dim, dtype=torch.bfloat16, device=DEVICE) for _ in range(2))
    compiled, q = torch.compile(flex_attention), call.q.transpose(1, 2)
    return lambda: compiled(q, k, v, enable_gqa=True)


def time_of(peer, call, clock):
    try:
        run = peer(call)
        return "-" if run is None else f"{clock.microseconds(run):.1f}"
    except Exception as error:  # whatever a peer raises where it does not serve a case
        print(f"{peer.__name__}: {call.case.name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        torch.cuda.synchronize()
        return "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--alone", action="store_true", help="without the others, whose kernels take long to compile")
    parser.add_argument("--invariant", action="store_true", help="calls with batch_invariant=True beside those without it")
    parser.add_argument("cases", nargs="*", help="those whose name contains one of these; all of them")
    options = parser.parse_args()
    clock = Clock(options.calls)
    rate = read_rate(clock)
    with tempfile.TemporaryDirectory() as folder:
        heddle.configure(database=os.path.join(folder, "kernels.db"), first="best")
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, reads {rate:.0f} GB/s, an empty graph {clock.microseconds(lambda: clock.flush[:1].zero_()):.1f} us\n")
        invariant = "| batch_invariant, us | of the other " if options.invariant else ""
        print(f"| case | us | GB/s | % of the read {invariant}| FlashInfer, us | FlexAttention, us |\n|{'---|' * (8 if invariant else 6)}", flush=True)
        for case in CASES:
            if options.cases and not any(word in case.name for word in options.cases):
                continue
            call = Call(case)
            call.check()
            if options.invariant and not case.is_told:
                call.check(batch_invariant=True)
                taken, other = clock.in_turn(call.run, lambda: call.run(batch_invariant=True))
                invariant = f"{other:.1f} | {other / taken:.3f} | "
            else:
                taken, invariant = clock.microseconds(call.run), "- | - | " if options.invariant else ""
            gigabytes = kept_keys(case) * case.kv_heads * case.dim * 4 / taken / 1000
            peers = " | ".join("-" if options.alone else time_of(peer, call, clock) for peer in (flashinfer, flex))
            print(f"| {case.name}, {case.heads}/{case.kv_heads} | {taken:.1f} | {gigabytes:.0f} | {100 * gigabytes / rate:.0f} | {invariant}{peers} |", flush=True)
            del call
            torch.cuda.empty_cache()
    heddle.configure()


if __name__ == "__main__":
    main()
