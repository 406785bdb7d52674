"""heddle.distributed: a bias with an entry for each pair, of which each rank has its own rows, against one call."""
import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import distributed  # noqa: E402
from heddle.words import causal, scaled, tensor, union  # noqa: E402
from ranks import on_ranks  # noqa: E402

if not heddle.has_compiler():
    pytest.skip("plans over ranks need the compiler", allow_module_level=True)

ROWS, HEADS, KV_HEADS = 150, 4, 2


def tensors(dtype=torch.float32, batch=1):
    torch.manual_seed(7)
    return [torch.randn(batch, ROWS, heads, 16, dtype=dtype) for heads in (HEADS, KV_HEADS, KV_HEADS, HEADS)]


def whole_call(q, k, v, d_out, pattern, bias):
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    out = heddle.attention(*leaves, pattern, bias=bias)
    out.backward(d_out)
    return out.detach(), *(x.grad for x in leaves)


def pattern_of(shape):
    return heddle.pattern(union(causal, scores=scaled.bias(tensor("bias", shape + "xf32"))))


@pytest.mark.parametrize("shape", ["1x?x?x?", "?x1x?x?", "1x?x?x1", "1x1x1x?"])
@pytest.mark.parametrize("layout, form", [("zigzag", "gather"), ("contiguous", "ring")])
def test_as_one_call(shape, layout, form):
    pattern, (q, k, v, d_out) = pattern_of(shape), tensors(batch=2)
    sizes = [size if word == "?" else 1 for size, word in zip((2, HEADS, ROWS, ROWS), shape.split("x"))]
    bias = torch.randn(sizes)
    expected = whole_call(q, k, v, d_out, pattern, bias)
    plan = distributed.plan(pattern, seqlen=ROWS, heads=HEADS, kv_heads=KV_HEADS, ranks=3, layout=layout, form=form)  # of no bias

    def call(group):
        own = bias if sizes[2] == 1 else distributed.shard(bias, plan, group, dim=2)
        leaves = [distributed.shard(x, plan, group).requires_grad_() for x in (q, k, v)]
        out = distributed.attention(*leaves, plan, group, bias=own)
        out.backward(distributed.shard(d_out, plan, group))
        return out.detach(), *(x.grad for x in leaves)

    for got, wanted in zip(zip(*on_ranks(distributed.Group.local(3), call)), expected):
        torch.testing.assert_close(plan.join(got), wanted, atol=1e-5, rtol=1e-5)


def test_calls_of_a_pattern_keep_what_they_need_and_take_each_its_own_bias():
    q, k, v, _ = tensors(torch.bfloat16)
    biases = [torch.randn(1, HEADS, ROWS, ROWS, dtype=torch.bfloat16) for _ in range(3)]
    rows = [(0, 70), (70, ROWS)]

    def call(group):
        first, last = rows[group.rank]
        outs = []
        for bias in biases:
            own = bias[:, :, first:last].contiguous()
            outs.append(distributed.attention(*(x[:, first:last] for x in (q, k, v)), "bias", group, bias=own))
        assert len(group.plans) == len(group.shares) == 1
        share, = group.shares.values()
        assert not share._given and not share.plan.arguments  # n * n entries are kept by nobody
        return outs

    results = on_ranks(distributed.Group.local(2), call)
    for number, bias in enumerate(biases):
        wanted = heddle.attention(q, k, v, "bias", bias=bias)
        torch.testing.assert_close(torch.cat([outs[number] for outs in results], 1), wanted, atol=2e-2, rtol=2e-2)


def test_a_bias_that_is_not_the_ranks_own_is_refused_before_anything_is_sent():
    q, k, v, _ = tensors()
    pattern, bias = pattern_of("1x?x?x?"), torch.randn(1, HEADS, ROWS, ROWS)
    plan = distributed.plan(pattern, seqlen=ROWS, heads=HEADS, kv_heads=KV_HEADS, ranks=2)

    def refused(of_first, **others):
        def call(group):
            own = distributed.shard(bias, plan, group, dim=2)
            arguments = {"bias": of_first(own), **others} if group.rank == 0 else {"bias": own}
            return distributed.attention(*(distributed.shard(x, plan, group) for x in (q, k, v)), plan, group, **arguments)

        first, second = on_ranks(distributed.Group.local(2), call)
        assert isinstance(second, heddle.UnavailableError) and "rank 0" in str(second), second
        return str(first)

    assert "bias: size of dimension 2: expected 75, got 150" in refused(lambda own: bias)
    assert "bias: size of dimension 3: expected 150, got 75" in refused(lambda own: own[..., :75].contiguous())
    assert "bias: dtype: expected f32, got bf16" in refused(lambda own: own.bfloat16())
    assert "bias: expected a row-major tensor" in refused(lambda own: bias[:, :, :75])
    assert "no gradients of a pattern's tensors" in refused(lambda own: own.requires_grad_())

    def without(group):
        return distributed.attention(*(distributed.shard(x, plan, group) for x in (q, k, v)), plan, group)

    for error in on_ranks(distributed.Group.local(2), without):
        assert isinstance(error, heddle.InvalidArgumentError) and "bias: expected a tensor (memref<1x?x?x?xf32>), none is given" in str(error)


def test_plans_take_no_rows():
    with pytest.raises(heddle.InvalidArgumentError, match="plan: bias: it has a row for each query, of which ranks give theirs with each call: leave it out"):
        distributed.plan(pattern_of("1x?x?x?"), seqlen=ROWS, heads=HEADS, ranks=2, bias=torch.zeros(1, HEADS, ROWS, ROWS))
    with pytest.raises(heddle.Error, match="bias"):
        distributed.plan(pattern_of("1x?x?x?"), seqlen=ROWS, heads=HEADS, ranks=2, bias=3.0)


def test_forms():
    pattern = pattern_of("1x?x?x?")
    for form in ("ulysses", "ulysses2+ring"):
        with pytest.raises(heddle.UnsupportedError, match="tensor .bias. has an entry for each query, of which ranks have those of their own rows: take a gather or a ring"):
            distributed.plan(pattern, seqlen=ROWS, heads=HEADS, ranks=4, form=form)
    assert distributed.plan(pattern, seqlen=ROWS, heads=HEADS, ranks=4).form in ("gather", "ring")


@pytest.mark.parametrize("shape", ["1x?x?x?", "?x1x?x?", "?x?x?x1"])
def test_placement_free_bits(shape):
    """Gradients of keys are computed where these lie, of what the queries of others have for them."""
    q, k, v, d_out = tensors(batch=2)
    pattern = pattern_of(shape)
    bias, bits = torch.randn([size if word == "?" else 1 for size, word in zip((2, HEADS, ROWS, ROWS), shape.split("x"))]), []
    wanted = whole_call(q, k, v, d_out, pattern, bias)
    for ranks, layout in ((1, "contiguous"), (3, "zigzag")):
        plan = distributed.plan(pattern, seqlen=ROWS, heads=HEADS, kv_heads=KV_HEADS, ranks=ranks, layout=layout, placement_free=True,
                                calls=distributed.Calls(gradients=True, batch=2))

        def call(group):
            leaves = [distributed.shard(x, plan, group).clone().requires_grad_() for x in (q, k, v)]
            out = distributed.attention(*leaves, plan, group, bias=distributed.shard(bias, plan, group, dim=2))
            out.backward(distributed.shard(d_out, plan, group))
            return out.detach(), *(x.grad for x in leaves)

        bits.append([plan.join(each) for each in zip(*on_ranks(distributed.Group.local(ranks), call))])
    for got, first, expected in zip(bits[1], bits[0], wanted):
        assert torch.equal(got, first)
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("shape", ["1x?x?x?", "1x1x1x?"])
def test_decode(shape):
    torch.manual_seed(8)
    pattern, queries = pattern_of(shape), 5
    q, k, v = torch.randn(1, queries, HEADS, 16), *(torch.randn(1, ROWS, KV_HEADS, 16) for _ in range(2))
    bias = torch.randn([size if word == "?" else 1 for size, word in zip((1, HEADS, queries, ROWS), shape.split("x"))])
    keys = [(0, 64), (64, 64), (64, ROWS)]
    wanted = heddle.attention(q, k, v, heddle.pattern(pattern.text.replace(") {\n", ") q_origin(end) {\n", 1)), bias=bias)

    def call(group):
        first, last = keys[group.rank]
        return distributed.decode(q, k[:, first:last], v[:, first:last], pattern, group, keys=keys, bias=bias)

    outs = on_ranks(distributed.Group.local(3), call)
    for out in outs:
        torch.testing.assert_close(out, wanted, atol=1e-5, rtol=1e-5)
        assert torch.equal(out, outs[0])


def test_decode_of_a_bias_without_all_keys():
    q, k = torch.randn(1, 5, HEADS, 16), torch.randn(1, ROWS, KV_HEADS, 16)
    with pytest.raises(heddle.InvalidArgumentError, match="bias: size of dimension 3: expected 150, got 149"):
        distributed.decode(q, k, k, pattern_of("1x?x?x?"), distributed.Group.local(1)[0], keys=[(0, ROWS)], bias=torch.randn(1, HEADS, 5, ROWS - 1))
    with pytest.raises(heddle.InvalidArgumentError, match="bias: size of dimension 2: expected 5, got 4"):
        distributed.decode(q, k, k, pattern_of("1x?x?x?"), distributed.Group.local(1)[0], keys=[(0, ROWS)], bias=torch.randn(1, HEADS, 4, ROWS))
    with pytest.raises(heddle.InvalidArgumentError, match=f"bias: size of dimension 2: expected 5, got {ROWS}"):  # which 5 would be a guess
        distributed.decode(q, k, k, pattern_of("1x?x?x?"), distributed.Group.local(1)[0], keys=[(0, ROWS)], bias=torch.randn(1, HEADS, ROWS, ROWS))


def test_a_bias_that_changes_before_gradients_is_told():
    plan = distributed.plan(pattern_of("1x?x?x?"), seqlen=ROWS, heads=HEADS, kv_heads=KV_HEADS, ranks=2)
    q, k, v, _ = tensors()
    bias = torch.randn(1, HEADS, ROWS, ROWS)

    def call(group):
        own = distributed.shard(bias, plan, group, dim=2).clone()
        leaves = [distributed.shard(x, plan, group).detach().requires_grad_() for x in (q, k, v)]
        out = distributed.attention(*leaves, plan, group, bias=own)
        own.zero_()
        out.sum().backward()

    for error in on_ranks(distributed.Group.local(2), call):
        assert isinstance(error, RuntimeError) and "modified by an inplace operation" in str(error)
