#!/usr/bin/env python3
"""Causal forward calls of fp32 on one GPU, with exact products and with those of tf32, beside PyTorch's memory-efficient attention in fp32 and
the TF32 product 8192^3, launched in turn in one process:

    PYTHONPATH=runtime/Python HEDDLE_LIBRARY=build/lib/libheddle.so python3 bench/floats.py [--rounds=N] [ROWSxHEADSxDIM...]

Medians of N (20) launches between events, the L2 flushed before each; standard normal inputs. `both passes`: with gradients. Rates count kept
pairs. `error`: the largest of five rows of every head against fp64.
"""
import argparse

import heddle
import torch
from peers.gpu import Gpu
from peers.timing import Rounds
from torch.nn.attention import SDPBackend, sdpa_kernel

SHAPES = ("8192x16x64", "8192x16x128")
PRODUCT = 8192
PRECISIONS = ("exact", "tf32")


def by_torch(q, k, v):
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        rows = (tensor.transpose(1, 2) for tensor in (q, k, v))
        return torch.nn.functional.scaled_dot_product_attention(*rows, is_causal=True).transpose(1, 2)


def error(out, q, k, v):
    worst = 0.0
    for row in torch.linspace(0, q.shape[1] - 1, 5).long().tolist():
        kept_k, kept_v = (tensor[0, :row + 1].double() for tensor in (k, v))
        scores = torch.einsum("hd,khd->hk", q[0, row].double(), kept_k) / q.shape[-1]**0.5
        wanted = torch.einsum("hk,khd->hd", scores.softmax(-1), kept_v)
        worst = max(worst, (out[0, row].double() - wanted).abs().max().item())
    return worst


def both_passes(attend, tensors):
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    d_out = torch.randn_like(leaves[0])
    return lambda: torch.autograd.grad(attend(*leaves), leaves, d_out)


def product():
    """In tf32, by a flag that nothing else here asks for."""
    a, b = (torch.randn(PRODUCT, PRODUCT, device="cuda") for _ in range(2))

    def run():
        torch.backends.cuda.matmul.allow_tf32 = True
        result = torch.mm(a, b)
        torch.backends.cuda.matmul.allow_tf32 = False
        return result

    return run


def measure(shape, rounds, turns):
    rows, heads, dim = map(int, shape.split("x"))
    tensors = [torch.randn(1, rows, heads, dim, device="cuda") for _ in range(3)]
    calls = {"product": product(), "torch": lambda: by_torch(*tensors), "torch, both": both_passes(by_torch, tensors)}
    errors = {"torch": error(by_torch(*tensors), *tensors)}
    for precision in PRECISIONS:
        attend = heddle.prepare(*tensors, "causal", precision=precision)
        calls[precision] = attend
        calls[f"{precision}, both"] = both_passes(lambda *leaves, by=precision: heddle.attention(*leaves, "causal", precision=by), tensors)
        errors[precision] = error(attend(), *tensors)
    ms = turns.medians(calls, rounds)
    roof = 2 * PRODUCT**3 / ms["product"] / 1e9
    print(f"TF32 product: {roof:.0f} TFLOP/s; PyTorch {ms['torch']:.2f} ms, both passes {ms['torch, both']:.1f} ms, error {errors['torch']:.1e}")
    for precision in PRECISIONS:
        rate = 2 * heads * rows * (rows + 1) * dim / ms[precision] / 1e9
        print(f"| {dim}, {precision} | {ms[precision]:.2f} | {rate:.1f} ({rate / roof:.1%}) | {ms['torch'] / ms[precision]:.2f} x | "
              f"{errors[precision]:.1e} | {ms[f'{precision}, both']:.1f} |", flush=True)


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("shapes", nargs="*", metavar="ROWSxHEADSxDIM", help=f"[{' '.join(SHAPES)}]")
    made.add_argument("--rounds", type=int, default=20)
    options = made.parse_args()
    heddle.configure(first="best")
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    turns = Rounds(Gpu())
    for shape in options.shapes or SHAPES:
        measure(shape, options.rounds, turns)


if __name__ == "__main__":
    main()
