#!/usr/bin/env python3
"""Trains a small causal language model whose sequence lies on all ranks: heddle.distributed computes attention over them, and FSDP shards what
the model learns over the same ranks.

    torchrun --nproc-per-node=8 examples/python/long_context.py --length=1048576          # of one machine; long_context.sbatch: of several
    torchrun --nproc-per-node=2 examples/python/long_context.py --length=512 --steps=3    # without GPUs, over gloo

Everything but attention looks at one row at a time, so a rank computes it of its own rows. Which rows those are says the plan, which is the
same on every rank.
"""
import argparse
import math
import os

import torch
from heddle import distributed as hd
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional


class Attention(nn.Module):
    """Of the rank's own queries, over the keys of all ranks."""

    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.shape, self.head_dim = (heads, kv_heads, kv_heads), dim // heads
        self.project = nn.Linear(dim, sum(self.shape) * self.head_dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, plan, group):
        q, k, v = (each.contiguous() for each in self.project(x).unflatten(-1, (-1, self.head_dim)).split(self.shape, dim=2))
        return self.out(hd.attention(q, k, v, plan, group).flatten(2))


class Block(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.norm, self.attention = nn.RMSNorm(dim), Attention(dim, heads, kv_heads)
        self.mlp = nn.Sequential(nn.RMSNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, plan, group):
        x = x + self.attention(self.norm(x), plan, group)
        return x + self.mlp(x)


class Model(nn.Module):
    def __init__(self, dim, heads, kv_heads, layers):
        super().__init__()
        self.embedding = nn.Embedding(256, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, kv_heads) for _ in range(layers))
        self.head = nn.Sequential(nn.RMSNorm(dim), nn.Linear(dim, 256))

    def forward(self, text, positions, plan, group):
        """`text` and `positions`: of the rank's rows."""
        x = self.embedding(text)
        rates = torch.exp(torch.arange(0, x.shape[-1], 2, device=x.device) * (-math.log(10000.0) / x.shape[-1]))
        angles = positions[:, None] * rates
        x = x + torch.stack((angles.sin(), angles.cos()), -1).flatten(1).to(x.dtype)
        for block in self.blocks:
            x = block(x, plan, group)
        return self.head(x)


def sharded(model, device):
    """Parameters of each block lie on all ranks, and are whole while it computes; on GPUs in bf16."""
    mesh = init_device_mesh(device.type, (distributed.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if device.type == "cuda" else MixedPrecisionPolicy()
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def rows_of_text(step, length):
    """The bytes of this file, over and over, from another place at each step: the same on every rank."""
    with open(__file__, "rb") as file:
        text = torch.tensor(list(file.read()))
    return text[(torch.arange(length + 1) + step * 97) % len(text)]


def train(options, device):
    """The loss of each step, over all rows."""
    ranks = distributed.get_world_size()
    plan = hd.plan(options.pattern, seqlen=options.length, heads=options.heads, kv_heads=options.kv_heads, ranks=ranks, layout=options.layout)
    group = hd.Group.of(limit=options.limit)

    def own(rows):
        return plan.shard(rows, group.rank, dim=0).to(device)

    torch.manual_seed(1)  # parameters are made alike, and then cut
    model = sharded(Model(options.dim, options.heads, options.kv_heads, options.layers).to(device), device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    positions, losses = own(torch.arange(options.length)), []
    for step in range(options.steps):
        text = rows_of_text(step, options.length)
        logits = model(own(text[:-1])[None], positions, plan, group)
        # FSDP takes the mean of gradients over ranks: of parts of a sum over all rows, each times the number of ranks.
        loss = functional.cross_entropy(logits[0].float(), own(text[1:]), reduction="sum") * (ranks / options.length)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total = loss.detach() / ranks
        distributed.all_reduce(total)
        losses.append(total.item())
        if group.rank == 0:
            print(f"step {step}: {losses[-1]:.4f} nats a byte", flush=True)
    group.wait()
    group.close()
    return losses


def options_of(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in dict(length=4096, steps=20, dim=64, heads=4, kv_heads=2, layers=2).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--limit", type=float, default=60, help="seconds that a rank waits for others")
    parser.add_argument("--pattern", default="causal")
    parser.add_argument("--layout", default="zigzag", help="zigzag is even for causal patterns, balanced for windows")
    return parser.parse_args(words)


def main():
    options, has_gpus = options_of(), torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_gpus else torch.device("cpu")
    if has_gpus:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if has_gpus else "gloo")
    train(options, device)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
