#!/usr/bin/env python3
"""Forward calls of e4m3 beside those of bf16, on one Hopper GPU, launched in turn in one process:

    PYTHONPATH=runtime/Python HEDDLE_LIBRARY=build/lib/libheddle.so python3 bench/e4m3.py [--rounds=N] [NAME...]

Medians of N (30) launches between events, the L2 flushed before each; standard normal inputs, those of e4m3 with a scale for each head.
Rates count kept pairs. FlashAttention-3's e4m3 stands beside where $FA3_SO names its library (bench/fa3_plugin.py) and has the pattern.
`key-major`: v lies so ([batch, kv_heads, dim, seqlen]), where the pattern's keys have no stride.
`quantised too`: heddle.quantize of q, k and v in bf16, and the e4m3 kernel behind it; its factor is beside bf16's kernel.
`e4m3`: as calls that give no lse are by default (weights from the bits of scores); `exact`: precision="exact", as those that give it are.
`error`: out against bf16's of the same numbers, root mean square, relative.
"""
import argparse
import os
import sys

import heddle
import torch

import fa3_plugin
from peers import workloads
from peers.gpu import Gpu
from peers.reference import tensor_of
from peers.timing import Rounds

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

NAMES = ("dense_8k_d128", "causal_8k_d128", "causal_32k_d128", "dense_8k_d64", "causal_8k_d64", "win1k_32k", "dilwin_32k", "fkodom_32k", "bsparse10_32k",
         "document_32k")


def arguments_of(workload):
    """Of the pattern, which is read from its file."""
    tensors = {name: tensor_of(operand, "cuda") for name, operand in workload.operands.items()}
    return {"pattern": heddle.load(os.path.join(ROOT, workload.pattern)), **dict(workload.sizes), **tensors}


def scaled(tensor):
    """As e4m3, and what its heads are multiplied by: their largest element becomes 448."""
    scale = tensor.float().abs().amax(dim=(1, 3)) / 448
    return (tensor.float() / scale[:, None, :, None]).to(torch.float8_e4m3fn), scale


def of_bf16(low, scale):
    return (low.float() * scale[:, None, :, None]).bfloat16()


def fa3_call(workload, tensors, scales, out, lse):
    """None where it has no such pattern, or is not there."""
    if "FA3_SO" not in os.environ or (mask := fa3_plugin._mask(workload)) is None:
        return None
    fa3 = fa3_plugin._fa3()
    q_scale = scales[0].reshape(*scales[1].shape, -1)[..., 0].contiguous()  # one for a group of heads
    return lambda: fa3.fa3_fwd_e4m3(*tensors, mask.get("causal", False), mask.get("window"), q_scale, *scales[1:], out=out, lse=lse)


def key_major(v):
    """The same elements, keys beside each other in memory."""
    return v.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def key_major_call(low, scales, arguments):
    """None where keys of the pattern have a stride."""
    try:
        return heddle.prepare(*low[:2], key_major(low[2]), descale=scales, **arguments)
    except heddle.Error as error:
        print(f"key-major: {error}", file=sys.stderr)
        return None


def measure(name, rounds, turns):
    workload = workloads.find(name)
    shape = (workload.batch, workload.seqlen, workload.heads, workload.head_dim)
    low, scales = zip(*(scaled(torch.randn(shape, device="cuda")) for _ in range(3)))
    high = [of_bf16(*each) for each in zip(low, scales)]
    arguments = arguments_of(workload)
    calls = {"bf16": heddle.prepare(*high, **arguments), "e4m3": heddle.prepare(*low, descale=scales, **arguments)}
    attend = calls["e4m3"]
    if (of_columns := key_major_call(low, scales, arguments)) is not None:
        calls["columns"] = of_columns
    calls["exact"] = heddle.prepare(*low, descale=scales, precision="exact", **arguments)
    calls["both"] = lambda: (heddle.quantize(*high), attend())
    outs = {each: calls[each]() for each in ("bf16", "e4m3", "exact")}
    outs["fa3"] = torch.empty_like(high[0])
    peer = fa3_call(workload, low, scales, outs["fa3"], torch.empty(shape[0], shape[2], shape[1], device="cuda"))
    if peer is not None:
        calls["fa3"] = peer
    ms = turns.medians(calls, rounds)

    def beside(call, other):
        return f"{ms[other] / ms[call]:.3f} x" if call in ms and other in ms else "-"

    def rate(call):
        return f"{workload.flops / ms[call] / 1e9:.0f}" if call in ms else "-"

    def error(call):
        wanted, got = outs["bf16"].float(), outs[call].float()
        return f"{((got - wanted).square().mean() / wanted.square().mean()).sqrt().item():.1e}" if call in ms else "-"

    cells = [name, f"{ms['bf16']:.3f}", f"{ms['e4m3']:.3f}", rate("e4m3"), beside("e4m3", "bf16"), rate("columns"), beside("columns", "bf16"),
             f"{ms['both']:.3f}", beside("both", "bf16"), rate("fa3"), beside("e4m3", "fa3"), beside("columns", "fa3"), error("e4m3"),
             error("fa3"), rate("exact"), beside("exact", "bf16"), beside("exact", "fa3"), error("exact")]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("names", nargs="*", metavar="NAME", help=f"workloads of bench/peers.py [{' '.join(NAMES)}]")
    made.add_argument("--rounds", type=int, default=30)
    options = made.parse_args()
    heddle.configure(first="best")  # the default for this GPU, not a portable one until that is there
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n")
    columns = ("workload", "bf16, ms", "e4m3, ms", "TFLOP/s", "beside bf16", "key-major, TFLOP/s", "beside bf16", "quantised too, ms", "beside bf16",
               "FA3's e4m3, TFLOP/s", "beside it", "key-major beside it", "error", "FA3's", "exact, TFLOP/s",
               "beside bf16", "beside FA3's", "error")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    turns = Rounds(Gpu())
    for name in options.names or NAMES:
        measure(name, options.rounds, turns)


if __name__ == "__main__":
    main()
