#!/usr/bin/env python3
"""heddle.quantize beside a copy of as many bytes and beside the same in PyTorch, on one GPU, launched in turn in one process:

    PYTHONPATH=runtime/Python HEDDLE_LIBRARY=build/lib/libheddle.so python3 bench/quantize.py [--rounds=N] [--dtype=bfloat16] [ROWSxHEADSxDIM...]

Medians of N (30) launches between events, the L2 flushed before each. `copy`: cudaMemcpy that reads and writes together the bytes that q, k
and v and their e4m3 are. `smoothed`: with smooth_k. `rotated`: with a rotation. `attention`: a causal call of e4m3 on what came out, where the GPU has one (2^15 rows and
less), alone and behind the quantisation.
"""
import argparse

import heddle
import torch
from peers.gpu import Gpu
from peers.timing import Rounds

SHAPES = ("32768x16x128", "32768x16x64", "8192x16x128", "131072x4x128", "1024x16x128")
MOST_ROWS = 1 << 15


def by_torch(tensors):
    for tensor in tensors:
        scale = tensor.abs().amax(dim=(1, 3)).float() / 448
        (tensor / scale[:, None, :, None]).to(torch.float8_e4m3fn)


def calls_of(tensors):
    elements = sum(tensor.numel() for tensor in tensors)
    signs = heddle.random_signs(tensors[0].shape[3], device="cuda")
    half = elements * (tensors[0].element_size() + 1) // 2
    source, target = (torch.empty(half, dtype=torch.uint8, device="cuda") for _ in range(2))
    calls = {"copy": lambda: target.copy_(source), "quantize": lambda: heddle.quantize(*tensors),
             "smoothed": lambda: heddle.quantize(*tensors, "causal", smooth_k=True),
             "rotated": lambda: heddle.quantize(*tensors, rotation=signs), "torch": lambda: by_torch(tensors)}
    if tensors[0].shape[1] <= MOST_ROWS and torch.cuda.get_device_capability() == (9, 0):
        low = heddle.quantize(*tensors)
        attend = heddle.prepare(low.q, low.k, low.v, "causal", descale=low.descale)
        calls["attention"] = attend
        calls["both"] = lambda: (heddle.quantize(*tensors), attend())
    return calls, 2 * half


def measure(shape, dtype, rounds, turns):
    rows, heads, dim = map(int, shape.split("x"))
    calls, moved = calls_of([torch.randn(1, rows, heads, dim, device="cuda", dtype=dtype) for _ in range(3)])
    ms = turns.medians(calls, rounds)
    shown = [f"{ms[name]:.3f}" if name in ms else "-" for name in ("copy", "quantize", "smoothed", "rotated", "torch", "attention", "both")]
    print(f"| {shape} | {' | '.join(shown)} | {ms['quantize'] / ms['copy']:.2f} x | {moved / ms['quantize'] / 1e6:.0f} |", flush=True)


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("shapes", nargs="*", metavar="ROWSxHEADSxDIM", help=f"[{' '.join(SHAPES)}]")
    made.add_argument("--rounds", type=int, default=30)
    made.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16", "float32"))
    options = made.parse_args()
    heddle.configure(first="best")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {options.dtype}\n")
    print("| rows x heads x dim | copy, ms | quantize | smoothed | rotated | torch | attention | both | beside the copy | GB/s |\n|---|---|---|---|---|---|---|---|---|---|")
    turns = Rounds(Gpu())
    for shape in options.shapes or SHAPES:
        measure(shape, getattr(torch, options.dtype), options.rounds, turns)


if __name__ == "__main__":
    main()
