#!/usr/bin/env python3
"""One token of each sequence over caches whose keys lie on the GPUs of a host in equal parts, beside the same call with all keys on one of them:

    torchrun --nproc-per-node=2 bench/group_decode.py [--heddle=PROGRAM] [--links=GBPS,US] [SEQUENCESxKEYS[,HEADS/KV_HEADS]...]

CUDA graphs, replayed behind each other, the slowest rank counts, median of the turns; bf16, head dim 128, pages of 64 keys in random order, causal. Predicted, where the
program is given: what `heddle ring decode` says, of links that are given or that `heddle ring links` measures before. Rank 0 prints a row of a table
for each case; the largest difference of the results is in the last column.
"""
import json
import subprocess

import torch
from heddle import distributed as hd, serve

from group import as_graph, milliseconds, most_of_ranks, over_ranks

CASES = ("1x1M,32/8", "1x128k,32/8", "16x128k,32/8", "64x32k,64/8")
DIM, PAGE, TURNS, CALLS, MICRO = 128, 64, 5, 40, 1000


def case_of(text):
    sizes, _, heads = text.partition(",")
    sequences, keys = sizes.split("x")
    unit = {"k": 1 << 10, "M": 1 << 20}.get(keys[-1])
    heads, kv_heads = (int(each) for each in (heads or "32/8").split("/"))
    return int(sequences), int(keys[:-1]) * unit if unit else int(keys), heads, kv_heads


class Cache:
    """Pages of so many keys of each sequence, in random order, the same wherever they are made."""

    def __init__(self, sequences, keys, kv_heads, device):
        pages = keys // PAGE
        random = torch.Generator(device=device).manual_seed(5)
        self.k, self.v = (torch.randn(sequences * pages, PAGE, kv_heads, DIM, generator=random, device=device, dtype=torch.bfloat16) for _ in range(2))
        self.table = torch.randperm(sequences * pages, generator=random, device=device).to(torch.int32).view(sequences, pages)


def numbers(value, count, device):
    return torch.full((count,), value, dtype=torch.int32, device=device)


def predicted(options, text, ranks):
    """Microseconds with keys on all ranks, and on one; "-": the program is not there."""
    if "heddle" not in options:
        return "-", "-"
    sequences, keys, heads, kv_heads = case_of(text)
    command = [options["heddle"], "ring", "decode", "causal", f"--ranks={ranks}", f"--seqlen={keys}", f"--batch={sequences}", f"--heads={heads}",
               f"--kv-heads={kv_heads}", f"--head-dim={DIM}", f"--links={options['links']}", "--json"]
    times = {each["scheme"]: each["ms"] for each in json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["predicted"]}
    return tuple(f"{times[scheme] * MICRO:.0f}" for scheme in ("keys", "one"))


def measure(text, group, options):
    sequences, keys, heads, kv_heads = case_of(text)
    rank, ranks, device = group.rank, group.ranks, torch.device("cuda", group.device)
    cache, own, pages = Cache(sequences, keys, kv_heads, device), keys // ranks, keys // PAGE // ranks
    q = torch.randn(sequences, 1, heads, DIM, generator=torch.Generator(device=device).manual_seed(6), device=device, dtype=torch.bfloat16)
    table, whole = cache.table[:, rank * pages:(rank + 1) * pages].contiguous(), numbers(keys, sequences, device)
    lengths, firsts = numbers(own, sequences, device), numbers(rank * own, sequences, device)

    def one():
        return serve.paged_attention(q, cache.k, cache.v, cache.table, whole, "causal")

    def many():
        return hd.paged_attention(q, cache.k, cache.v, table, lengths, "causal", group, k_origins=firsts, whole_k=whole)

    alone, together = as_graph(one, group), as_graph(many, group)
    difference, = most_of_ranks([(alone().float() - together().float()).abs().max().item()])
    turns = [(milliseconds(alone, CALLS), milliseconds(together, CALLS)) for _ in range(TURNS)]
    us = [sorted(each)[TURNS // 2] * MICRO for each in zip(*turns)]
    if rank == 0:
        of_keys, of_one = predicted(options, text, ranks)
        print(f"| {text} | {us[0]:.0f} | {of_one} | {us[1]:.0f} | {of_keys} | {us[0] / us[1]:.2f} x | {difference:.4f} |", flush=True)


if __name__ == "__main__":
    over_ranks(("case", "one GPU, us", "predicted", "group, us", "predicted", "", "difference"), measure, CASES)
