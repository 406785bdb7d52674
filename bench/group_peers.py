#!/usr/bin/env python3
"""Causal calls over the GPUs of a host, forward, beside what else there is for them, all in turn:

    torchrun --nproc-per-node=2 bench/group_peers.py [TOKENS_OF_A_GPU...]

bf16, 64 query heads, 8 of k and v, head dim 128, rows in zigzag order; 8k, 32k and 64k tokens a GPU without arguments. Providers: heddle over the group;
an all-gather of k and v, put in order, and heddle.attention of each of a rank's two pieces of rows; PyTorch's context_parallel, a prototype, around
scaled_dot_product_attention, by each kernel and way of moving keys that it has. Rank 0 prints a row for each: milliseconds of the slowest rank (median and range of
five turns), efficiency (the time of heddle on one GPU, over the number of GPUs, over the provider's), and the largest difference of all ranks' results
from heddle's on one GPU. A provider that cannot be timed says why.
"""
import os
import sys
import tempfile

import heddle
import torch
from group import DIM, HEADS, KV_HEADS, TURNS, milliseconds, most_of_ranks
from heddle import distributed as hd
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import set_rotate_method
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn import functional

KERNELS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "FlashAttention-2": SDPBackend.FLASH_ATTENTION}


class Group:
    """heddle over the group."""

    def __init__(self, plan, share, group):
        self.plan, self.share, self.group = plan, share, group

    def time(self, of):
        return of(lambda: hd.attention(*self.share, self.plan, self.group))


class AllGather:
    """Keys of all ranks by one message of k and one of v; a call of heddle for each piece of rows."""

    def __init__(self, share, rank, ranks):
        self.share, self.rank, self.ranks = share, rank, ranks

    def in_order(self, share):
        """k or v of the sequence: of each rank the first of its pieces, then the second ones from the last rank on."""
        parts = torch.empty(self.ranks, *share.shape, device=share.device, dtype=share.dtype)
        distributed.all_gather_into_tensor(parts, share)
        firsts, seconds = parts.chunk(2, 2)
        return torch.cat([*firsts, *reversed(list(seconds))], 1)

    def call(self):
        q, k, v = self.share
        k, v = self.in_order(k), self.in_order(v)
        length = q.shape[1] // 2
        pieces = zip(q.chunk(2, 1), (self.rank, 2 * self.ranks - 1 - self.rank))
        return torch.cat([heddle.attention(rows, k[:, :(number + 1) * length], v[:, :(number + 1) * length], "causal", k_origin=-number * length)
                          for rows, number in pieces], 1)

    def time(self, of):
        return of(self.call)


class ContextParallel:
    """PyTorch's own, which takes whole tensors of [batch, heads, rows, dim] apart by itself."""

    def __init__(self, whole, mesh, kernel, rotation):
        self.whole, self.mesh, self.kernel, self.rotation = whole, mesh, kernel, rotation

    def time(self, of):
        buffers = [each.transpose(1, 2).clone(memory_format=torch.contiguous_format) for each in self.whole]
        set_rotate_method(self.rotation)
        with sdpa_kernel(KERNELS[self.kernel]), context_parallel(self.mesh, buffers=buffers, buffer_seq_dims=[2, 2, 2], no_restore_buffers=set(buffers)):
            return of(lambda: functional.scaled_dot_product_attention(*buffers, is_causal=True, enable_gqa=True).transpose(1, 2))


def providers_of(plan, whole, share, group, mesh):
    found = {"heddle": Group(plan, share, group), "all-gather + heddle": AllGather(share, group.rank, group.ranks)}
    for kernel in KERNELS:
        for rotation in ("allgather", "alltoall"):
            found[f"context_parallel, {kernel}, {rotation}"] = ContextParallel(whole, mesh, kernel, rotation)
    return found


def difference(provider, expected):
    """How far its results are from what is expected, on any rank; or what went wrong, on all alike."""
    try:
        return most_of_ranks([(provider.time(lambda run: run()).float() - expected.float()).abs().max().item()])[0]
    except Exception as error:  # whatever a prototype throws
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def measure(tokens, group, mesh):
    ranks, rank, device = group.ranks, group.rank, torch.device("cuda", group.device)
    rows = tokens * ranks
    plan = hd.plan("causal", seqlen=rows, heads=HEADS, kv_heads=KV_HEADS, ranks=ranks, layout="zigzag", form="gather")
    random = torch.Generator(device=device).manual_seed(7)
    whole = [torch.randn(1, rows, heads, DIM, device=device, dtype=torch.bfloat16, generator=random) for heads in (HEADS, KV_HEADS, KV_HEADS)]
    share = [plan.shard(each, rank) for each in whole]
    expected = plan.shard(heddle.attention(*whole, "causal"), rank)
    providers, times, alone = providers_of(plan, whole, share, group, mesh), {}, []
    differences = {name: difference(provider, expected) for name, provider in providers.items()}
    for name in [name for name, found in differences.items() if isinstance(found, str)]:
        del providers[name]
        if rank == 0:
            print(f"| {tokens}, {name} | - | - | - | {differences[name]} |", flush=True)
    calls = max(2, min(20, (1 << 18) // rows))
    for _ in range(TURNS):
        alone.append(milliseconds(lambda: heddle.attention(*whole, "causal"), calls))
        for name, provider in providers.items():
            times.setdefault(name, []).append(provider.time(lambda run: milliseconds(run, calls)))
    if rank == 0:
        one = sorted(alone)[TURNS // 2]
        print(f"| {tokens}, heddle on one GPU | {one:.2f} | {min(alone):.2f} to {max(alone):.2f} | | |")
        for name, of_turns in times.items():
            ratio = sorted(a / ranks / b for a, b in zip(alone, of_turns))[TURNS // 2]
            print(f"| {tokens}, {name} | {sorted(of_turns)[TURNS // 2]:.2f} | {min(of_turns):.2f} to {max(of_turns):.2f} | {ratio:.1%} | "
                  f"{differences[name]:.4f} |", flush=True)


def main():
    words = sys.argv[1:] or ("8k", "32k", "64k")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    mesh = init_device_mesh("cuda", (distributed.get_world_size(),))
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        heddle.configure(database=os.path.join(folder, "kernels.db"), first="best")
        group = hd.Group.of()
        if rank == 0:
            print(f"{group.ranks} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n| tokens of a GPU, provider | ms | range | efficiency | difference |\n|{'---|' * 5}",
                  flush=True)
        for word in words:
            measure(int(word[:-1]) * 1024 if word.endswith("k") else int(word), group, mesh)
            torch.cuda.empty_cache()
        group.close()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
