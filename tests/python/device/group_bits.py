"""Placement-free calls of heddle.distributed over processes: out and gradients of one rank that has all rows, bit by bit, wherever the ranks' rows lie
and however often they are called. Over GPUs, with one of which two or more processes start:

    torchrun --nproc-per-node=2 tests/python/device/group_bits.py        # over gloo where there is none: tests/python/test_distributed_calls.py

Behind it words of the cases, as they are printed, that are to run: "float32".
"""
import os
import sys

import heddle
import torch
from heddle import distributed as hd
from torch import distributed

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", RANK))) if ON_GPU else torch.device("cpu")
ROWS, HEADS, KV_HEADS = (5003, 4, 2) if ON_GPU else (150, 4, 2)
CASES = [("causal", {}), ("sliding_window", dict(left=ROWS // 5)), ("longformer", dict(half=ROWS // 50)), ("bigbird", {}), ("longnet_base", {}), ("bias", {})]
WIDER = [("causal", {}), ("sliding_window", dict(left=ROWS // 5)), ("dilated_window", {})]


def cases():
    """Patterns, sizes, head dims and elements."""
    if not ON_GPU:
        return [(*case, 16, torch.float32) for case in CASES]
    return [*((*case, 64, torch.bfloat16) for case in CASES), *((*case, 128, torch.bfloat16) for case in WIDER), ("causal", {}, 64, torch.float32)]


def layouts():
    """Of few large ranges, of many, and of some that begin at no tile."""
    cut = ROWS // 3 + 5
    listed = f"0:7,{cut}:{ROWS};7:{cut}" if RANKS == 2 else "zigzag"
    return ["contiguous", "zigzag", f"striped:{ROWS // 10}", listed]


def call(pattern, sizes, tensors, bias, group, ranks, layout):
    """out and gradients of the rank's rows, and the plan."""
    plan = hd.plan(pattern, seqlen=ROWS, heads=HEADS, kv_heads=KV_HEADS, ranks=ranks, layout=layout, placement_free=True, **sizes)
    *own, d_out = [hd.shard(each, plan, group) for each in tensors]
    own = [each.clone().requires_grad_() for each in own]
    out = hd.attention(*own, plan, group, **({"bias": hd.shard(bias, plan, group, dim=2)} if pattern == "bias" else {}))
    out.backward(d_out)
    return plan, [out.detach(), *(each.grad for each in own)]


def differences(pattern, sizes, dim, dtype, alone, everyone):
    generator = torch.Generator().manual_seed(7)
    tensors = [torch.randn(1, ROWS, heads, dim, generator=generator).to(DEVICE, dtype) for heads in (HEADS, KV_HEADS, KV_HEADS, HEADS)]
    bias = torch.randn(1, HEADS, ROWS, ROWS, generator=generator).to(DEVICE, torch.bfloat16) if pattern == "bias" else None
    _, expected = call(pattern, sizes, tensors, bias, alone, 1, "contiguous")
    for layout in layouts():
        for turn in range(2):
            plan, got = call(pattern, sizes, tensors, bias, everyone, RANKS, layout)
            for name, mine, whole in zip(("out", "d_q", "d_k", "d_v"), got, expected):
                wanted = hd.shard(whole, plan, everyone)
                if not torch.equal(mine, wanted):
                    others = (mine != wanted).sum().item()
                    farthest = (mine.float() - wanted.float()).abs().max().item()
                    yield f"{layout}, call {turn}: {name}: {others} of {mine.numel()} elements differ, by {farthest:.2g} at most"


def main():
    if ON_GPU:
        torch.cuda.set_device(DEVICE)
    distributed.init_process_group("nccl" if ON_GPU else "gloo", init_method=os.environ.get("HEDDLE_MEET"), rank=RANK, world_size=RANKS)
    alone = [distributed.new_group([rank]) for rank in range(RANKS)][RANK]
    failed = 0
    for pattern, sizes, dim, dtype in cases():
        name = f"{pattern} d = {dim}, {dtype}"
        if not all(word in name for word in sys.argv[1:]):
            continue
        wrong = list(differences(pattern, sizes, dim, dtype, alone, None))
        failed += bool(wrong)
        if RANK == 0 or wrong:
            print("\n    ".join([f"rank {RANK}: {name}: {'ok' if not wrong else 'other bits'}", *wrong]), flush=True)
        distributed.barrier()
    distributed.destroy_process_group()
    print(f"rank {RANK}: {'fine' if not failed else f'{failed} cases have other bits'}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
