"""heddle.distributed as modules call it: patterns in the place of plans, groups of torch.distributed, rows that are cut and gathered."""
import gc
import os
import re
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import distributed as hd  # noqa: E402
from heddle.words import causal, documents, tensor, window  # noqa: E402
from ranks import on_ranks  # noqa: E402

if not heddle.has_compiler():
    pytest.skip("plans over ranks need the compiler", allow_module_level=True)

ROWS = 150


def raised(results, kind, match):
    for each in results:
        assert isinstance(each, kind) and re.search(match, str(each)), repr(each)


def inputs(rows=ROWS):
    torch.manual_seed(1)
    return [torch.randn(2, rows, heads, 16).requires_grad_() for heads in (4, 2, 2, 4)]


def one_call(q, k, v, d_out, pattern, **arguments):
    out = heddle.attention(q, k, v, pattern, **arguments)
    out.backward(d_out)
    return [out.detach(), q.grad, k.grad, v.grad]


def shared(groups, tensors, lengths, pattern, **options):
    """out, d_q, d_k, d_v of all rows, which lie one rank behind the other."""
    def call(group):
        q, k, v, d_out = (each.detach().split(lengths, 1)[group.rank] for each in tensors)
        q, k, v = (each.clone().requires_grad_() for each in (q, k, v))
        out = hd.attention(q, k, v, pattern, group, **options)
        out.backward(d_out)
        return out.detach(), q.grad, k.grad, v.grad

    results = on_ranks(groups, call)
    assert not any(isinstance(each, Exception) for each in results), results
    return [torch.cat(each, 1) for each in zip(*results)]


PACKED = heddle.pattern(documents(causal, tensor("cu", "?xi32")))


@pytest.mark.parametrize("pattern, arguments", [("sliding_window", dict(left=20)), (causal & window(left=30), {}), (str(heddle.library("causal")), {}),
                                                (PACKED, dict(cu=torch.tensor([0, 40, 41, ROWS], dtype=torch.int32)))],
                         ids=["name", "words", "text", "tensor"])
@pytest.mark.parametrize("lengths", [[50, 50, 50], [70, 1, 79]])
def test_a_pattern_and_rows_as_they_lie(pattern, arguments, lengths):
    tensors = inputs()
    groups = hd.Group.local(3)
    for _ in range(2):  # the second time from the kept plan
        for got, expected in zip(shared(groups, tensors, lengths, pattern, **arguments), one_call(*inputs(), pattern, **arguments)):
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)
    assert [len(group.plans) for group in groups] == [1, 1, 1]


def test_what_is_kept_is_of_its_sizes_values_and_contents(monkeypatch):
    asked = []
    numbers = hd._meeting.Meeting.numbers
    monkeypatch.setattr(hd._meeting.Meeting, "numbers", lambda self, rank, *others: (asked.append(rank), numbers(self, rank, *others))[1])
    groups, cu = hd.Group.local(2), torch.tensor([0, 40, ROWS], dtype=torch.int32)

    def agree(lengths, pattern, **arguments):
        before = len(asked)
        rows = sum(lengths)
        ours = shared(groups, inputs(rows), lengths, pattern, **arguments)
        arguments.pop("seqlen", None)
        for got, expected in zip(ours, one_call(*inputs(rows), pattern, **arguments)):
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)
        return len(asked) - before

    assert agree([75, 75], PACKED, cu=cu) == 2
    assert agree([75, 75], PACKED, cu=cu.clone()) == 0
    cu[1] = 90
    assert agree([75, 75], PACKED, cu=cu) == 2  # written in place
    assert agree([70, 80], PACKED, cu=cu) == 2
    assert agree([75, 75], "sliding_window", left=9) == 2
    assert agree([75, 75], "sliding_window", left=99) == 2
    assert agree([60, 60], "causal", seqlen=120) == agree([60, 61], "causal", seqlen=121) == 0  # one rank's rows stay


def test_a_layout_of_a_pattern():
    tensors, groups, plan = inputs(), hd.Group.local(3), hd.plan("causal", seqlen=ROWS, heads=4, kv_heads=2, ranks=3, layout="zigzag")

    def call(group):
        q, k, v, _ = (hd.shard(each.detach(), plan, group) for each in tensors)
        return hd.attention(q, k, v, "causal", group, layout="zigzag", scale=0.2, return_lse=True)

    expected = heddle.attention(*tensors[:3], "causal", scale=0.2, return_lse=True)
    for got, wanted, dim in zip(zip(*on_ranks(groups, call)), expected, (1, 2)):
        torch.testing.assert_close(plan.join(got, dim), wanted.detach(), atol=1e-5, rtol=1e-5)

    def wrong(group):
        q = torch.randn(1, 20 if group.rank else 30, 4, 16)
        return hd.attention(q, q, q, "causal", group, layout="striped:8")

    raised(on_ranks(hd.Group.local(3), wrong), heddle.InvalidArgumentError, "layout: 'striped:8' of 70 rows gives rank 0 24 rows, it has 30: shard")


def test_floats_of_a_pattern_may_differ_from_call_to_call():
    groups, slopes = hd.Group.local(2), heddle.library("sink")
    name = slopes.arguments[0].name
    for seed in range(2):
        torch.manual_seed(seed)
        sinks = torch.randn(4)
        for got, expected in zip(shared(groups, inputs(), [75, 75], slopes, **{name: sinks}), one_call(*inputs(), slopes, **{name: sinks})):
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)
    assert len(groups[0].plans) == 1


def test_a_rank_that_is_refused_tells_those_that_ask():
    groups = hd.Group.local(2, limit=60)

    def call(group, batch, lost):
        q = torch.randn(batch, 30, 4, 16)
        return hd.attention(q, q, q[:, lost * group.rank:], "causal", group)

    began, own = time.monotonic(), "v: expected 4 dimensions, and 30 rows on rank 1"
    for batch in (1, 2):  # where no rank has a plan, and where there are plans of other sizes
        other, refused = on_ranks(groups, lambda group: call(group, batch, 1))
        raised([refused], heddle.InvalidArgumentError, own)
        raised([other], heddle.UnavailableError, "rank 1 takes no part")
        assert [each.shape[1] for each in on_ranks(groups, lambda group: call(group, batch, 0))] == [30, 30]
    other, refused = on_ranks(groups, lambda group: call(group, 2, 1))  # who has met does not meet again: the rank leaves
    raised([refused], heddle.InvalidArgumentError, own)
    raised([other], heddle.UnavailableError, "rank 1 left.*" + own)
    assert time.monotonic() - began < 30


def test_rows_of_some_ranks_that_change_say_what_to_do():
    groups = hd.Group.local(2, limit=2)

    def call(group, more):
        q = torch.randn(1, 30 + more * group.rank, 4, 16)
        return hd.attention(q, q, q, "causal", group)

    assert [each.shape[1] for each in on_ranks(groups, lambda group: call(group, 0))] == [30, 30]
    stays, asks = on_ranks(groups, lambda group: call(group, 1))
    raised([stays], heddle.UnavailableError, "rank 1")
    raised([asks], heddle.UnavailableError, "seqlen: rank 1 asks .* 31 rows is new to it: .*give seqlen=")


def test_refusals():
    q, groups = torch.randn(1, 30, 4, 16), hd.Group.local(1)
    plan = hd.plan("causal", seqlen=30, heads=4, ranks=1)
    with pytest.raises(heddle.InvalidArgumentError, match="layout: the plan says it: give a pattern"):
        hd.attention(q, q, q, plan, groups[0], layout="zigzag")
    with pytest.raises(heddle.InvalidArgumentError, match="group: expected a heddle.distributed.Group, a group of torch.distributed.*None, and no default"):
        hd.attention(q, q, q, plan)
    with pytest.raises(heddle.InvalidArgumentError, match="group: expected .*got int"):
        hd.attention(q, q, q, "causal", 3)
    with pytest.raises(heddle.InvalidArgumentError, match="pattern.*cu: expected a PyTorch tensor, got list"):
        hd.attention(q, q, q, PACKED, groups[0], cu=[0, 30])
    with pytest.raises(heddle.UnsupportedError, match="no gradients of a pattern's tensors"):
        hd.attention(q, q, q, "sink", groups[0], sinks=torch.zeros(4).requires_grad_())
    groups[0].meeting = None
    with pytest.raises(heddle.UnsupportedError, match="seqlen: the group carries messages of calls alone"):
        hd.attention(q, q, q, "causal", groups[0])
    assert hd.attention(q, q, q, "causal", groups[0], seqlen=30).shape == q.shape


@pytest.mark.parametrize("layout", ["contiguous", "zigzag", "0:3,149:150;3:100;100:149"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_that_are_cut_and_gathered(layout, dtype):
    plan, groups = hd.plan("causal", seqlen=ROWS, heads=4, ranks=3, layout=layout), hd.Group.local(3)
    whole = torch.randn(2, 5, ROWS, 3, dtype=dtype)
    weights = torch.randn(3, *whole.shape, dtype=dtype)  # of each rank's loss

    def run(group):
        x = whole.clone().requires_grad_()
        own = hd.shard(x, plan, group, dim=2)
        sent = hd.shard(whole if group.rank == 1 else None, plan, group, dim=-2 if group.rank == 1 else 2, source=1)
        assert torch.equal(sent, own) and sent.is_contiguous()
        everything = hd.gather(own, plan, group, dim=-2)
        assert torch.equal(everything, whole)
        (everything * weights[group.rank]).sum().backward()
        return x.grad

    results = on_ranks(groups, run)
    assert not any(isinstance(each, Exception) for each in results), results
    expected = (weights[0].float() + weights[1].float() + weights[2].float()).to(dtype)
    assert torch.equal(sum(results), expected)  # each has its own rows, and 0 elsewhere
    for rank, each in enumerate(results):
        assert torch.equal(plan.shard(each, rank, 2), plan.shard(expected, rank, 2))


def test_rows_that_are_refused():
    plan, groups, x = hd.plan("causal", seqlen=ROWS, heads=4, ranks=2), hd.Group.local(2), torch.randn(1, 75, 3)
    with pytest.raises(heddle.InvalidArgumentError, match="gather: rank 0: expected 75 rows along dimension 2, got .1, 75, 3."):
        hd.gather(x, plan, groups[0], dim=2)
    with pytest.raises(heddle.InvalidArgumentError, match="source: expected one of 2 ranks, got 2"):
        hd.shard(x, plan, groups[0], source=2)
    first, second = on_ranks(groups, lambda group: hd.shard(x, plan, group, source=0))
    raised([first], heddle.InvalidArgumentError, "shard: expected 150 rows along dimension 1")
    raised([second], heddle.InvalidArgumentError, "rank 0 has no rows to give: shard: expected 150 rows")


@pytest.mark.parametrize("program, ranks", [("group_calls", 2), ("group_calls", 3), ("group_bits", 2), ("group_bits", 3)])
def test_groups_of_processes(root, tmp_path, program, ranks):
    program = os.path.join(root, "tests", "python", "device", program + ".py")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.join(root, "runtime", "Python"), os.environ.get("PYTHONPATH", "")]),
                       HEDDLE_MEET=f"file://{tmp_path}/meet", WORLD_SIZE=str(ranks), CUDA_VISIBLE_DEVICES="")
    processes = [subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=dict(environment, RANK=str(rank))) for rank in range(ranks)]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * ranks, said
    assert all(out.endswith(f"rank {rank}: fine\n") for rank, (out, _) in enumerate(said))


def test_a_group_that_is_closed_by_hand_is_made_again():
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        first = hd.Group.kept()
        first.close()
        second = hd.Group.kept()
        assert second is not first and second is hd.Group.kept()
    finally:
        torch.distributed.destroy_process_group()
    gc.collect()
    assert second.handle is None
