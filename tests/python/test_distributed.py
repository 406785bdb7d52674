"""heddle.distributed: calls over ranks that are threads, against one call; plans; what is refused; whose messages others carry."""
import ctypes
import queue
import re
import threading
import time

import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import distributed  # noqa: E402
from ranks import on_ranks  # noqa: E402

if not heddle.has_compiler():
    pytest.skip("plans over ranks need the compiler", allow_module_level=True)

ROWS = 150


def over_ranks(plan, q, k, v, d_out, groups=None, **arguments):
    """out, d_q, d_k and d_v of all rows."""
    groups, results = groups or distributed.Group.local(plan.ranks), [None] * plan.ranks

    def run(rank):
        shards = [plan.shard(x.detach(), rank).requires_grad_() for x in (q, k, v)]
        out = distributed.attention(*shards, plan, groups[rank], **arguments)
        out.backward(plan.shard(d_out, rank))
        results[rank] = out.detach(), *(x.grad for x in shards)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(plan.ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [plan.join(shards) for shards in zip(*results)]


@pytest.mark.parametrize("layout, form", [("zigzag", "gather"), ("contiguous", "ring"), ("striped:20", "ring"), ("zigzag", "ulysses"),
                                          ("zigzag", "ulysses2+ring"), ("contiguous", "ulysses2+gather")])
@pytest.mark.parametrize("pattern, arguments", [("causal", {}), ("sliding_window", dict(left=20)), ("document", {})])
def test_as_one_call(layout, form, pattern, arguments):
    if pattern == "document":
        arguments = dict(cu=torch.tensor([0, 40, 41, ROWS], dtype=torch.int32))
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, ROWS, heads, 16).requires_grad_() for heads in (4, 2, 2))
    out = heddle.attention(q, k, v, pattern, **arguments)
    d_out = torch.randn_like(out)
    out.backward(d_out)
    ranks = 2 if form == "ulysses" else 4 if form.startswith("ulysses") else 3
    plan = distributed.plan(pattern, seqlen=ROWS, heads=4, kv_heads=2, ranks=ranks, layout=layout, form=form, **arguments)
    for got, expected in zip(over_ranks(plan, q, k, v, d_out), (out, q.grad, k.grad, v.grad)):
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("form", ["ulysses2+gather", "ulysses2+ring", "ulysses4+ring"])
def test_teams_in_bf16(form):
    torch.manual_seed(4)
    q, k, v = (torch.randn(2, ROWS, heads, 16, dtype=torch.bfloat16).requires_grad_() for heads in (4, 2, 2))
    out = heddle.attention(q, k, v, "causal")
    d_out = torch.randn_like(out)
    out.backward(d_out)
    plan = distributed.plan("causal", seqlen=ROWS, heads=4, kv_heads=2, ranks=8, layout="zigzag", form=form)
    assert plan.writes_d_q == form.endswith("gather")
    for got, expected in zip(over_ranks(plan, q, k, v, d_out), (out, q.grad, k.grad, v.grad)):
        torch.testing.assert_close(got, expected, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("pattern", ["causal", "longnet_base"])
def test_placement_free_bits(pattern):
    torch.manual_seed(2)
    q, k, v = (torch.randn(2, ROWS, heads, 16, dtype=torch.bfloat16) for heads in (4, 2, 2))
    d_out = torch.randn_like(q)
    plans = [distributed.plan(pattern, seqlen=ROWS, heads=4, kv_heads=2, ranks=ranks, layout=layout, placement_free=True)
             for ranks, layout in ((1, "contiguous"), (3, "zigzag"))]
    for got, expected in zip(*(over_ranks(plan, q, k, v, d_out) for plan in plans)):
        assert torch.equal(got, expected)


@pytest.mark.parametrize("form", ["gather", "ring"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_of_gradients_are_those_that_launches_ask_for(monkeypatch, dtype, form):
    asked, run = set(), distributed._shares.run

    def watched(the_plan, group, kind, tensors, *others):
        asked.update((kind, each) for each in distributed._shares._kernel_kinds(kind, tensors) if kind != "forward")
        run(the_plan, group, kind, tensors, *others)

    monkeypatch.setattr(distributed._shares, "run", watched)
    q, k, v, d_out = (torch.randn(1, ROWS, heads, 16, dtype=dtype) for heads in (4, 2, 2, 4))
    plan = distributed.plan("causal", seqlen=ROWS, heads=4, kv_heads=2, ranks=2, layout="zigzag", form=form)
    over_ranks(plan, q, k, v, d_out)
    is_written = form == "gather" and dtype != torch.float32
    assert asked == {("backward", "backward_accumulate_keys" if is_written else "backward_accumulate")}


class Post:
    """Carries messages between threads."""

    def __init__(self, rank, boxes):
        self.rank, self.boxes = rank, boxes
        self.function = distributed._carrier._EXCHANGE(self.exchange)

    def exchange(self, _, sends, send_count, receives, receive_count, why, why_bytes):
        for message in sends[:send_count]:
            self.boxes[self.rank, message.peer].put(ctypes.string_at(message.data, message.bytes))
        for message in receives[:receive_count]:
            came = self.boxes[message.peer, self.rank].get(timeout=60)
            assert len(came) == message.bytes
            ctypes.memmove(message.data, came, message.bytes)
        return 0

    def group(self, ranks):
        handle = distributed._library.library().opened("heddle_group_open_carried", self.rank, ranks, self.function, None)
        return distributed.Group(handle, self.rank, ranks, None, self)


class Strike(Post):
    def exchange(self, _, sends, send_count, receives, receive_count, why, why_bytes):
        ctypes.memmove(why, b"the post is on strike", 22)
        return 1


def test_messages_that_are_carried():
    torch.manual_seed(3)
    q, k, v, d_out = (torch.randn(1, ROWS, heads, 16) for heads in (4, 2, 2, 4))
    plan = distributed.plan("sliding_window", left=20, seqlen=ROWS, heads=4, kv_heads=2, ranks=3, form="ring")
    boxes = {(a, b): queue.Queue() for a in range(3) for b in range(3)}
    carried = over_ranks(plan, q, k, v, d_out, [Post(rank, boxes).group(3) for rank in range(3)])
    for got, expected in zip(carried, over_ranks(plan, q, k, v, d_out)):
        assert torch.equal(got, expected)


def test_messages_that_nobody_carries():
    plan, group = distributed.plan("causal", seqlen=64, heads=4, ranks=2), Strike(1, {}).group(2)
    q = torch.randn(1, 32, 4, 16)
    for _ in range(2):
        with pytest.raises(heddle.UnavailableError, match="rank 1 left: its messages are not carried: the post is on strike"):
            distributed.attention(q, q, q, plan, group)
    with pytest.raises(heddle.InvalidArgumentError, match="expected one of 2 ranks, got 5"):
        Strike(5, {}).group(2)


def test_a_layout_is_chosen_by_the_plans_that_run():
    sizes = dict(seqlen=65536, heads=64, kv_heads=8, ranks=4, calls=distributed.Calls(gradients=False))
    made = {name: distributed.plan("sliding_window", left=4096, layout=name, **sizes) for name in ("contiguous", "zigzag", "balanced", "auto")}
    assert made["auto"].layout == made["balanced"].layout and made["auto"].form == made["balanced"].form
    assert made["auto"].milliseconds == made["balanced"].milliseconds < made["contiguous"].milliseconds / 1.02
    assert distributed.plan("causal", layout="auto", **sizes).layout == distributed.plan("causal", layout="zigzag", **sizes).layout
    alone = distributed.plan("causal", layout="auto", form="ring", **sizes)
    assert alone.form == "ring" and alone.layout != [[(0, 16384)], [(16384, 32768)], [(32768, 49152)], [(49152, 65536)]]
    assert distributed.plan("causal", layout="auto", placement_free=True, **sizes).form == "gather"
    with pytest.raises(heddle.InvalidArgumentError, match="without rows"):
        distributed.plan("causal", seqlen=3, heads=4, ranks=4, layout="auto")


def test_a_plan_says_what_travels():
    plan = distributed.plan("sliding_window", left=9, seqlen=100, heads=4, kv_heads=2, ranks=4, form="gather")
    assert plan.layout == [[(0, 25)], [(25, 50)], [(50, 75)], [(75, 100)]]
    assert plan.travelling == 3 * 9 * 2
    whole = torch.arange(100.0).reshape(1, 100, 1, 1)
    assert torch.equal(plan.join([plan.shard(whole, rank) for rank in range(4)]), whole)


def test_the_form_is_chosen_by_rates():
    def chosen(calls=None, ranks=4, **options):
        plan = distributed.plan("full", seqlen=1 << (12 if ranks == 4 else 16), heads=64, kv_heads=8, ranks=ranks, calls=calls, **options)
        assert plan.head_ranks == (ranks if plan.form == "ulysses" else int(plan.form[7]) if plan.form.startswith("ulysses") else 1)
        return plan.form, plan.milliseconds is not None

    assert chosen() == ("gather", True)
    assert chosen(distributed.Calls(links=(25, 20))) == ("ring", True)
    assert chosen(distributed.Calls(gradients=True), ranks=8) == ("ulysses", True)
    assert chosen(placement_free=True) == ("gather", False)
    assert chosen(form="ring") == ("ring", False)
    assert chosen(form="ulysses2+gather") == ("ulysses2+gather", False)
    assert chosen(form="ulysses4+ring") == ("ulysses", False)  # one team
    slow = distributed.Calls(gradients=True, links=(2, 10), host=4, host_links=(200, 10))
    assert chosen(slow, ranks=8) == ("ulysses4+ring", True)
    with pytest.raises(heddle.InvalidArgumentError, match="link_us: expected 0 to 1e6"):
        chosen(distributed.Calls(links=(25, -1)))
    with pytest.raises(heddle.InvalidArgumentError, match="ulysses3: teams of 3 do not divide the 4 ranks"):
        chosen(form="ulysses3+ring")


def test_teams_exchange_heads_and_their_rows_are_one_shard():
    plan = distributed.plan("causal", seqlen=96, heads=4, kv_heads=2, ranks=8, layout="zigzag", form="ulysses4+ring")
    assert plan.head_ranks == 4
    assert [plan.longest_range(rank) for rank in (0, 3, 4, 7)] == [24, 24, 48, 48]  # the second team's two ranges meet in the middle
    # A head of k for each member, from all others; of it the first team needs the keys of the second one, and this the first 24.
    assert plan.travelling == 96 * 3 + 4 * (48 + 24)


def decoded(q, k, v, pattern, ranges, **options):
    """Of every rank."""
    groups, results = distributed.Group.local(len(ranges)), [None] * len(ranges)

    def run(rank):
        first, last = ranges[rank]
        try:
            results[rank] = distributed.decode(q, k[:, first:last], v[:, first:last], pattern, groups[rank], keys=ranges, return_lse=True,
                                               **{name: value[rank] if isinstance(value, list) else value for name, value in options.items()})
        except heddle.Error as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(ranges))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


DECODED = {
    "causal": "{ %m = attn.causal attn.softmax union(%m) }",
    "window": "{ %m = attn.window [60, 0] attn.softmax union(%m) }",
    "window and first keys": "{ %w = attn.window [20, 0] %c = attn.cols [4, 0] %m = attn.or %w, %c attn.softmax union(%m) }",
    "dilated, of two branches": "{ %c = attn.causal %d = attn.dilate %c by 3 at 0 %w = attn.window [9, 0] attn.softmax lse(%d, %w) }",
    "alibi": "{ %m = attn.causal %s = attn.scaled %t = attn.alibi %s attn.softmax union(%m) of %t }",
}


@pytest.mark.parametrize("name", DECODED)
@pytest.mark.parametrize("ranges", [[(0, 150)], [(0, 70), (70, 150)], [(0, 1), (1, 1), (1, 97), (97, 150)]])
def test_decode_is_one_call_over_all_keys_with_the_same_bits_on_every_rank(name, ranges):
    torch.manual_seed(4)
    q, (k, v) = torch.randn(2, 3, 4, 16), (torch.randn(2, ROWS, 2, 16) for _ in range(2))
    body = DECODED[name]
    out, lse = heddle.attention(q, k, v, heddle.pattern(text="attn.pattern @p() q_origin(end) " + body), return_lse=True)
    for got in decoded(q, k, v, heddle.pattern(text="attn.pattern @p() " + body), ranges):
        torch.testing.assert_close(got[0], out, atol=2e-6, rtol=1e-5)
        torch.testing.assert_close(got[1], lse, atol=4e-6, rtol=1e-5)
    first, *others = decoded(q, k, v, heddle.pattern(text="attn.pattern @p() " + body), ranges)
    assert all(torch.equal(first[0], each[0]) and torch.equal(first[1], each[1]) for each in others)


def test_decode_of_rows_that_keep_nothing_and_what_it_refuses():
    q, k = torch.randn(1, 2, 4, 16), torch.randn(1, 60, 2, 16)
    halves = [(0, 30), (30, 60)]
    for out, lse in decoded(q, k, k, "sliding_window", halves, q_origin=90, left=20):
        assert not out.any() and (lse == -torch.inf).all()
    for error in decoded(q, k, k, "causal", halves, scale=[0.5, 0.25]):
        assert isinstance(error, heddle.InvalidArgumentError) and "come with something else" in str(error)
    for error in decoded(q, k, k, "sliding_window", halves, left=[20, 21]):
        assert isinstance(error, heddle.InvalidArgumentError) and "come with something else" in str(error)
    with pytest.raises(heddle.InvalidArgumentError, match="decode: q: expected 4 dimensions, got .2, 4, 16"):
        distributed.decode(q[0], k, k, "causal", distributed.Group.local(1)[0], keys=[(0, 60)])
    with pytest.raises(heddle.InvalidArgumentError, match="decode: keys: expected a range .first, last. for each rank, got .0, 60"):
        distributed.decode(q, k, k, "causal", distributed.Group.local(1)[0], keys=[0, 60])
    for ranges in ([(0, 30), (31, 60)], [(0, 60)], [(0, 31), (31, 60)]):
        for error in on_ranks(distributed.Group.local(2), lambda group: distributed.decode(q, k[:, :28], k[:, :28], "causal", group, keys=ranges)):
            assert isinstance(error, heddle.InvalidArgumentError) and "decode: k" in str(error)
    with pytest.raises(heddle.UnsupportedError, match="sink"):
        distributed.decode(q, k, k, "sink", distributed.Group.local(1)[0], keys=[(0, 60)])


def test_refusals():
    with pytest.raises(heddle.InvalidArgumentError, match="expected contiguous, zigzag"):
        distributed.plan("causal", seqlen=64, heads=4, ranks=2, layout="round")
    with pytest.raises(heddle.UnsupportedError, match="draft tokens"):
        distributed.plan("tree_decode", seqlen=64, heads=4, ranks=2, ancestors=torch.zeros(4, dtype=torch.int64))


REFUSED = {
    "rows": (lambda q: q[:, 1:], "q: expected 4 dimensions, and 32 rows on rank 1, got .1, 31, 4, 16", "q: rows: expected 32 by the plan of rank 1, got 31"),
    "dimensions": (lambda q: q[0], "q: expected 4 dimensions", "q: rows: expected 32"),
    "type": (lambda q: q.double(), "fp64|float64", "q: rows: expected 32"),
    "place": (lambda q: q.to("meta"), "meta", "q: rows: expected 32"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_rank_that_is_refused_tells_the_others_and_the_group_goes_on(what):
    change, own, told = REFUSED[what]
    plan, groups, q = distributed.plan("causal", seqlen=64, heads=4, ranks=2), distributed.Group.local(2, limit=60), torch.randn(1, 32, 4, 16)

    def call(group):
        first = change(q) if group.rank == 1 else q
        return distributed.attention(first, q, q, plan, group)

    began = time.monotonic()
    for _ in range(2):  # what was refused has not met
        other, refused = on_ranks(groups, call)
        assert isinstance(refused, heddle.Error) and re.search(own, str(refused)), refused
        assert isinstance(other, heddle.UnavailableError) and re.search("rank 1 takes no part.*" + told, str(other)), other
    assert time.monotonic() - began < 50
    assert all(each.shape == q.shape for each in on_ranks(groups, lambda group: distributed.attention(q, q, q, plan, group)))
