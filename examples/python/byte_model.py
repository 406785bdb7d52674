#!/usr/bin/env python3
"""A small LongNet-style transformer over the bytes of a file: byte_model.py [FILE] [--layers N] [--dim D] [--limit BYTES].

A forward pass with weights that nobody trained: every byte gets a distribution over the next one, and the mean loss is about that of
guessing (ln 256 = 5.55). What is shown is that lengths need not divide segments, and that the same module runs on a GPU and on processors.
"""
import argparse
import math
import os
import time

import torch
from heddle.nn import MultiheadDilatedAttention
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
SEGMENTS, RATES = [512, 1024, 4096, 16384], [1, 2, 4, 8]


class Block(nn.Module):
    """Attention and a feed-forward part, each behind a LayerNorm and beside a residual."""

    def __init__(self, dim, heads):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = MultiheadDilatedAttention(dim, heads, RATES, SEGMENTS, mixed=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        inner = self.before_attention(x)
        x = x + self.attention(inner, inner, inner, is_causal=True)[0]
        return x + self.mlp(self.before_mlp(x))


class ByteModel(nn.Module):
    def __init__(self, dim, heads, layers):
        super().__init__()
        self.embedding = nn.Embedding(256, dim)
        self.blocks = nn.Sequential(*(Block(dim, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 256)

    def positions(self, length, dim, device):
        """Sines, so that there is no longest text."""
        rates = torch.exp(torch.arange(0, dim, 2, device=device) * (-math.log(10000.0) / dim))
        angles = torch.arange(length, device=device)[:, None] * rates
        return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)

    def forward(self, text):
        x = self.embedding(text)
        x = x + self.positions(x.shape[1], x.shape[2], x.device).to(x.dtype)
        return self.head(self.norm(self.blocks(x)))


def read(path, limit, device):
    with open(path, "rb") as file:
        data = file.read(limit)
    if len(data) < 2:
        raise SystemExit(f"{path}: expected at least two bytes, it has {len(data)}")
    return torch.tensor(list(data), dtype=torch.long, device=device)[None]


def loss_of(logits, text):
    return nn.functional.cross_entropy(logits[0, :-1].float(), text[0, 1:]).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default=os.path.join(HERE, "..", "..", "README.md"))
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--limit", type=int, default=1 << 20, help="most bytes to read")
    given = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    text = read(given.file, given.limit, device)
    model = ByteModel(given.dim, given.heads, given.layers).to(device, dtype).eval()
    with torch.inference_mode():
        model(text)  # compiles the kernel, once for every length
        start = time.perf_counter()
        logits = model(text)
        loss = loss_of(logits, text)
    print(f"{os.path.basename(given.file)}: {text.shape[1]:,} bytes, {given.layers} layer{'' if given.layers == 1 else 's'}, loss {loss:.3f} nats a byte, "
          f"{1e3 * (time.perf_counter() - start):.1f} ms on {device}")


if __name__ == "__main__":
    main()
