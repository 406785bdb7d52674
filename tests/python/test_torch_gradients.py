"""Autograd through heddle.attention: against SDPA in float64 and against finite differences, as one graph with torch.compile, under checkpoints;
and what has no gradients, which says so."""
import math

import heddle
import pytest
from heddle.words import bias, causal, number, softcap, tensor, union, window
from heddle.words import lse as lse_of

torch = pytest.importorskip("torch")
from heddle import _torch  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

pytestmark = pytest.mark.compiler
NEAR = heddle.library("sliding_window", left=5) if heddle.has_compiler() else None


def draw(n=23, heads=4, kv=2, d=16, dtype=torch.float32, batch=2):
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(batch, n, each, d, generator=generator).to(dtype).requires_grad_() for each in (heads, kv, kv)]


def other(like):
    return torch.randn(like.shape, generator=torch.Generator().manual_seed(5)).to(like.dtype)


def near(n, left=5):
    i = torch.arange(n)
    return (i[None] <= i[:, None]) & (i[:, None] - i[None] <= left)


def masked(q, k, v, keep):
    """out and lse in float64."""
    q, k, v = (each.double().transpose(1, 2) for each in (q, k, v))
    k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v))
    s = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~keep, -torch.inf)
    return (torch.softmax(s, -1) @ v).transpose(1, 2), torch.logsumexp(s, -1)


def gradients(function, tensors):
    return torch.autograd.grad(function(*tensors), tensors, materialize_grads=True)


def check(found, expected, tolerance):
    for one, two in zip(found, expected):
        assert one.dtype == two.dtype
        torch.testing.assert_close(one.double(), two.double(), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float16, 1e-2), (torch.bfloat16, 6e-2)])
@pytest.mark.parametrize("results", ["out", "lse", "both"])
def test_gradients_are_those_of_sdpa(dtype, tolerance, results):
    tensors = draw(dtype=dtype)

    def loss(out, lse):
        terms = dict(out=(out * other(out)).sum(dtype=torch.float64), lse=(lse * other(lse)).sum(dtype=torch.float64))
        return sum(terms.values()) if results == "both" else terms[results]

    found = gradients(lambda *each: loss(*heddle.attention(*each, NEAR, return_lse=True)), tensors)
    check(found, gradients(lambda *each: loss(*masked(*each, near(23))), tensors), tolerance)


def test_gradients_are_added_to_tensors_in_place():
    tensors = draw(dtype=torch.bfloat16)
    with torch.no_grad():
        out, lse = heddle.attention(*tensors, NEAR, return_lse=True)
    expected = heddle.attention_backward(other(out), *tensors, out, lse, NEAR)
    sums = [torch.ones(each.shape) for each in tensors]
    for _ in range(2):  # the second is one of a call that is kept
        versions = [each._version for each in sums]
        returned = heddle.attention_backward(other(out), *tensors, out, lse, NEAR, add_to=sums)
        assert all(one is two for one, two in zip(returned, sums)) and all(each._version > old for each, old in zip(sums, versions))
    for found, each in zip(sums, expected):
        torch.testing.assert_close(found, 1 + 2 * each.float(), atol=3e-2, rtol=1e-2)
    with pytest.raises(heddle.InvalidArgumentError, match="d_k: expected a tensor that requires no gradient"):
        heddle.attention_backward(other(out), *tensors, out, lse, NEAR, add_to=(sums[0], sums[1].requires_grad_(), sums[2]))


@pytest.mark.parametrize("pattern", [NEAR, "longformer", "dilated", "block_local"])
def test_gradcheck(pattern):
    """Inside, in fp32: steps and tolerances of its digits."""
    tensors = [each.detach().double().requires_grad_() for each in draw(n=6, d=4, batch=1)]

    def call(*each):
        return tuple(result.double() for result in heddle.attention(*(one.float() for one in each), pattern, return_lse=True))

    with torch.no_grad():
        isfinite = torch.isfinite(call(*tensors)[1])
    assert torch.autograd.gradcheck(lambda *each: (call(*each)[0], call(*each)[1][isfinite]), tensors, eps=1e-2, atol=2e-3, rtol=2e-3)


def test_gradients_of_what_a_pattern_reads():
    pattern = heddle.pattern(union(window(left=5), scores=softcap(3.0).bias(tensor("b", "1x?x?x?xbf16")), sink=number("drain", 0.5)))
    tensors = draw()
    b = torch.randn(1, 4, 23, 23).bfloat16().requires_grad_()

    def expected(q, k, v, b):
        q, k, v = (each.double().transpose(1, 2) for each in (q, k, v))
        k, v = (each.repeat_interleave(2, 1) for each in (k, v))
        s = (torch.tanh(q @ k.transpose(-1, -2) / 4 / 3) * 3 + b.double()).masked_fill(~near(23), -torch.inf)
        s = torch.cat([s, torch.full((*s.shape[:-1], 1), 0.5, dtype=s.dtype)], -1)
        out = (torch.softmax(s, -1)[..., :-1] @ v).transpose(1, 2)
        return (out * other(out)).sum()

    def loss(q, k, v, b):
        out = heddle.attention(q, k, v, pattern, b=b)
        return (out * other(out)).sum()

    found, wanted = gradients(loss, [*tensors, b]), gradients(expected, [*tensors, b])
    check(found[:3], wanted[:3], 2e-5)
    check(found[3:], wanted[3:], 1e-2)
    b.requires_grad_(False)
    check(gradients(lambda *each: loss(*each, b), tensors), found[:3], 0)
    for each in tensors:
        each.requires_grad_(False)
    check(gradients(lambda b: loss(*tensors, b), [b.requires_grad_()]), found[3:], 0)


@pytest.mark.parametrize("come", [lambda each: each.sum(), lambda each: each[:, ::2].sum() - each.transpose(1, 2).flatten(2).cumsum(1)[..., 3].sum(),
                                  lambda each: (each.mT @ each).sum()])
def test_gradients_come_in_any_strides(come):
    tensors = draw()
    check(gradients(lambda *each: come(heddle.attention(*each, NEAR)), tensors), gradients(lambda *each: come(masked(*each, near(23))[0]), tensors), 1e-4)


@pytest.mark.parametrize("dynamic", [False, True])
def test_forward_and_backward_are_one_graph_each(dynamic):
    torch._dynamo.reset()

    def function(q, k, v):
        out, lse = heddle.attention(q * 2, k, v, NEAR, return_lse=True)
        return (out ** 2).sum() + lse.sum()

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for n in (23, 31):
        tensors = draw(n)
        check(gradients(compiled, tensors), gradients(function, tensors), 1e-6)


def test_gradients_of_tensors_of_a_pattern_in_a_graph():
    torch._dynamo.reset()
    pattern = heddle.pattern(union(causal, scores=bias(tensor("b", "1x?x?x?xf32"))))
    function = lambda q, k, v, b: heddle.attention(q, k, v, pattern, b=b).square().sum()  # noqa: E731
    tensors = [*draw(), torch.randn(1, 4, 23, 23).requires_grad_()]
    check(gradients(torch.compile(function, backend="aot_eager", fullgraph=True), tensors), gradients(function, tensors), 1e-6)


def test_the_call_backward_is_a_node_too():
    torch._dynamo.reset()
    tensors = [each.detach() for each in draw()]
    out, lse = heddle.attention(*tensors, NEAR, return_lse=True)
    function = lambda d_out: heddle.attention_backward(d_out, *tensors, out, lse, NEAR)  # noqa: E731
    check(torch.compile(function, backend="aot_eager", fullgraph=True)(other(out)), function(other(out)), 0)
    capped = heddle.pattern(union(causal, scores=softcap(number("cap", 2.0, min=0.5))))
    out, lse = heddle.attention(*tensors, capped, return_lse=True)
    *_, others = heddle.attention_backward(other(out), *tensors, out, lse, capped, gradients_of="cap")
    ends = [(heddle.attention(*tensors, capped, cap=cap) * other(out)).sum().item() for cap in (1.98, 2.02)]
    assert others["cap"].item() == pytest.approx((ends[1] - ends[0]) / 0.04, rel=1e-2)


def test_pytorch_finds_the_ops_sound():
    tensors, call = draw(), ([], NEAR.text, NEAR.name, "left;;", [5], [], None, None, 0, "exact")
    torch.library.opcheck(torch.ops.heddle.attention.default, (*tensors, *call, None, None))
    plain = [each.detach() for each in tensors]
    out, lse = heddle.attention(*plain, NEAR, return_lse=True)
    torch.library.opcheck(torch.ops.heddle.attention_backward.default, (*plain, out, lse, other(out), None, *call, ""))


def test_words_and_flex_attention_train():
    tensors = draw()
    expected = gradients(lambda *each: masked(*each, near(23))[0].square().sum(), tensors)
    check(gradients(lambda *each: heddle.attention(*each, causal & window(left=5)).square().sum(), tensors), expected, 1e-5)

    def flexible(*each):
        each = [one.transpose(1, 2) for one in each]
        return heddle.flex_attention(*each, block_mask=lambda b, h, q, k: (q >= k) & (q - k <= 5), enable_gqa=True).square().sum()

    check(gradients(flexible, tensors), expected, 1e-5)
    torch._dynamo.reset()
    check(gradients(torch.compile(flexible, backend="aot_eager"), tensors), expected, 1e-5)


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpoints(reentrant):
    tensors = draw()
    function = lambda *each: heddle.attention(*(one * 2 for one in each), NEAR).square().sum()  # noqa: E731
    for each in tensors:
        each.grad = None
    checkpoint(function, *tensors, use_reentrant=reentrant).backward()
    check([each.grad for each in tensors], gradients(function, tensors), 0)


def test_a_carry_passes_gradients_on():
    tensors = draw()

    def in_pieces(q, k, v):
        carry, results = None, None
        for begin, end in ((0, 7), (7, 16), (16, 23)):
            results = carry = heddle.attention(q, k[:, begin:end], v[:, begin:end], NEAR, k_origin=begin, carry=carry, return_lse=True)
        return (results[0] * other(results[0])).sum() + results[1].sum()

    def at_once(q, k, v):
        out, lse = heddle.attention(q, k, v, NEAR, return_lse=True)
        return (out * other(out)).sum() + lse.sum()

    check(gradients(in_pieces, tensors), gradients(at_once, tensors), 1e-5)


def test_dilated_and_mixed_modules_train():
    """LongNet's weights of branches are constants of its gradients."""
    i = torch.arange(24)

    def branch(length, rate, offset):
        inside = (i % length % rate == offset)
        return (i[None] // length == i[:, None] // length) & inside[None] & inside[:, None] & (i[None] <= i[:, None])

    def mixture(q, k, v):
        outs, logs = [], []
        for length, rate in ((4, 1), (8, 2)):
            keep = torch.stack([branch(length, rate, h // -(-4 // rate)) for h in range(4)])
            kept = keep.any(-1)
            out, lse = masked(q, k, v, keep | ~kept.unsqueeze(-1))
            outs.append(out), logs.append(lse.masked_fill(~kept, -torch.inf))
        weights = torch.softmax(torch.stack(logs), 0).nan_to_num(0.0).detach().transpose(2, 3).unsqueeze(-1)
        return (weights * torch.stack(outs)).sum(0)

    tensors = draw(n=24)
    module = heddle.nn.LongNetAttention([4, 8], [1, 2])
    found = gradients(lambda *each: (module(*each, is_causal=True) * other(each[0])).sum(), tensors)
    check(found, gradients(lambda *each: (mixture(*each) * other(each[0])).sum(), tensors), 1e-5)
    torch.manual_seed(0)
    module = heddle.nn.MultiheadDilatedAttention(32, 4, [1, 2], [4, 8], mixed=True)
    x, losses = torch.randn(2, 24, 32), []
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    for _ in range(8):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = (module(x, x, x, is_causal=True)[0].float() - x.roll(1, 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(each.grad is not None and torch.isfinite(each.grad).all() for each in module.parameters())
    assert losses[-1] < 0.8 * losses[0]


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def filled(run):
    """Numbers of elements of what PyTorch fills meanwhile."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as seen:
        run()
    sizes = [math.prod(event.input_shapes[0]) for event in seen.events() if event.name == "aten::fill_"]
    return [size for size in sizes if size]


def test_deterministic_algorithms_fill_nothing_that_calls_write(deterministic):
    """As they fill what torch.empty gives: results, a workspace, and copies of gradients that come in strides."""
    tensors = draw()
    out, lse = heddle.attention(*tensors, NEAR, return_lse=True)
    come = other(out.transpose(1, 2)).transpose(1, 2), other(lse.mT).mT
    assert filled(lambda: torch.empty(5)) == [5]
    for _ in range(2):  # the second is one of calls that are kept
        assert not filled(lambda: torch.autograd.grad(heddle.attention(*tensors, NEAR, return_lse=True), tensors, come))
    assert not filled(lambda: _torch.Results((300,), torch.uint8, torch.device("cpu")).new())
    made = _torch.Results((2, 0, 3), torch.bfloat16, torch.device("cpu")).new()
    assert made.shape == (2, 0, 3) and made.dtype == torch.bfloat16
    found = torch.autograd.grad(heddle.attention(*tensors, NEAR, return_lse=True), tensors, come)
    torch.use_deterministic_algorithms(False)
    for one, two in zip(found, torch.autograd.grad((out, lse), tensors, come)):
        assert torch.equal(one, two) and one.stride() == two.stride()


def test_what_has_no_gradients_says_so():
    q, k, v = draw()
    mixed = heddle.pattern(lse_of(causal, causal.segment(8), gradient="detached"))
    carry = tuple(each.detach() for each in heddle.attention(q, k, v, NEAR, return_lse=True))
    d_q, = torch.autograd.grad(heddle.attention(q, k, v, NEAR).square().sum(), q, create_graph=True)
    square = lambda q: heddle.attention(q, k, v, NEAR).square().sum()  # noqa: E731
    for call, words in ((lambda: d_q.sum().backward(), "heddle has no second derivatives"),
                        (lambda: torch.func.grad(square)(q), "torch.autograd.grad and backward() give its gradients"),
                        (lambda: torch.func.vjp(square, q), "no rule for the transforms of torch.func"),
                        (lambda: torch.vmap(square)(q[None]), "what torch.vmap maps can be part of the batch"),
                        (lambda: heddle.attention(q, k, v, mixed, carry=carry), "gradient(detached), whose branches would have to be whole"),
                        (lambda: heddle.attention(q, k, v, NEAR, out=torch.empty_like(q)), "calls with out= or lse=, and prepared ones, have no gradients"),
                        (lambda: heddle.prepare(q, k, v, NEAR), "calls with out= or lse=, and prepared ones, have no gradients")):
        with pytest.raises(heddle.UnsupportedError) as raised:
            call()
        assert words in str(raised.value)
    with torch.no_grad():
        heddle.attention(q, k, v, mixed, carry=carry)


def test_tensors_that_do_not_fit_are_named():
    q, k, v = draw()
    out, lse = (each.detach() for each in heddle.attention(q, k, v, NEAR, return_lse=True))
    for call, words in ((lambda: heddle.attention(q, k.detach().numpy(), v, NEAR), "k: expected a PyTorch tensor as q, got ndarray"),
                        (lambda: heddle.attention(*(each.double() for each in (q, k, v)), NEAR), "q: dtype: expected bf16, fp16, fp32 or e4m3, got fp64"),
                        (lambda: heddle.attention_backward(out[:1], q, k, v, out, lse, NEAR), "d_out: size of batch: expected 2, got 1"),
                        (lambda: heddle.attention_backward(out.double(), q, k, v, out, lse, NEAR), "d_out: dtype: expected fp32 as q"),
                        (lambda: heddle.attention_backward(out, q, k, v, out, lse[:, :2], NEAR), "lse: expected row-major fp32 of [2, 4, 23]")):
        with pytest.raises(heddle.InvalidArgumentError) as raised:
            call()
        assert words in str(raised.value)


def test_a_saved_tensor_that_was_changed_is_pytorch_s_error():
    q, k, v = draw()
    k = k * 1
    loss = heddle.attention(q, k, v, NEAR).sum()
    with torch.no_grad():
        k += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
