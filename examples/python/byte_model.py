#!/usr/bin/env python3
"""Trains a small LongNet-style language model on the bytes of files: byte_model.py [FILE ...] [--steps N] [--length BYTES] [--dim D] ...

Every head mixes dilated branches with weights exp(lse): near keys all of them, far keys every second, fourth, eighth one. Two heads of queries
share one of keys and values. Before training the loss is about that of guessing (ln 256 = 5.55 nats a byte). On a GPU attention runs in bf16.

--e4m3 evaluates the trained model in bf16 and with attention in e4m3, quantised at once; on a GPU it must be one of Hopper.

With --window N a query sees the N bytes before it and the first four instead; --save writes that model for examples/server.
"""
import argparse
import glob
import math
import os
import time

import heddle
import safetensors_file
import torch
from heddle.words import causal, lse, static
from torch import nn

REPOSITORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SEGMENTS, RATES = [128, 512, 2048, 8192], [1, 2, 4, 8]
EVALUATIONS = 8  # batches
SINKS = 4  # of --window: first bytes that every query sees
MIXTURE = heddle.pattern(lse(*(causal.dilate(rate, rule="block").segment(static(length)) for length, rate in zip(SEGMENTS, RATES))), name="mixture")


class Attention(nn.Module):
    def __init__(self, dim, heads, kv_heads, window):
        super().__init__()
        self.shape = (heads, kv_heads, kv_heads)
        self.reach = dict(first=SINKS, left=window) if window else {}
        self.head_dim = dim // heads
        self.is_e4m3 = False
        self.project = nn.Linear(dim, sum(self.shape) * self.head_dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, k, v = self.project(x).unflatten(-1, (-1, self.head_dim)).split(self.shape, dim=2)
        options = dict(self.reach)
        if self.is_e4m3:
            q, k, v, options["descale"], _ = heddle.quantize(q, k, v)
        mixed = heddle.attention(q, k, v, "streaming" if self.reach else MIXTURE, **options)
        return self.out(mixed.to(x.dtype).flatten(2))


class Block(nn.Module):
    """Attention and a feed-forward part, each behind an RMSNorm and beside a residual."""

    def __init__(self, dim, heads, kv_heads, window):
        super().__init__()
        self.attention = nn.Sequential(nn.RMSNorm(dim), Attention(dim, heads, kv_heads, window))
        self.mlp = nn.Sequential(nn.RMSNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.mlp(x)


class ByteModel(nn.Module):
    def __init__(self, dim, heads, kv_heads, layers, window=0):
        super().__init__()
        self.embedding = nn.Embedding(256, dim)
        self.blocks = nn.Sequential(*(Block(dim, heads, kv_heads, window) for _ in range(layers)))
        self.head = nn.Sequential(nn.RMSNorm(dim), nn.Linear(dim, 256))

    def positions(self, length, dim, device):
        """Sines, so that there is no longest text."""
        rates = torch.exp(torch.arange(0, dim, 2, device=device) * (-math.log(10000.0) / dim))
        angles = torch.arange(length, device=device)[:, None] * rates
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)

    def forward(self, text):
        x = self.embedding(text)
        return self.head(self.blocks(x + self.positions(x.shape[1], x.shape[2], x.device)))

    def loss(self, text):
        """Nats a byte, of the next one."""
        return nn.functional.cross_entropy(self(text[:, :-1]).flatten(0, 1).float(), text[:, 1:].flatten())


def read(paths, length):
    data = b"".join(open(path, "rb").read() for path in paths)
    if len(data) <= length:
        raise SystemExit(f"expected more than {length} bytes of text, got {len(data)}")
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).long()


def texts(data, given, device):
    begins = torch.randint(len(data) - given.length, (given.batch, 1))
    return data[begins + torch.arange(given.length + 1)].to(device)


def train(model, data, given, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=given.rate)
    start = time.perf_counter()
    for step in range(1, given.steps + 1):
        text = texts(data, given, device)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            loss = model.loss(text)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1 or step % given.every == 0 or step == given.steps:
            print(f"step {step}: loss {loss.item():.3f} nats a byte, {(time.perf_counter() - start) / step * 1e3:.0f} ms a step on {device}", flush=True)


@torch.no_grad()
def evaluate(model, batches, device, is_e4m3):
    for block in model.blocks:
        block.attention[1].is_e4m3 = is_e4m3
    with torch.autocast(device, dtype=torch.bfloat16):
        return sum(model.loss(text).item() for text in batches) / len(batches)


def compare(model, data, given, device):
    batches = [texts(data, given, device) for _ in range(EVALUATIONS)]
    high, low = (evaluate(model, batches, device, is_e4m3) for is_e4m3 in (False, True))
    print(f"loss {high:.4f} in bf16, {low:.4f} with attention in e4m3: {100 * (low / high - 1):+.2f}%")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=sorted(glob.glob(os.path.join(REPOSITORY, "docs", "*.md"))), help="text [docs/*.md]")
    for name, default, what in (("steps", 300, ""), ("length", 4096, "bytes of a sequence"), ("batch", 2, "sequences of a step"), ("dim", 256, ""),
                                ("heads", 4, "of queries"), ("kv-heads", 2, "of keys and values"), ("layers", 4, ""), ("every", 20, "steps between lines"),
                                ("window", 0, "bytes before a query that it sees; 0: the mixture")):
        parser.add_argument(f"--{name}", type=int, default=default, help=what)
    parser.add_argument("--rate", type=float, default=1e-3, help="of learning")
    parser.add_argument("--save", help="safetensors of the trained model, of --window")
    parser.add_argument("--e4m3", action="store_true", help="also the loss of the trained model with attention in e4m3")
    given = parser.parse_args()
    if given.save and not given.window:
        parser.error("--save: examples/server has a window: give --window")
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = ByteModel(given.dim, given.heads, given.kv_heads, given.layers, given.window).to(device)
    data = read(given.files, given.length)
    train(model, data, given, device)
    if given.e4m3:
        compare(model, data, given, device)
    if given.save:
        safetensors_file.write(given.save, {name: tensor.float().cpu().numpy() for name, tensor in model.state_dict().items()},
                               dict(heads=given.heads, kv_heads=given.kv_heads, first=SINKS, left=given.window))


if __name__ == "__main__":
    main()
