"""PyTorch tensors: in host memory through the compiler's CPU target; as if on a GPU through the recording driver; as nodes of graphs."""
import os
import subprocess
import sys
import threading

import heddle
import pytest
from heddle.words import causal, window

torch = pytest.importorskip("torch")
from heddle import _torch  # noqa: E402

PACKAGE = os.environ.get("HEDDLE_HOST_PACKAGE", "")


NEAR = heddle.library("sliding_window", left=5)


def draw(batch=2, n=37, heads=4, kv=2, d=64, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(batch, n, each, d, generator=generator).to(dtype) for each in (heads, kv, kv)]


def masked(q, k, v, keep):
    """SDPA in float64 with a mask."""
    q, k, v = (each.double().transpose(1, 2) for each in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=keep, enable_gqa=True).transpose(1, 2)


def near(n, left):
    i = torch.arange(n)
    return (i[None] <= i[:, None]) & (i[:, None] - i[None] <= left)


@pytest.mark.compiler
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_host_tensors(dtype, tolerance):
    q, k, v = draw(dtype=dtype)
    out, lse = heddle.attention(q, k, v, "sliding_window", left=5, return_lse=True)
    assert out.dtype == dtype and lse.shape == (2, 4, 37) and lse.dtype == torch.float32
    torch.testing.assert_close(out.double(), masked(q, k, v, near(37, 5)), atol=tolerance, rtol=0)


@pytest.mark.compiler
def test_calls_of_the_same_sizes_read_other_tensors_and_values():
    pattern = heddle.library("sliding_window")
    for seed in range(3):
        q, k, v = (each + seed for each in draw())
        for left in (3, 7):
            torch.testing.assert_close(heddle.attention(q, k, v, pattern, left=left).double(), masked(q, k, v, near(37, left)), atol=5e-5, rtol=0)


@pytest.mark.compiler
def test_views_and_results_of_the_caller():
    q, k, v = (each.transpose(1, 2).contiguous().transpose(1, 2) for each in draw())
    out = torch.full((2, 4, 37, 64), float("nan")).transpose(1, 2)
    assert heddle.attention(q, k, v, causal, out=out) is out
    torch.testing.assert_close(out.double(), masked(q, k, v, near(37, 99)), atol=1e-5, rtol=0)


@pytest.mark.compiler
def test_prepared_calls():
    q, k, v = draw()
    call = heddle.prepare(q, k, v, "sliding_window", left=4)
    assert call() is call.out
    q.mul_(2)
    torch.testing.assert_close(call().double(), masked(q, k, v, near(37, 4)), atol=1e-5, rtol=0)
    call.close()
    with pytest.raises(heddle.InvalidArgumentError):
        call()


def halves(k, v):
    return [(each[:, :16], each[:, 16:]) for each in (k, v)]


@pytest.mark.compiler
def test_a_carry_is_continued_whatever_its_address():
    for seed in range(3):  # from the second one on with the call that is kept for these sizes
        q, k, v = (each + seed for each in draw())
        (k0, k1), (v0, v1) = halves(k, v)
        carry = heddle.attention(q, k0, v0, causal, return_lse=True)
        whole = masked(q, k, v, near(37, 99))
        torch.testing.assert_close(heddle.attention(q, k1, v1, causal, k_origin=16, carry=carry).double(), whole, atol=5e-5, rtol=0)
        torch.testing.assert_close(heddle.prepare(q, k1, v1, causal, k_origin=16, carry=carry)().double(), whole, atol=5e-5, rtol=0)
        alone = heddle.attention(q, k1, v1, causal, k_origin=16)
        assert (alone[:, :16] == 0).all()


@pytest.mark.compiler
def test_a_carry_that_does_not_fit_is_named():
    q, k, v = draw()
    out, lse = heddle.attention(q, k, v, causal, return_lse=True)
    for carry, message in (((out.bfloat16(), lse), "carry: out: expected row-major fp32 of [2, 37, 4, 64]"), ((out, None), "carry: lse: expected a PyTorch tensor"),
                           ((out, lse[:, :2]), "carry: lse: expected row-major fp32 of [2, 4, 37]"), (out, "carry: expected (out, lse)")):
        for call in (heddle.attention, heddle.prepare):
            with pytest.raises(heddle.InvalidArgumentError) as raised:
                call(q, k, v, causal, carry=carry)
            assert message in str(raised.value)
    for call in (heddle.attention, heddle.prepare):
        for _ in range(2):
            with pytest.raises(heddle.InvalidArgumentError) as raised:
                call(q, k, v, causal, carry=(out, lse), out=out)
            assert "out: expected memory apart from carry_out, which is still read when it is written, got the same address" in str(raised.value)


@pytest.mark.compiler
def test_a_carry_inside_a_graph():
    def both(q, k, v):
        (k0, k1), (v0, v1) = halves(k, v)
        carry = heddle.attention(q, k0, v0, NEAR, return_lse=True)
        return heddle.attention(q, k1, v1, NEAR, k_origin=16, carry=carry)

    q, k, v = draw()
    compiled = torch.compile(both, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v).double(), masked(q, k, v, near(37, 5)), atol=5e-5, rtol=0)


@pytest.mark.compiler
@pytest.mark.parametrize("change, message", [
    (lambda q, k, v: (q[0], k, v), "q: expected 4 dimensions (batch, row, head, dim), got 3"),
    (lambda q, k, v: (q, k[:1], v), "k: size of batch: expected 2, got 1"),
    (lambda q, k, v: (q, k.bfloat16(), v), "k: dtype: expected fp32 as q, got bf16"),
    (lambda q, k, v: (q.double(), k, v), "q: dtype: expected bf16, fp16, fp32 or e4m3, got fp64"),
    (lambda q, k, v: (q.to("meta"), k, v), "expected a tensor on a CUDA device or in host memory, got device meta"),
    (lambda q, k, v: (q, 3, v), "k: expected a PyTorch tensor as q, got int"),
    (lambda q, k, v: (q, k.numpy(), v), "k: expected a PyTorch tensor as q, got ndarray"),
    (lambda q, k, v: (q.numpy(), k, v.numpy()), "k: expected a tensor of the same library as q"),
    (lambda q, k, v: (q.to_sparse(), k, v), "expected a strided tensor"),
    (lambda q, k, v: (torch._neg_view(q), k, v), "q: expected its numbers in memory, got a view that negates them; q.resolve_neg() makes a copy"),
])
def test_bad_tensors(change, message):
    with pytest.raises(heddle.Error) as raised:
        heddle.attention(*change(*draw()), causal)
    assert message in str(raised.value)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(*draw(), causal, stream=0)
    assert "PyTorch's current stream" in str(raised.value)


@pytest.mark.compiler
def test_tensors_without_memory_and_results_that_overlap():
    q, k, v = draw()
    heddle.attention(q, k, v, causal)  # kept: what comes must not be taken for it
    with pytest.raises(heddle.UnsupportedError) as raised:
        heddle.attention(torch._neg_view(q), k, v, causal)
    assert "a view that negates them" in str(raised.value)
    with pytest.raises(heddle.UnsupportedError) as raised:
        torch.vmap(lambda q, k, v: heddle.attention(q, k, v, window(left=2)))(q[None], k[None], v[None])
    assert "q: expected a tensor with memory of its own" in str(raised.value)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(q, k, v, causal, out=torch.zeros(2, 1, 1, 64).expand(2, 37, 4, 64))
    assert "out: stride of row: expected rows that do not overlap, got 0" in str(raised.value)


class Model(torch.nn.Module):
    def __init__(self, pattern, **values):
        super().__init__()
        self.pattern, self.values = pattern, values

    def forward(self, q, k, v):
        return heddle.attention(q * 2, k, v, self.pattern, **self.values) + 1


@pytest.mark.compiler
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("pattern, values", [("sliding_window", {"left": 5}), (heddle.pattern(window(left=5)), {}),
                                             (heddle.library("sliding_window", left=9), {"left": 5})])
def test_torch_compile_makes_one_graph(backend, pattern, values):
    q, k, v = draw()
    model = Model(pattern, **values)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v), model(q, k, v))
    q, k, v = draw(n=41)
    torch.testing.assert_close(compiled(q, k, v), model(q, k, v))


@pytest.mark.compiler
@pytest.mark.parametrize("strict", [False, True])
def test_torch_export_keeps_the_pattern(strict, tmp_path):
    q, k, v = draw()
    model = Model(heddle.library("sliding_window", left=5))
    rows = torch.export.Dim("rows", min=2, max=4096)
    program = torch.export.export(model, (q, k, v), dynamic_shapes=({1: rows}, {1: rows}, {1: rows}), strict=strict)
    torch.export.save(program, tmp_path / "model.pt2")
    again = torch.export.load(tmp_path / "model.pt2").module()
    assert "heddle.attention" in str(program.graph)
    for n in (37, 53):
        q, k, v = draw(n=n)
        torch.testing.assert_close(again(q, k, v), model(q, k, v))


@pytest.mark.compiler
def test_an_exported_program_runs_in_another_process(tmp_path):
    q, k, v = draw()
    model = Model(heddle.pattern(window(left=5)))
    torch.export.save(torch.export.export(model, (q, k, v)), tmp_path / "model.pt2")
    torch.save([q, k, v, model(q, k, v)], tmp_path / "tensors.pt")
    code = ("import torch, heddle.nn; *inputs, wanted = torch.load('tensors.pt')\n"
            "print(torch.equal(torch.export.load('model.pt2').module()(*inputs), wanted))")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.compiler
def test_the_op_passes_torch_s_own_checks():
    q, k, v = draw(n=9)
    heddle.attention(q, k, v, "sliding_window", left=5)  # makes the op
    arguments = (q, k, v, [], "sliding_window", "", "left;;", [5], [], None, None, 0, "exact", None, None)
    torch.library.opcheck(torch.ops.heddle.attention.default, arguments, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.compiler
def test_fake_tensors_know_shapes_and_errors():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode() as mode:
        q, k, v = (mode.from_tensor(each) for each in draw())
        out, lse = heddle.attention(q, k, v, "causal", return_lse=True)
        assert out.shape == q.shape and lse.shape == (2, 4, 37) and lse.dtype == torch.float32


# ---------------------------------------------------------------- as if on a GPU
@pytest.fixture
def device(monkeypatch):
    """PyTorch's host tensors stand for those of GPU 0; the recording driver takes their addresses."""
    if not PACKAGE or heddle.has_compiler():
        pytest.skip("HEDDLE_HOST_PACKAGE is not set, or the library is not the runtime alone")
    heddle.configure(database=PACKAGE, immutable=True)
    plain = _torch.view
    monkeypatch.setattr(_torch, "view", lambda tensor, name: plain(tensor, name)._replace(device=0))
    monkeypatch.setattr(_torch, "current_stream", lambda index: 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)


def test_launches_of_the_quick_way(device):
    q, k, v = draw(dtype=torch.bfloat16)
    for left in (3, 5, 5, 3):
        out, lse = heddle.attention(q, k, v, "sliding_window", left=left, return_lse=True)
        torch.testing.assert_close(out.double(), masked(q, k, v, near(37, left)), atol=2e-2, rtol=0)
    assert torch.isfinite(lse).all()


def test_a_text_that_grows(device):
    """Every step has one more key: results are right, and the kernel is asked for once."""
    from heddle import _engine
    q, k, v = draw(dtype=torch.bfloat16, n=200)
    for n in range(1, 200):
        out = heddle.attention(q[:, :9], k[:, :n], v[:, :n], "sliding_window", left=5)
    torch.testing.assert_close(out.double(), masked(q[:, :9], k[:, :n], v[:, :n], near(n, 5)[:9]), atol=2e-2, rtol=0)
    assert len(_engine.engine()._found) == 1


def test_a_better_kernel_is_taken_when_a_search_has_ended(device, monkeypatch):
    from heddle import _engine
    q, k, v = draw(dtype=torch.bfloat16)
    heddle.attention(q, k, v, "causal")
    asked, plain = [], _engine.engine().ask
    monkeypatch.setattr(_engine.engine(), "ask", lambda question: asked.append(question) or plain(question))
    heddle.attention(q, k, v, "causal")
    assert not asked
    _engine.engine().expire()
    heddle.attention(q, k, v, "causal")
    heddle.attention(q, k, v, "causal")
    assert len(asked) == 1


def test_kernels_that_are_asked_about_follow_pytorch_s_flag_of_determinism(device, monkeypatch):
    from heddle import _engine
    tensors, kinds = draw(dtype=torch.bfloat16), []
    monkeypatch.setattr(_engine.engine(), "ask", lambda question: kinds.append(question.kind))
    for is_asked_for in (False, True):
        torch.use_deterministic_algorithms(is_asked_for)
        heddle.kernel(*tensors, "causal", backward=True)
    torch.use_deterministic_algorithms(False)
    heddle.kernel(*tensors, "causal", backward=True, deterministic=True)
    assert kinds == [b"backward", b"backward_deterministic", b"backward_deterministic"]


def test_threads_have_their_own_calls(device):
    wrong = []

    def work(seed):
        q, k, v = (each + seed for each in draw(dtype=torch.bfloat16))
        wanted = masked(q, k, v, near(37, seed))
        for _ in range(20):
            out = heddle.attention(q, k, v, "sliding_window", left=seed)
            if (out.double() - wanted).abs().max() > 5e-2:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_prepared_launches(device):
    q, k, v = draw(dtype=torch.bfloat16)
    call = heddle.prepare(q, k, v, "sliding_window", left=3)
    assert call.kernel.generator == "host"
    torch.testing.assert_close(call().double(), masked(q, k, v, near(37, 3)), atol=2e-2, rtol=0)
    call.close()
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        call()
    assert str(raised.value) == "this prepared call is closed"


def test_a_misaligned_tensor_is_refused_where_an_aligned_one_was_taken(device):
    q, k, v = draw(dtype=torch.bfloat16)
    heddle.attention(q, k, v, "causal")
    moved = torch.empty(q.numel() + 3, dtype=q.dtype)[3:].view_as(q)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(moved, k, v, "causal")
    assert "attention arguments: q: address: expected device memory at a multiple of 16 bytes, got remainder 6" in str(raised.value)


def test_another_configuration_is_asked_anew(device):
    q, k, v = draw(dtype=torch.bfloat16)
    heddle.attention(q, k, v, "causal")
    heddle.configure(database="/nowhere/none.heddle")
    with pytest.raises(heddle.NotFoundError):
        heddle.attention(q, k, v, "causal")
