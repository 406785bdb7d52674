"""Tensors that people bring and that are not what they look like: each is right, or an error that says what works."""
import copy
import pickle

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
    refused(heddle.InvalidArgumentError, "out: dtype: expected fp16 as q (fp32 beside bf16 is for a GPU), got fp32",
            lambda: heddle.attention(q, k, v, "causal", out=np.empty(q.shape, np.float32)))


def test_masked_arrays():
    q, k, v = draw()
    refused(heddle.InvalidArgumentError, "k: expected an array without a mask of its own",
            lambda: heddle.attention(q, np.ma.masked_array(k, mask=k > 0), v, "causal"))


def test_types_without_a_name_here_are_called_as_numpy_does():
    q, k, v = (each.astype([("x", np.float32)]) for each in draw())
    refused(heddle.InvalidArgumentError, "dtype: expected bf16, fp16 or fp32, got [('x', '<f4')]", lambda: heddle.attention(q, k, v, "causal"))


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


def test_a_tensor_as_scale():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(each) for each in draw())
    refused(heddle.InvalidArgumentError, "got tensor(0.1000)", lambda: heddle.attention(q, k, v, "causal", scale=torch.tensor(0.1)))


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
