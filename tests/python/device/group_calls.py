"""heddle.distributed as modules call it, over processes: a pattern and a group of torch.distributed, rows that are cut and gathered, a bias, a module,
a rank that is refused, each against one call or the module alone. Over GPUs, with one of which two or more processes start:

    torchrun --nproc-per-node=2 tests/python/device/group_calls.py       # over gloo where there is none: tests/python/test_distributed_calls.py
"""
import gc
import os

import heddle
import torch
from heddle import distributed as hd
from torch import distributed

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", RANK))) if ON_GPU else torch.device("cpu")
DTYPE, CLOSE = (torch.bfloat16, dict(atol=3e-2, rtol=3e-2)) if ON_GPU else (torch.float32, dict(atol=1e-5, rtol=1e-5))
ROWS, DIM = (5000, 64) if ON_GPU else (150, 16)
LENGTHS = [ROWS // RANKS - 11, *[ROWS // RANKS] * (RANKS - 2), ROWS - (RANKS - 1) * (ROWS // RANKS) + 11]
WINDOW = dict(left=ROWS // 3)


def close(got, expected):
    torch.testing.assert_close(got.float(), expected.float(), **CLOSE)


def tensors():
    torch.manual_seed(1)
    return [torch.randn(2, ROWS, heads, DIM).to(DEVICE, DTYPE).requires_grad_() for heads in (4, 2, 2)]


def rows_as_they_lie():
    whole = tensors()
    expected = heddle.attention(*whole, "sliding_window", **WINDOW)
    expected.square().sum().backward()
    own = [each.detach().split(LENGTHS, 1)[RANK].clone().requires_grad_() for each in whole]
    out = hd.attention(*own, "sliding_window", **WINDOW)
    out.square().sum().backward()
    for got, wanted in zip((out, *(each.grad for each in own)), (expected, *(each.grad for each in whole))):
        close(got, wanted.split(LENGTHS, 1)[RANK])
    group = hd.Group.kept()
    assert group is hd.Group.kept(distributed.group.WORLD, DEVICE.index if ON_GPU else "cpu") and len(group.plans) == 1
    if ON_GPU:
        with torch.no_grad():
            own = [each.detach() for each in own]
            hd.attention(*own, "sliding_window", **WINDOW)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                out = hd.attention(*own, "sliding_window", **WINDOW)
            for _ in range(3):
                graph.replay()
            group.wait()
        close(out, expected.split(LENGTHS, 1)[RANK])
    return group


def rows_that_are_cut_and_gathered():
    even = ROWS // 3
    layout = ";".join(["0:3,%d:%d" % (ROWS - 1, ROWS), *("%d:%d" % (even + each, even + each + 1) for each in range(RANKS - 2)),
                       "3:%d,%d:%d" % (even, even + RANKS - 2, ROWS - 1)]) if RANKS > 2 else f"0:3,{ROWS - 1}:{ROWS};3:{ROWS - 1}"
    plan = hd.plan("causal", seqlen=ROWS, heads=4, kv_heads=2, ranks=RANKS, layout=layout)
    rows = torch.randn(2, ROWS, 3, generator=torch.Generator().manual_seed(2)).to(DEVICE, torch.bfloat16)
    mine = hd.shard(rows if RANK == RANKS - 1 else None, plan, source=RANKS - 1)
    assert mine.device == DEVICE and torch.equal(mine, hd.shard(rows, plan)) and torch.equal(mine, plan.shard(rows, RANK))
    mine.requires_grad_()
    everything = hd.gather(mine, plan)
    assert torch.equal(everything, rows)
    (everything * (RANK + 1)).sum().backward()
    assert torch.equal(mine.grad, torch.full_like(mine, RANKS * (RANKS + 1) // 2))


def a_bias_of_which_each_rank_has_its_rows():
    bias = torch.randn(1, 4, ROWS, ROWS, generator=torch.Generator().manual_seed(5)).to(DEVICE, torch.bfloat16)
    whole = tensors()
    expected = heddle.attention(*whole, "bias", bias=bias)
    expected.square().sum().backward()
    for layout, form in (("zigzag", "gather"), ("contiguous", "ring")):
        plan = hd.plan("bias", seqlen=ROWS, heads=4, kv_heads=2, ranks=RANKS, layout=layout, form=form)
        own, mine = [hd.shard(each.detach(), plan).requires_grad_() for each in whole], hd.shard(bias, plan, dim=2)
        out = hd.attention(*own, plan, bias=mine)
        out.square().sum().backward()
        for got, wanted in zip((out, *(each.grad for each in own)), (expected, *(each.grad for each in whole))):
            close(got, hd.shard(wanted.detach(), plan))
        if ON_GPU:
            with torch.no_grad():
                own = [each.detach() for each in own]
                hd.attention(*own, plan, bias=mine)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                    out = hd.attention(*own, plan, bias=mine)
                graph.replay()
                hd.Group.kept().wait()
            close(out, hd.shard(expected.detach(), plan))
    bits = []
    for layout in ("zigzag", "contiguous", f"striped:{ROWS // 10}"):
        free = hd.plan("bias", seqlen=ROWS, heads=4, kv_heads=2, ranks=RANKS, layout=layout, placement_free=True)
        own = [hd.shard(each.detach(), free).requires_grad_() for each in whole]
        out = hd.attention(*own, free, bias=hd.shard(bias, free, dim=2))
        out.square().sum().backward()
        bits.append([hd.gather(each.detach(), free) for each in (out, *(each.grad for each in own))])
        for got, wanted, first in zip(bits[-1], (expected, *(each.grad for each in whole)), bits[0]):
            close(got, wanted.detach())
            assert torch.equal(got, first), f"other bits where rows lie {layout}"


def a_module():
    torch.manual_seed(3)
    alone = heddle.nn.MultiheadDilatedAttention(4 * DIM, 4, [1, 2], [64, 256], device=DEVICE, dtype=DTYPE)
    shared = heddle.nn.MultiheadDilatedAttention(4 * DIM, 4, [1, 2], [64, 256], device=DEVICE, dtype=DTYPE)
    shared.load_state_dict(alone.state_dict())
    shared.over(layout="zigzag", whole=True, gather=True)
    x = torch.randn(1, ROWS, 4 * DIM, generator=torch.Generator().manual_seed(4)).to(DEVICE, DTYPE)
    expected, got = (module(x, x, x, is_causal=True)[0] for module in (alone, shared))
    close(got, expected)
    for out in (expected, got):
        out.float().square().mean().backward()
    for mine, wanted in zip(shared.parameters(), alone.parameters()):
        mean = mine.grad.float() / RANKS  # of the same loss on every rank, as FSDP and DDP take it
        distributed.all_reduce(mean)
        torch.testing.assert_close(mean, wanted.grad.float(), atol=CLOSE["atol"] * max(1e-3, wanted.grad.abs().max().item()), rtol=CLOSE["rtol"])


def a_part_of_the_ranks():
    members = [rank for rank in range(RANKS) if rank != 1] if RANKS > 2 else [0, 1]
    part = distributed.new_group(members)
    whole = [each.detach() for each in tensors()]
    if RANK in members:
        place = members.index(RANK)
        own = [each.chunk(len(members), 1)[place] for each in whole]
        close(hd.attention(*own, "causal", part), heddle.attention(*whole, "causal").chunk(len(members), 1)[place])
    else:
        try:
            hd.attention(*whole, "causal", part)
            raise AssertionError("a rank that is not in the group")
        except heddle.InvalidArgumentError as error:
            assert "a group of torch.distributed that this rank is in" in str(error)


def a_rank_that_is_refused():
    """While rows are asked for, by a plan when ranks meet; then the group goes on."""
    q, k, v = (each.detach().split(LENGTHS, 1)[RANK] for each in tensors())
    plan = hd.plan("causal", seqlen=ROWS, heads=4, kv_heads=2, ranks=RANKS, layout=";".join(
        f"{sum(LENGTHS[:rank])}:{sum(LENGTHS[:rank + 1])}" for rank in range(RANKS)))
    for pattern in ("causal", plan):
        try:
            hd.attention(q, k, v[:, int(RANK == 1):], pattern)
            raise AssertionError("not refused")
        except heddle.InvalidArgumentError as error:
            assert RANK == 1 and f"v: expected 4 dimensions, and {LENGTHS[1]} rows on rank 1" in str(error), error
        except heddle.UnavailableError as error:
            assert RANK != 1 and "rank 1 takes no part" in str(error), error
    close(hd.attention(q, k, v, "causal"), hd.attention(q, k, v, plan))


def main():
    if ON_GPU:
        torch.cuda.set_device(DEVICE)
    distributed.init_process_group("nccl" if ON_GPU else "gloo", init_method=os.environ.get("HEDDLE_MEET"), rank=RANK, world_size=RANKS)
    group = rows_as_they_lie()
    for check in (rows_that_are_cut_and_gathered, a_bias_of_which_each_rank_has_its_rows, a_module, a_part_of_the_ranks, a_rank_that_is_refused):
        check()
        if RANK == 0:
            print(check.__name__.replace("_", " ") + ": ok", flush=True)
    distributed.barrier()
    distributed.destroy_process_group()
    gc.collect()
    assert group.handle is None, "the group outlives that of torch.distributed"
    print(f"rank {RANK}: fine", flush=True)


if __name__ == "__main__":
    main()
