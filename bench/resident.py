#!/usr/bin/env python3
"""2^28 tokens that lie in the memory of the GPUs of a host, one head of 64 channels, over all of them; or a million, causal, with many heads:

    torchrun --nproc-per-node=2 bench/resident.py [--tokens=268435456] [--rows=256] [--turns=3] [PATTERN...]
    torchrun --nproc-per-node=2 bench/resident.py --tokens=1048576 --heads=64 --kv-heads=8 --dim=128 --layout=zigzag --rows=16 --turns=1 causal

Patterns: sliding_window (left = 4095), longnet_base of one head, both without others; causal. Inputs are made in pieces, each from its number alone, so
that any rank can make any row; rows that are drawn, the first and the last of each range of a rank among them, are held against the definition in fp64, in
the first and the last head. Rank 0 prints a row of a table for each pattern: time of a call (median of the turns, slowest rank), what the plan predicted
at the rate of a shorter call on one GPU, most memory of a GPU, the largest error of a row over its bound. Two H200, or so many GPUs that 70 GB of each are enough for 2^28; without GPUs, over gloo,
for few tokens. Exit code 1: a row is wrong.
"""
import argparse
import os
import sys
import time

import heddle
import torch
from heddle import distributed as hd
from torch import distributed

PIECE, LEFT = 1 << 16, 4095
SHORTER, SECONDS = 1 << 28, 2.0  # elements of q of the call whose rate predicts, and how long it is made again, so that clocks are those of long calls
BRANCHES = ((2048, 1), (4096, 2), (8192, 4), (16384, 6), (32768, 12))  # of longnet_base: segments, and rates; one head keeps class 0


class Inputs:
    """Rows of q, k and v: [rows, heads, dim], each as its number says."""

    def __init__(self, options, device):
        self.heads, self.dim, self.device = (options.heads, options.kv_heads, options.kv_heads), options.dim, device

    def piece(self, which, number):
        random = torch.Generator(device=self.device).manual_seed(number * 3 + which)
        return torch.randn(PIECE, self.heads[which], self.dim, generator=random, device=self.device, dtype=torch.bfloat16)

    def rows(self, which, first, last, heads=slice(None)):
        """Of q (0), k (1) or v (2)."""
        parts = []
        for number in range(first // PIECE, (last - 1) // PIECE + 1):
            begin, end = max(first, number * PIECE), min(last, (number + 1) * PIECE)
            parts.append(self.piece(which, number)[begin - number * PIECE:end - number * PIECE, heads].clone())
        return torch.cat(parts)


def keys_of(pattern, row):
    """Those that the row keeps, as often as it does."""
    if pattern == "causal":
        return torch.arange(row + 1)
    if pattern == "sliding_window":
        return torch.arange(max(0, row - LEFT), row + 1)
    branches = [(row // length * length, rate) for length, rate in BRANCHES]
    return torch.cat([torch.arange(begin, row + 1, rate) for begin, rate in branches if (row - begin) % rate == 0])


def excess(pattern, row, out, inputs):
    """The error of a row [heads, dim], over what promise 1 of docs/verification.md allows a row whose weights are rounded to bf16."""
    keys = keys_of(pattern, row)
    first, worst = int(keys.min()), 0.0
    for head, kv_head in ((0, 0), (inputs.heads[0] - 1, inputs.heads[1] - 1)):
        q = inputs.rows(0, row, row + 1, head)[0].double()
        k, v = (inputs.rows(which, first, row + 1, kv_head)[keys.to(out.device) - first].double() for which in (1, 2))
        weights = torch.softmax(k @ q / inputs.dim ** 0.5, 0)
        expected = weights @ v
        allowed = 2.0 ** -8 * (weights @ v.abs() + expected.abs())
        worst = max(worst, ((out[head].double() - expected).abs() / allowed).max().item())
    return worst


def most(value, device):
    value = torch.tensor([value], dtype=torch.float64, device=device)
    distributed.all_reduce(value, distributed.ReduceOp.MAX)
    return value.item()


def seconds(call, group, device):
    distributed.barrier()
    begin = time.perf_counter()
    call()
    group.wait()
    return most(time.perf_counter() - begin, device)


def tflops_of_shorter(pattern, options, inputs, sizes, device):
    """Of one GPU, the slowest: a plan of one rank says what the call would take at 1 TFLOP/s."""
    tokens = min(options.tokens, SHORTER // (options.heads * options.dim))
    plan = hd.plan(pattern, seqlen=tokens, heads=options.heads, kv_heads=options.kv_heads, ranks=1, calls=hd.Calls(head_dim=options.dim, kernel_tflops=1), **sizes)
    q, k, v = (inputs.rows(which, 0, tokens)[None] for which in range(3))
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < SECONDS:
        at = time.perf_counter()
        heddle.attention(q, k, v, pattern, **sizes)
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - at)
    return plan.milliseconds / 1000 / most(sorted(times[len(times) // 2:])[len(times) // 4], device)


def measure(pattern, options, group, device):
    sizes, inputs = dict(left=LEFT) if pattern == "sliding_window" else {}, Inputs(options, device)
    tflops = tflops_of_shorter(pattern, options, inputs, sizes, device)
    plan = hd.plan(pattern, seqlen=options.tokens, heads=options.heads, kv_heads=options.kv_heads, ranks=group.ranks, layout=options.layout,
                   calls=hd.Calls(head_dim=options.dim, kernel_tflops=tflops), **sizes)
    ranges = plan.layout[group.rank]
    q, k, v = (torch.cat([inputs.rows(which, *each) for each in ranges])[None] for which in range(3))
    out, places = hd.attention(q, k, v, plan, group), [row for first, last in ranges for row in (first, last - 1)]
    group.wait()
    own, random = sum(last - first for first, last in ranges), torch.Generator().manual_seed(group.rank)
    drawn = [row_at(ranges, place) for place in torch.randint(own, (max(0, options.rows // group.ranks - len(places)),), generator=random).tolist()]
    worst = most(max(excess(pattern, row, out[0, place_of(ranges, row)], inputs) for row in {*places, *drawn}), device)
    del out
    turns = sorted(seconds(lambda: hd.attention(q, k, v, plan, group), group, device) for _ in range(options.turns))
    memory = most(torch.cuda.max_memory_allocated() if device.type == "cuda" else 0, device)
    if group.rank == 0:
        print(f"| {pattern} | {plan.form} | {turns[len(turns) // 2]:.3f} s | {(plan.milliseconds or 0) / 1000:.3f} s | {memory / 1e9:.1f} GB | {worst:.2f} |", flush=True)
    return worst <= 1


def row_at(ranges, place):
    """The row of the sequence that lies at a place of the rank's rows."""
    for first, last in ranges:
        if place < last - first:
            return first + place
        place -= last - first


def place_of(ranges, row):
    """Where a row of the sequence lies among the rank's rows."""
    before = 0
    for first, last in ranges:
        if first <= row < last:
            return before + row - first
        before += last - first


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in {"tokens": 1 << 28, "rows": 256, "turns": 3, "heads": 1, "kv-heads": 1, "dim": 64}.items():
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--layout", default="contiguous")
    parser.add_argument("patterns", nargs="*", default=["sliding_window", "longnet_base"])
    options, has_gpus = parser.parse_args(), torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_gpus else torch.device("cpu")
    if has_gpus:
        torch.cuda.set_device(device)
    heddle.configure(first="best")  # what is timed is no kernel that serves until that is compiled
    distributed.init_process_group("nccl" if has_gpus else "gloo")
    group = hd.Group.of(limit=600)
    if group.rank == 0:
        print(f"{options.tokens} tokens, {options.heads} heads of {options.dim} on {group.ranks} ranks\n| pattern | form | a call | predicted | memory | error over its bound |\n|---|---|---|---|---|---|", flush=True)
    are_right = [measure(pattern, options, group, device) for pattern in options.patterns]
    group.close()
    distributed.destroy_process_group()
    return 0 if all(are_right) else 1


if __name__ == "__main__":
    sys.exit(main())
