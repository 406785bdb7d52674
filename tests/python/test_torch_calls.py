"""Which PyTorch tensors heddle.attention and heddle.prepare refuse, kept calls or not, and what a prepared call keeps: a kernel and memory.
In host memory, and as if on a GPU through the recording driver, which takes launches and runs nothing."""
import ctypes
import os

import heddle
import pytest
from heddle.words import bias, causal, tensor, union

torch = pytest.importorskip("torch")
from heddle import _call, _engine, _torch  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402

pytestmark = pytest.mark.compiler
CALLS = heddle.attention, heddle.prepare


def draw(dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(1, 16, 2, 64, generator=generator).to(dtype) for _ in range(3)]


def biased():
    return heddle.pattern(union(causal, scores=bias(tensor("b", "?x?x?x?xf32")))), torch.randn(1, 2, 16, 16)


def given(name, change):
    """A pattern and keywords with one tensor of each role; that of `name` is changed."""
    pattern, b = biased()
    carry = heddle.attention(*draw(), causal, return_lse=True)
    roles = dict(b=b, carry_out=carry[0], carry_lse=carry[1], out=torch.empty(1, 16, 2, 64), lse=torch.empty(1, 2, 16))
    if name is not None:
        roles[name] = change(roles[name])
    return pattern, dict(b=roles["b"], out=roles["out"], lse=roles["lse"], carry=(roles["carry_out"], roles["carry_lse"]))


@pytest.mark.parametrize("role", [0, 1, 2])
@pytest.mark.parametrize("result", ["out", "lse"])
def test_gradients_of_q_k_and_v_are_refused_where_a_call_was_kept(result, role):
    pattern, keywords = given(None, None)
    tensors = draw()
    options = {result: keywords[result], "b": keywords["b"]}
    heddle.attention(*tensors, pattern, **options)
    tensors[role].requires_grad_()
    refused(heddle.attention, "calls with out= or lse=, and prepared ones, have no gradients", *tensors, pattern, **options)
    with torch.no_grad():
        heddle.attention(*tensors, pattern, **options)


ROLES = pytest.mark.parametrize("role", ["b", "carry_out", "carry_lse", "out", "lse"])


def refused(call, words, *tensors, **keywords):
    with pytest.raises(heddle.UnsupportedError) as raised:
        call(*tensors, **keywords)
    assert words in str(raised.value)


def kept_call():
    """Of the sizes of `given`, made without gradients and without tangents."""
    with torch.no_grad():
        pattern, keywords = given("b", lambda tensor: tensor.requires_grad_())
        heddle.attention(*draw(), pattern, **keywords)
        pattern, keywords = given(None, None)
        heddle.attention(*draw(), pattern, **keywords)


@ROLES
@pytest.mark.parametrize("call", CALLS)
def test_gradients_of_every_tensor_are_refused(call, role):
    kept_call()
    pattern, keywords = given(role, lambda tensor: tensor.requires_grad_())
    refused(call, "calls with out= or lse=, and prepared ones, have no gradients", *draw(), pattern, **keywords)
    with torch.no_grad():
        call(*draw(), pattern, **keywords)


@ROLES
@pytest.mark.parametrize("call", CALLS)
def test_tangents_of_every_tensor_are_refused(call, role):
    kept_call()
    with forward_ad.dual_level():
        pattern, keywords = given(role, lambda tensor: forward_ad.make_dual(tensor, torch.ones_like(tensor)))
        refused(call, "no forward-mode derivatives", *draw(), pattern, **keywords)
        pattern, keywords = given(None, None)
        call(*draw(), pattern, **keywords)


@pytest.mark.parametrize("call", [*CALLS, torch.compile(lambda *each: heddle.attention(*each), backend="eager"),
                                  torch.compile(lambda *each: heddle.attention(*each), backend="aot_eager")])
def test_tangents_of_queries_are_refused(call):
    q, k, v = draw()
    call(q, k, v, "causal")
    with forward_ad.dual_level():
        refused(call, "no forward-mode derivatives", forward_ad.make_dual(q, torch.ones_like(q)), k, v, "causal")


@ROLES
@pytest.mark.parametrize("call", CALLS)
def test_views_that_negate_are_refused_in_every_role(call, role):
    kept_call()
    pattern, keywords = given(role, torch._neg_view)
    refused(call, f"{role.replace('_', ': ')}: expected its numbers in memory, got a view that negates them", *draw(), pattern, **keywords)


@pytest.mark.parametrize("transform", [lambda call, q: torch.vmap(call)(q[None]), lambda call, q: torch.func.jvp(call, (q,), (q,))])
def test_tensors_of_transforms_are_refused_where_a_call_was_kept(transform):
    q, k, v = draw()
    heddle.attention(q, k, v, "causal")
    refused(transform, "q: expected a tensor with memory of its own", lambda q: heddle.attention(q, k, v, "causal"), q)
    pattern, b = biased()
    heddle.attention(q, k, v, pattern, b=b)
    refused(transform, "b: expected a tensor with memory of its own", lambda b: heddle.attention(q, k, v, pattern, b=b), b)


def test_torch_jit_trace_is_refused():
    """Sizes are tensors there; before they were written where ints belong."""
    q = torch.randn(1, 5, 2, 8)
    for call in (lambda q: heddle.attention(q, q, q, "causal"), lambda q: heddle.prepare(q, q, q, "causal")()):
        with pytest.raises(heddle.UnsupportedError) as raised:
            torch.jit.trace(call, (q,))
        assert "torch.export" in str(raised.value)


# ---------------------------------------------------------------- as if on a GPU
@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return tmp_path_factory.mktemp("db") / "kernels.db"


@pytest.fixture
def device(monkeypatch, database):
    """PyTorch's host tensors stand for those of GPU 0; the recording driver takes their addresses. `stream` is the current one."""
    if "HEDDLE_CUDA_DRIVER_LIBRARY" not in os.environ:
        pytest.skip("HEDDLE_CUDA_DRIVER_LIBRARY is not set")
    ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER_LIBRARY"]).fakeCudaSetArch(80)
    heddle.configure(database=database, first="best")

    class Device:
        stream, is_capturing = 0, False
    plain = _torch.view
    monkeypatch.setattr(_torch, "view", lambda tensor, name: plain(tensor, name)._replace(device=0))
    monkeypatch.setattr(_torch, "current_stream", lambda index: Device.stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda index: f"stream {Device.stream}")
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: Device.is_capturing)
    try:
        heddle.kernel(*draw(torch.bfloat16), "causal")
    except heddle.UnavailableError as error:
        pytest.skip(str(error))
    yield Device
    heddle.configure()


def test_prepared_calls_take_a_better_kernel_when_it_is_due(device, monkeypatch):
    tensors = draw(torch.bfloat16)
    first = heddle.prepare(*tensors, "causal").kernel
    engine, plain, better = _engine.engine(), _engine.engine().ask, []

    def ask(question):
        better.append(_engine.Kernel(engine.library, plain(question).handle))
        return better[-1]

    monkeypatch.setattr(engine, "ask", ask)
    assert heddle.prepare(*tensors, "causal").kernel is first and not better
    engine.expire()
    device.is_capturing = True
    assert heddle.prepare(*tensors, "causal").kernel is first and not better
    device.is_capturing = False
    assert heddle.prepare(*tensors, "causal").kernel is better[0] and len(better) == 1


@pytest.fixture
def recorded(monkeypatch):
    """(tensor, stream) of every record_stream."""
    calls = []
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: calls.append((tensor.data_ptr(), stream)))
    return calls


def test_memory_of_a_prepared_call_follows_it_to_other_streams(device, recorded, monkeypatch):
    monkeypatch.setattr(_call.Call, "workspace_bytes", lambda call, kernel: 4096)
    monkeypatch.setattr(_call.Frozen, "launch", lambda frozen, stream: None)
    tensors, out = draw(torch.bfloat16), torch.empty(1, 16, 2, 64, dtype=torch.bfloat16)
    calls = heddle.prepare(*tensors, "causal"), heddle.prepare(*tensors, "causal", out=out)
    own = [call.lse.data_ptr() for call in calls], [call._bound.workspace.data_ptr() for call in calls], calls[0].out.data_ptr()
    for call in calls:
        call()
    assert not recorded
    device.stream = 7
    for call in (*calls, *calls):
        call()
    assert sorted(recorded) == sorted((address, "stream 7") for address in (*own[0], *own[1], own[2]))
    calls[0].close()
    assert calls[0]._bound is None
