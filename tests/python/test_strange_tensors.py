"""Tensors that people bring and that are not what they look like: each is right, or an error that says what works."""
import copy
import pickle
import sys

import heddle
import pytest

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.compiler


def draw(dtype=np.float32, n=30):
    generator = np.random.default_rng(3)
    return [generator.standard_normal((1, n, 2, 16)).astype(dtype) for _ in range(3)]


def refused(kind, said, call):
    with pytest.raises(kind) as raised:
        call()
    assert said in str(raised.value)


@pytest.fixture(params=["numpy", "torch"])
def tensors(request):
    if request.param == "numpy":
        return draw()
    torch = pytest.importorskip("torch")
    return [torch.from_numpy(each) for each in draw()]


@pytest.mark.parametrize("call", [heddle.attention, heddle.prepare])
def test_results_in_place_of_inputs(tensors, call):
    for name, each in zip("qkv", tensors):
        refused(heddle.InvalidArgumentError, f"out: expected memory apart from {name}, which is still read when it is written, got the same address",
                lambda: call(*tensors, "causal", out=each))
    memory = tensors[0].reshape(-1)[:60].reshape(1, 2, 30)
    refused(heddle.InvalidArgumentError, "lse: expected memory apart from q", lambda: call(*tensors, "causal", lse=memory))
    out = tensors[0] + 1
    refused(heddle.InvalidArgumentError, "lse: expected memory apart from out", lambda: call(*tensors, "causal", out=out, lse=out.reshape(-1)[:60].reshape(1, 2, 30)))


def test_results_beside_inputs_in_one_buffer(tensors):
    q, k, v = tensors
    wanted = heddle.attention(q, k, v, "causal")
    buffer = np.stack([np.asarray(each) for each in (q, k, v, q)], 2)
    buffer = buffer if isinstance(q, np.ndarray) else type(q)(buffer)
    heddle.attention(*(buffer[:, :, i] for i in range(3)), "causal", out=buffer[:, :, 3])
    assert np.array_equal(np.asarray(buffer[:, :, 3]), np.asarray(wanted))


def test_fp32_results_of_fp16_in_host_memory():
    q, k, v = draw(np.float16)
    out = heddle.attention(q, k, v, "causal", out=np.empty(q.shape, np.float32))
    assert np.array_equal(out.astype(np.float16), heddle.attention(q, k, v, "causal")) and np.any(out != out.astype(np.float16))
    refused(heddle.InvalidArgumentError, "out: dtype: expected fp16 or fp32, got fp64",
            lambda: heddle.attention(q, k, v, "causal", out=np.empty(q.shape, np.float64)))


def test_masked_arrays():
    q, k, v = draw()
    refused(heddle.InvalidArgumentError, "k: expected an array without a mask of its own",
            lambda: heddle.attention(q, np.ma.masked_array(k, mask=k > 0), v, "causal"))


def test_types_without_a_name_here_are_called_as_numpy_does():
    q, k, v = (each.astype([("x", np.float32)]) for each in draw())
    refused(heddle.InvalidArgumentError, "dtype: expected bf16, fp16, fp32 or e4m3, got [('x', '<f4')]", lambda: heddle.attention(q, k, v, "causal"))


def test_bf16_of_ml_dtypes():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    tensors = draw(bfloat16)
    out = heddle.attention(*tensors, "causal")
    wanted = heddle.attention(*(each.astype(np.float32) for each in tensors), "causal")
    assert out.dtype == bfloat16
    np.testing.assert_allclose(out.astype(np.float32), wanted, atol=2e-2)


def test_prepared_calls_are_not_copied(tensors):
    call = heddle.prepare(*tensors, "causal")
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        refused(heddle.UnsupportedError, "a prepared call stands for its tensors where they are: it cannot be pickled or copied", lambda: copied(call))


def test_a_tensor_or_a_function_in_place_of_a_pattern(tensors):
    q, k, v = tensors
    refused(heddle.InvalidArgumentError, f"got {type(q).__name__} of [1, 30, 2, 16]", lambda: heddle.attention(q, k, v, q))
    refused(heddle.InvalidArgumentError, "heddle.words.predicate(function) makes a mask of one", lambda: heddle.attention(q, k, v, lambda b, h, i, j: i >= j))


SCORED = """attn.pattern @scored(%temp: f32 {attn.default = 1.0 : f32}, %left: i32 {attn.default = 3 : i32}) q_origin(given) {
  %s = attn.scaled
  %t = attn.score_map %s with %temp : f32 {
    ^bb0(%score: f32, %b: i32, %h: i32, %q: i32, %k: i32, %by: f32):
      %r = arith.mulf %score, %by : f32
      attn.yield %r : f32
  }
  %m = attn.window [%left, 0]
  attn.softmax union(%m) of %t
}
"""


def numbers_of(tensors):
    """What makes a tensor or an array without dimensions, of the library that `tensors` are of."""
    if isinstance(tensors[0], np.ndarray):
        return np.array
    return sys.modules["torch"].tensor


def written(tensor, value):
    """In place: the same object, another number."""
    tensor[...] = value


@pytest.mark.parametrize("name, plain", [("scale", 0.3), ("temp", 0.7), ("left", 5), ("q_origin", 2), ("k_origin", 1)])
def test_numbers_in_tensors_without_dimensions(tensors, name, plain):
    """Their value counts as it is at the call, also where the call is one that is kept for its numbers."""
    make, pattern = numbers_of(tensors), heddle.pattern(SCORED)
    given = make(plain)
    for value in (plain, 2 * plain, plain):
        written(given, value)
        called, expected = {"q_origin": 0, name: given}, {"q_origin": 0, name: value}
        found, wanted = (heddle.attention(*tensors, pattern, return_lse=True, **numbers) for numbers in (called, expected))
        for one, two in zip(found, wanted):
            assert np.array_equal(np.asarray(one), np.asarray(two))
        results = [heddle.attention_backward(wanted[0], *tensors, *wanted, pattern, **numbers) for numbers in (called, expected)]
        for one, two in zip(*results):
            assert np.array_equal(np.asarray(one), np.asarray(two))
        assert np.array_equal(np.asarray(heddle.prepare(*tensors, pattern, **called)()), np.asarray(wanted[0]))


def test_numbers_of_words_and_bound_values_in_tensors_without_dimensions(tensors):
    make = numbers_of(tensors)
    words = heddle.words
    assert str(words.window(left=make(7))) == str(words.window(left=7))
    assert str(words.union(words.causal, scores=words.softcap(make(30.0)), sink=make(0.5))) == str(
        words.union(words.causal, scores=words.softcap(30.0), sink=0.5))
    assert words.static(make(0.5)) == words.static(0.5) and words.causal.dilate(make(4), at=make(1)) == words.causal.dilate(4, at=1)
    assert heddle.library("sliding_window", left=make(7)) == heddle.library("sliding_window", left=7)


@pytest.mark.parametrize("wrong, got", [(3.5, "3.5"), (True, "True")])
def test_numbers_of_other_kinds_in_tensors_without_dimensions(tensors, wrong, got):
    make, pattern = numbers_of(tensors), heddle.pattern(SCORED)
    refused(heddle.InvalidArgumentError, "left: expected an int, got ", lambda: heddle.attention(*tensors, pattern, q_origin=0, left=make(wrong)))
    refused(heddle.InvalidArgumentError, "k_origin: expected an int, got ", lambda: heddle.attention(*tensors, "causal", k_origin=make(wrong)))
    refused(heddle.InvalidArgumentError, "scale: expected a finite number above 0", lambda: heddle.attention(*tensors, "causal", scale=make([0.5, 0.5])))
    refused(heddle.InvalidArgumentError, f"got {type(make([1])).__name__} of [1]", lambda: heddle.attention(*tensors, "causal", k_origin=make([1])))
    refused(heddle.InvalidArgumentError, f"got {type(make([1])).__name__} of [2]", lambda: heddle.attention(*tensors, pattern, q_origin=0, temp=make([0.5, 0.5])))


def test_numbers_that_require_gradients():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(each) for each in draw())
    pattern, learned = heddle.pattern(SCORED), torch.nn.Parameter(torch.tensor(0.7))
    said = "got a Parameter that requires a gradient, which no number passes on; its .detach() is taken"
    refused(heddle.InvalidArgumentError, f"pattern scored: temp: expected a finite number, {said}, and heddle.attention_backward(..., gradients_of=('temp',)) has",
            lambda: heddle.attention(q, k, v, pattern, q_origin=0, temp=learned))
    refused(heddle.InvalidArgumentError, f"{said}, and q times it, with scale=1.0, has one", lambda: heddle.attention(q, k, v, "causal", scale=learned))
    refused(heddle.InvalidArgumentError, said, lambda: heddle.words.softcap(learned))
    refused(heddle.InvalidArgumentError, said, lambda: heddle.prepare(q, k, v, pattern, q_origin=0, temp=learned))
    wanted = heddle.attention(q, k, v, pattern, q_origin=0, temp=learned.item())
    with torch.no_grad():
        assert torch.equal(heddle.attention(q, k, v, pattern, q_origin=0, temp=learned), wanted)
    assert torch.equal(heddle.attention(q, k, v, pattern, q_origin=0, temp=learned.detach()), wanted)
    scaled = heddle.attention(q * learned, k, v, "causal", scale=1.0)
    torch.testing.assert_close(scaled, heddle.attention(q, k, v, "causal", scale=learned.detach()))
    assert torch.isfinite(torch.autograd.grad(scaled.sum(), learned)[0])


def test_numbers_whose_value_would_have_to_be_waited_for():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(each) for each in draw())
    away = torch.tensor(1, device="meta")
    for name in ("scale", "k_origin"):
        refused(heddle.InvalidArgumentError, "got a Tensor on meta, whose value would have to be waited for; its .item() is taken",
                lambda: heddle.attention(q, k, v, "causal", **{name: away}))
    refused(heddle.InvalidArgumentError, "left: expected an int, got a Tensor on meta", lambda: heddle.attention(q, k, v, "sliding_window", left=away))


def test_right_shapes_with_other_strides_are_told_by_these(tensors):
    q, k, v = tensors
    out, lse = heddle.attention(q, k, v, "causal", return_lse=True)
    turned = np.asarray(lse).transpose(0, 2, 1).copy().transpose(0, 2, 1)
    turned = turned if isinstance(q, np.ndarray) else type(q)(turned.transpose(0, 2, 1).copy()).transpose(1, 2)
    said = "expected row-major fp32 of [1, 2, 30] (batch, heads, seqlen_q), got fp32 of [1, 2, 30] with strides [60, 1, 2] in the place of [60, 30, 1]"
    for call in (heddle.attention, heddle.prepare):
        refused(heddle.InvalidArgumentError, "lse: " + said, lambda: call(q, k, v, "causal", lse=turned))
    refused(heddle.InvalidArgumentError, "carry: lse: " + said, lambda: heddle.attention(q, k, v, "causal", k_origin=30, carry=(out, turned)))
    refused(heddle.InvalidArgumentError, "lse: " + said, lambda: heddle.attention_backward(out, q, k, v, out, turned, "causal"))


def test_nested_and_mapped_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(each) for each in draw())
    nested = torch.nested.nested_tensor([q[0], q[0, :5]])
    jagged = torch.nested.nested_tensor([q[0], q[0, :5]], layout=torch.jagged)
    for tensors, name in (((nested, k, v), "q"), ((q, nested, v), "k"), ((jagged, jagged, jagged), "q"), ((q, jagged, v), "k")):
        refused(heddle.UnsupportedError, f"{name}: expected a strided tensor, got a nested one; heddle.words.documents",
                lambda: heddle.attention(*tensors, "causal"))
    refused(heddle.UnsupportedError, "what they map can be part of the batch",
            lambda: torch.vmap(lambda each: heddle.attention(each, k, v, "causal"))(torch.stack([q, q])))


def test_mapped_tensors_of_calls_that_are_kept():
    """A call of the sizes of an earlier one looks at addresses alone, which these have none of."""
    torch = pytest.importorskip("torch")
    q, keys = torch.randn(2, 3, 2, 16), torch.randn(2, 8, 2, 16)
    table, lengths = torch.arange(2, dtype=torch.int32).view(2, 1), torch.tensor([8, 3], dtype=torch.int32)
    calls = [lambda q: heddle.attention(q, keys, keys, "causal"), lambda q: heddle.serve.paged_attention(q, keys, keys, table, lengths, "causal")]
    if hasattr(torch, "float8_e4m3fn"):
        calls += [lambda q, like=like: heddle.quantize(q, keys, keys, v_key_major=like)[:3] for like in (False, True)]
    for call in calls:
        call(q)
        refused(heddle.UnsupportedError, "q: expected a tensor with memory of its own, which torch.vmap and other transforms give none (what they map can be "
                "part of the batch)", lambda: torch.vmap(call)(torch.stack([q, q])))


def test_tensors_without_elements():
    """They have no address in PyTorch, and are given all the same."""
    torch = pytest.importorskip("torch")

    def integers(*shape):
        return torch.zeros(shape, dtype=torch.int32)
    q, cache = torch.randn(2, 3, 2, 16), torch.randn(4, 8, 2, 16)
    table, lengths = torch.arange(4, dtype=torch.int32).view(2, 2), torch.tensor([16, 3], dtype=torch.int32)
    none = torch.zeros(0, dtype=torch.int64)
    for _ in range(2):  # the second time from the kept call
        out, lse = heddle.serve.indexed_attention(q, cache, cache, integers(3), integers(0), integers(2), "causal", return_lse=True)
        assert not out.any() and torch.isneginf(lse).all()
        refused(heddle.InvalidArgumentError, "tensor 'ancestors': expected 1 to 64 draft tokens, got 0",
                lambda: heddle.serve.paged_attention(q, cache, cache, table, lengths, "trees", ancestors=none.view(2, 0), drafts=integers(2)))
        refused(heddle.InvalidArgumentError, "tensor 'ancestors': expected 1 to 3 draft tokens", lambda: heddle.attention(q, q, q, "tree_decode", ancestors=none))
        refused(heddle.InvalidArgumentError, "tensor 'cu': expected at least 2 entries", lambda: heddle.attention(q, q, q, "document", cu=integers(0)))
        bias = torch.zeros(1, 2, 3, 0, dtype=torch.bfloat16)
        out = heddle.attention(q, q[:, :0], q[:, :0], "bias", bias=bias)
        assert out.shape == q.shape and not out.any()
        refused(heddle.InvalidArgumentError, "kv_indptr: offset 2: expected 0, got 1", lambda: heddle.serve.indexed_attention(
            q, cache, cache, torch.tensor([0, 0, 1], dtype=torch.int32), integers(0), integers(2) + 1, "causal"))
