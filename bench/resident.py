#!/usr/bin/env python3
"""2^28 tokens that lie in the memory of the GPUs of a host, one head of 64 channels, over all of them:

    torchrun --nproc-per-node=2 bench/resident.py [--tokens=268435456] [--rows=256] [--turns=3] [PATTERN...]

Patterns: sliding_window (left = 4095), longnet_base; both without others. Inputs are made in pieces, each from its number alone, so that any rank
can make any row; rows that are drawn, the first and the last of each rank among them, are held against the definition in fp64. Rank 0 prints a
row of a table for each pattern: time of a call (median of the turns, slowest rank), what the plan predicted, most memory of a GPU, the largest
error of a row over its bound. Two H200, or so many GPUs that 70 GB of each are enough; without GPUs, over gloo, for few tokens. Exit code 1: a row
is wrong.
"""
import argparse
import os
import sys
import time

import torch
from heddle import distributed as hd
from torch import distributed

DIM, PIECE, LEFT = 64, 1 << 16, 4095
BRANCHES = ((2048, 1), (4096, 2), (8192, 4), (16384, 6), (32768, 12))  # of longnet_base: segments, and rates; one head keeps class 0


def piece_of(which, piece, device):
    random = torch.Generator(device=device).manual_seed(piece * 3 + which)
    return torch.randn(PIECE, DIM, generator=random, device=device).to(torch.bfloat16)


def rows_of(which, first, last, device):
    """Rows of q (0), k (1) or v (2)."""
    rows = torch.empty(last - first, DIM, dtype=torch.bfloat16, device=device)
    for piece in range(first // PIECE, (last - 1) // PIECE + 1):
        begin, end = max(first, piece * PIECE), min(last, (piece + 1) * PIECE)
        rows[begin - first:end - first] = piece_of(which, piece, device)[begin - piece * PIECE:end - piece * PIECE]
    return rows


def keys_of(pattern, row):
    """Those that the row keeps, as often as it does."""
    if pattern == "sliding_window":
        return torch.arange(max(0, row - LEFT), row + 1)
    branches = [(row // length * length, rate) for length, rate in BRANCHES]
    return torch.cat([torch.arange(begin, row + 1, rate) for begin, rate in branches if (row - begin) % rate == 0])


def excess(pattern, row, out, device):
    """The error of a row, over what promise 1 of docs/verification.md allows a row whose weights are rounded to bf16."""
    keys = keys_of(pattern, row)
    first = int(keys.min())
    q = rows_of(0, row, row + 1, device)[0].double()
    k, v = (rows_of(which, first, row + 1, device)[keys.to(device) - first].double() for which in (1, 2))
    weights = torch.softmax(k @ q / DIM ** 0.5, 0)
    expected = weights @ v
    allowed = 2.0 ** -8 * (weights @ v.abs() + expected.abs())
    return ((out.double() - expected).abs() / allowed).max().item()


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


def measure(pattern, options, group, device):
    sizes = dict(left=LEFT) if pattern == "sliding_window" else {}
    plan = hd.plan(pattern, seqlen=options.tokens, heads=1, ranks=group.ranks, calls=hd.Calls(head_dim=DIM), **sizes)
    (first, last), = plan.layout[group.rank]
    q, k, v = (rows_of(which, first, last, device)[None, :, None, :] for which in range(3))
    out = hd.attention(q, k, v, plan, group)
    group.wait()
    drawn = torch.randint(first, last, (max(2, options.rows // group.ranks) - 2,), generator=torch.Generator().manual_seed(group.rank)).tolist()
    worst = most(max(excess(pattern, row, out[0, row - first, 0], device) for row in {first, last - 1, *drawn}), device)
    del out
    turns = sorted(seconds(lambda: hd.attention(q, k, v, plan, group), group, device) for _ in range(options.turns))
    memory = most(torch.cuda.max_memory_allocated() if device.type == "cuda" else 0, device)
    if group.rank == 0:
        print(f"| {pattern} | {plan.form} | {turns[len(turns) // 2]:.3f} s | {(plan.milliseconds or 0) / 1000:.3f} s | {memory / 1e9:.1f} GB | {worst:.2f} |", flush=True)
    return worst <= 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in dict(tokens=1 << 28, rows=256, turns=3).items():
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("patterns", nargs="*", default=["sliding_window", "longnet_base"])
    options, has_gpus = parser.parse_args(), torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_gpus else torch.device("cpu")
    if has_gpus:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if has_gpus else "gloo")
    group = hd.Group.of(limit=600)
    if group.rank == 0:
        print(f"{options.tokens} tokens on {group.ranks} ranks\n| pattern | form | a call | predicted | memory | error over its bound |\n|---|---|---|---|---|---|", flush=True)
    are_right = [measure(pattern, options, group, device) for pattern in options.patterns]
    group.close()
    distributed.destroy_process_group()
    return 0 if all(are_right) else 1


if __name__ == "__main__":
    sys.exit(main())
