"""What torch.compile makes of calls: nodes of one graph, breaks of it, and errors that say which would be a node."""
import inspect

import heddle
import pytest
from heddle.words import causal, window

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.compiler

SAYS_WHY = "reason" in inspect.signature(torch.compiler.disable).parameters  # from PyTorch 2.8 on
WORDS = causal & window(left=5)
NEAR = heddle.pattern(WORDS) if heddle.has_compiler() else None


def draw(n=37):
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(2, n, each, 64, generator=generator) for each in (4, 2, 2)]


BREAKS = {
    "words": (lambda q, k, v: heddle.attention(q, k, v, WORDS), "heddle.pattern("),
    "words made inside": (lambda q, k, v: heddle.attention(q, k, v, causal & window(left=5)), ""),
    "words beside values": (lambda q, k, v: heddle.attention(q, k, v, WORDS, left=7), "heddle.pattern("),
    "a tensor as scale": (lambda q, k, v: heddle.attention(q, k, v, NEAR, scale=q[0, 0, 0, 0].abs()), "q times it"),
    "prepare": (lambda q, k, v: heddle.prepare(q, k, v, NEAR)(), "heddle.prepare is no node of a graph"),
    "words in flex_attention": (lambda q, k, v: heddle.flex_attention(*(each.transpose(1, 2) for each in (q, k, v)), block_mask=WORDS, enable_gqa=True),
                                "heddle.pattern("),
}


@pytest.fixture(autouse=True)
def forgotten():
    torch._dynamo.reset()


@pytest.mark.parametrize("name", BREAKS)
def test_what_breaks_the_graph_is_right(name):
    function, _ = BREAKS[name]
    compiled = torch.compile(lambda *each: function(*each) * 2, backend="eager")
    for n in (37, 41):
        tensors = draw(n)
        torch.testing.assert_close(compiled(*tensors), function(*tensors) * 2)


@pytest.mark.parametrize("name", BREAKS)
def test_what_breaks_the_graph_is_no_full_graph(name):
    function, said = BREAKS[name]
    with pytest.raises(Exception) as raised:
        torch.compile(function, backend="eager", fullgraph=True)(*draw())
    assert isinstance(raised.value, torch._dynamo.exc.Unsupported) and (said in str(raised.value) or not SAYS_WHY)


def test_a_tensor_without_dimensions_is_a_number_that_one_graph_reads_at_each_call():
    tensors, left = draw(), torch.tensor(5)
    compiled = torch.compile(lambda q, k, v, left: heddle.attention(q, k, v, NEAR, left=left), backend="eager", fullgraph=True)
    for value in (5, 7, 5):
        left.fill_(value)
        torch.testing.assert_close(compiled(*tensors, left), heddle.attention(*tensors, NEAR, left=value))
    with pytest.raises(heddle.InvalidArgumentError, match="left: expected .* that requires a gradient"):
        torch.compile(lambda q, k, v, left: heddle.attention(q, k, v, NEAR, left=left), backend="eager")(*tensors, torch.nn.Parameter(torch.tensor(5.0)))


def test_a_prepared_call_breaks_the_graph_and_reads_its_tensors():
    q, k, v = draw()
    call = heddle.prepare(q, k, v, NEAR)
    compiled = torch.compile(lambda other: call() + other, backend="eager")
    for _ in range(3):
        q += 1
        torch.testing.assert_close(compiled(v[:, :1, :1] * 0), heddle.attention(q, k, v, NEAR))
    with pytest.raises(torch._dynamo.exc.Unsupported, match="heddle.Prepared is no node of a graph" if SAYS_WHY else ""):
        torch.compile(lambda: call(), backend="eager", fullgraph=True)()


def test_errors_are_those_of_calls_outside():
    for function, kind, said in ((lambda q, k, v: heddle.attention(q, k, v, WORDS, rigth=5), heddle.InvalidArgumentError, "no argument 'rigth'"),
                                 (lambda q, k, v: heddle.attention(q, k, v, 5), heddle.InvalidArgumentError, "expected a mask"),
                                 (lambda q, k, v: heddle.attention(q, k, v, NEAR, stream=5), heddle.InvalidArgumentError, "stream: PyTorch tensors"),
                                 (lambda q, k, v: heddle.kernel(q, k, v, NEAR), heddle.UnsupportedError, "kernels are for tensors on a GPU")):
        for call in (function, torch.compile(function, backend="eager")):
            with pytest.raises(kind, match=said):
                call(*draw())


def test_a_prepared_call_of_pytorch_takes_no_stream():
    with pytest.raises(heddle.InvalidArgumentError, match="prepare: stream: PyTorch tensors run on PyTorch's current stream"):
        heddle.prepare(*draw(), NEAR, stream=5)


def test_words_are_exported_where_python_runs_them():
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return heddle.attention(q, k, v, WORDS)

    program = torch.export.export(Model(), tuple(draw()), strict=False).module()
    torch.testing.assert_close(program(*draw()), heddle.attention(*draw(), WORDS))


@pytest.mark.parametrize("tracing_mode", ["real", "fake"])
@pytest.mark.parametrize("pattern", ["causal", WORDS, NEAR])
def test_make_fx_records_calls(pattern, tracing_mode):
    from torch.fx.experimental.proxy_tensor import make_fx
    program = make_fx(lambda q, k, v: heddle.attention(q, k, v, pattern) * 2, tracing_mode=tracing_mode)(*draw())
    others = [each + 1 for each in draw()]
    torch.testing.assert_close(program(*others), heddle.attention(*others, pattern) * 2)


def test_counters_of_operations_see_calls():
    class Seen(torch.utils._python_dispatch.TorchDispatchMode):
        names = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.names.append(str(function))
            return function(*args, **(kwargs or {}))

    tensors = draw()
    with Seen() as seen:
        out = heddle.attention(*tensors, NEAR)
        heddle.attention(*tensors, NEAR, out=torch.empty_like(tensors[0]))
    assert [seen.names.count(f"heddle.{name}.default") for name in ("attention", "attention_into")] == [1, 1]
    torch.testing.assert_close(out, heddle.attention(*tensors, NEAR))


def biased(q, k, v, bias, **results):
    return heddle.attention(q, k, v, "bias", bias=bias, **results)


@pytest.mark.parametrize("wrong", ["bias", "k", "out"])
@pytest.mark.parametrize("how", ["eager", "compiled", "fake"])
def test_a_tensor_on_device_meta_beside_others_is_refused(how, wrong):
    """PyTorch asks for the shapes of a call any tensor of which is there, and would give memory that nobody wrote."""
    q, k, v = draw()
    given = dict(q=q, k=k, v=v, bias=torch.randn(1, 4, 37, 37).bfloat16(), out=torch.empty_like(q))
    if wrong != "out" and how != "eager":
        del given["out"]
    given[wrong] = given[wrong].to("meta")
    if how == "fake":
        mode = torch._subclasses.fake_tensor.FakeTensorMode()
        given = {name: mode.from_tensor(each) for name, each in given.items()}
    call = torch.compile(biased, backend="eager", fullgraph=True) if how == "compiled" else biased
    with pytest.raises(Exception, match=f"{wrong}: expected a tensor (in host memory|on a CUDA device or in host memory|on device cpu as q), got .*device meta"):
        call(**given)


def test_calls_on_device_meta_have_shapes():
    tensors = [each.to("meta") for each in draw()]
    out = torch.compile(biased, backend="eager", fullgraph=True)(*tensors, torch.empty(1, 4, 37, 37, dtype=torch.bfloat16, device="meta"))
    assert out.is_meta and out.shape == tensors[0].shape


OPS_SAY_NO = hasattr(torch.library, "register_vmap")  # from PyTorch 2.5 on


@pytest.mark.skipif(not OPS_SAY_NO, reason="this PyTorch has no torch.library.register_vmap")
@pytest.mark.parametrize("call", [lambda *each: heddle.attention(*each, NEAR), lambda *each: heddle.quantize(*each)[:3],
                                  lambda q, k, v: heddle.attention(q, k, v, NEAR, out=torch.empty_like(q))], ids=["attention", "quantize", "into"])
def test_vmap_inside_a_graph_is_refused_in_words(call):
    compiled = torch.compile(lambda *each: torch.vmap(call)(*each), backend="eager", fullgraph=True)
    with pytest.raises(Exception, match="heddle has no rule for torch.vmap: what it maps can be part of the batch"):
        compiled(*(each[None] for each in draw()))
