"""Calls as nodes of graphs of PyTorch, whatever their arguments: heddle.attention, those of heddle.serve, heddle.quantize. What a graph gives is what
the call gives outside."""
import functools
import io
from typing import Any, NamedTuple

import heddle
import pytest
from heddle import serve
from heddle.words import causal, softcap, union, window

torch = pytest.importorskip("torch")
if not hasattr(torch, "float8_e4m3fn"):
    pytest.skip("this PyTorch has no float8_e4m3fn", allow_module_level=True)

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

if not heddle.has_compiler():
    pytest.skip("these calls run on processors, by the compiler", allow_module_level=True)

NEAR = heddle.pattern(causal & window(left=5))
HEADS, KV_HEADS, DIM, PAGE, SEQUENCES = 4, 2, 32, 16, 3
BATCH, ROWS = 2, 21


def integers(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


def low(tensor):
    return tensor.to(torch.float8_e4m3fn)


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


class Case(NamedTuple):
    """A call with its tensors, by name, among them `out` and `lse` that it writes."""
    function: Any
    tensors: dict
    options: dict = {}

    def __call__(self, *tensors):
        scales = [name for name in self.tensors if name.startswith("descale_")]
        given = dict(zip(self.tensors, tensors))
        descale = {"descale": tuple(given.pop(name) for name in scales)} if scales else {}
        results = self.function(**given, **descale, **self.options)
        return [each.float() * 2 if isinstance(each, torch.Tensor) else each for each in flat(results)]

    def copies(self):
        return [each.clone() for each in self.tensors.values()]

    @property
    def given(self):
        return list(self.tensors.values())


def flat(results):
    return [each for part in results for each in flat(part)] if isinstance(results, tuple) else [results]


# ---------------------------------------------------------------- calls
Q, K, V = draw(BATCH, ROWS, HEADS, DIM), draw(BATCH, ROWS, KV_HEADS, DIM), draw(BATCH, ROWS, KV_HEADS, DIM) + 1
LOW = dict(q=low(Q), k=low(K), v=low(V))
SCALES = dict(descale_q=draw(BATCH, HEADS).abs() + 0.5, descale_k=draw(BATCH, KV_HEADS).abs() + 0.5, descale_v=draw(BATCH, KV_HEADS).abs() + 0.7)
HALF = dict(q=Q.bfloat16(), k=K.bfloat16(), v=V.bfloat16())
OUT, LSE = dict(out=torch.zeros_like(Q)), dict(lse=torch.zeros(BATCH, HEADS, ROWS))
ATTENTION = {
    "plain": ({}, {}),
    "return_lse": ({}, dict(return_lse=True)),
    "out": (OUT, {}),
    "lse": (LSE, {}),
    "out and return_lse": (OUT, dict(return_lse=True)),
    "out and lse": ({**OUT, **LSE}, dict(return_lse=True)),
    "lse of e4m3": ({**LOW, **LSE}, {}),
    "out in fp32": ({**HALF, **OUT}, {}),
    "descale": ({**LOW, **SCALES}, dict(return_lse=True)),
    "descale of a tensor and of kv heads": ({**LOW, **SCALES, "descale_q": SCALES["descale_k"], "descale_v": torch.tensor([2.0])}, {}),
    "descale of blocks": ({**LOW, **SCALES, "descale_q": SCALES["descale_q"][..., None], "descale_k": SCALES["descale_k"][..., None]}, {}),
    "descale and out": ({**LOW, **SCALES, **OUT, **LSE}, {}),
    "descale of k and v alone": ({**HALF, "k": LOW["k"], "v": LOW["v"]}, dict(descale=(None, torch.ones(BATCH, KV_HEADS) * 0.5, 2.0))),
    "k and v of e4m3": ({**HALF, "k": LOW["k"], "v": LOW["v"]}, {}),
}
PAGES = draw(2, 12, PAGE, KV_HEADS, DIM)
TABLE = torch.randperm(12, generator=torch.Generator().manual_seed(1)).to(torch.int32)
INPUTS = {
    "paged_attention": dict(k_cache=PAGES[0], v_cache=PAGES[1], page_table=TABLE.view(3, 4), seqused_k=integers(40, 0, 17)),
    "indexed_attention": dict(k_cache=PAGES[0], v_cache=PAGES[1], kv_indptr=integers(0, 3, 4, 6), kv_indices=TABLE[:6], kv_last_page_len=integers(8, 16, 1)),
    "ragged_attention": dict(k=PAGES[0].view(1, -1, KV_HEADS, DIM), v=PAGES[1].view(1, -1, KV_HEADS, DIM), cu_seqlens_k=integers(0, 20, 20, 192)),
}
TOKENS, RAGGED = draw(SEQUENCES, 1, HEADS, DIM), draw(1, SEQUENCES, HEADS, DIM)
OF_SEQUENCES = dict(descale_k=draw(SEQUENCES, KV_HEADS).abs() + 0.5, descale_v=draw(SEQUENCES, KV_HEADS).abs() + 0.7)
SERVED = {
    "plain": ({}, {}),
    "return_lse": ({}, dict(return_lse=True)),
    "batch_invariant": ({}, dict(batch_invariant=True, return_lse=True)),
    "cu_seqlens_q": (dict(q=RAGGED, cu_seqlens_q=integers(0, 1, 1, 3)), {}),
    "shared_k": (dict(shared_k=integers(0, 0, 0)), {}),
    "k_origins": (dict(k_origins=integers(0, 3, 5)), dict(return_lse=True)),
    "whole_k": (dict(k_origins=integers(0, 3, 5), whole_k=integers(250, 250, 250)), {}),
    "out": (dict(out=torch.zeros_like(TOKENS)), {}),
    "lse": (dict(lse=torch.zeros(SEQUENCES, HEADS, 1)), {}),
    "out and lse": (dict(out=torch.zeros_like(TOKENS), lse=torch.zeros(SEQUENCES, HEADS, 1)), dict(return_lse=True, batch_invariant=True)),
    "out in fp32": (dict(q=TOKENS.bfloat16(), out=torch.zeros_like(TOKENS)), {}),
    "descale": (dict(q=TOKENS.bfloat16(), **OF_SEQUENCES), {}),
    "descale and out": (dict(q=TOKENS.bfloat16(), **OF_SEQUENCES, out=torch.zeros_like(TOKENS)), dict(return_lse=True)),
}
QUANTIZED = {
    "plain": ({}, {}),
    "smooth_k": ({}, dict(pattern=NEAR, smooth_k=True)),
    "scale_rows": ({}, dict(pattern="causal", scale_rows=64, smooth_k=True)),
    "rotation": (dict(rotation=heddle.random_signs(DIM)), {}),
    "v_key_major": ({}, dict(v_key_major=True)),
}


def served(entry, tensors, options):
    inputs = {"q": TOKENS, **INPUTS[entry], **tensors}
    if inputs["q"].dtype != torch.float32:  # with the cache
        to = low if "descale_k" in inputs else torch.Tensor.bfloat16
        inputs.update((name, to(inputs[name])) for name in ("k_cache", "v_cache", "k", "v") if name in inputs)
    return Case(functools.partial(getattr(serve, entry), pattern="causal"), inputs, options)


CASES = {f"attention: {name}": Case(functools.partial(heddle.attention, pattern=NEAR), {**dict(q=Q, k=K, v=V), **tensors}, options)
         for name, (tensors, options) in ATTENTION.items()}
CASES.update((f"{entry}: {name}", served(entry, *case)) for entry in INPUTS for name, case in SERVED.items() if (entry, name) != ("ragged_attention", "shared_k"))
CASES.update((f"quantize: {name}", Case(heddle.quantize, {**dict(q=Q, k=K, v=V), **tensors}, options)) for name, (tensors, options) in QUANTIZED.items())
ANY = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
ONE_OF_EACH = pytest.mark.parametrize("case", [CASES[name] for name in ("attention: descale and out", "paged_attention: descale and out", "quantize: plain")])


@pytest.fixture(autouse=True)
def forgotten():
    torch._dynamo.reset()


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert (one is None and other is None) or (one.dtype == other.dtype and torch.equal(one.float(), other.float()))


# ---------------------------------------------------------------- graphs
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@ANY
def test_torch_compile_makes_one_graph_of_it(case, backend):
    expected, written = case.copies(), case.copies()
    results = case(*expected)
    same(torch.compile(lambda *tensors: case(*tensors), backend=backend, fullgraph=True)(*written), results)
    same(written, expected)


@pytest.mark.parametrize("mode", ["real", "symbolic"])
@ANY
def test_make_fx_records_one_node_that_copies_nothing(case, mode):
    if "descale" in case.options and mode != "real":
        pytest.skip("scales that are no inputs are real, and make_fx refuses them beside fake ones")
    recorded = make_fx(lambda *tensors: case(*tensors), tracing_mode=mode)(*case.copies())
    nodes = [str(node.target) for node in recorded.graph.nodes if node.op == "call_function"]
    assert len([name for name in nodes if name.startswith("heddle.")]) == 1 and not any(name.startswith(("aten.copy", "aten.clone")) for name in nodes)
    expected, written = case.copies(), case.copies()
    for tensors in (expected, written):
        tensors[0].copy_(tensors[0].float().flip(-1))  # others than were recorded
    results = case(*expected)
    same(recorded(*written), results)
    same(written, expected)


@ANY
def test_fake_tensors_have_shapes_strides_and_types(case):
    expected = flat(case.function(**keywords(case, case.copies())))
    with FakeTensorMode() as fake:
        options = {name: tuple(map(lambda each: fake.from_tensor(each) if isinstance(each, torch.Tensor) else each, value)) if name == "descale" else value
                   for name, value in case.options.items()}
        found = flat(case.function(**keywords(case._replace(options=options), [fake.from_tensor(each) for each in case.given])))
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one is other is None or (one.shape, one.stride(), one.dtype) == (other.shape, other.stride(), other.dtype)


def keywords(case, tensors):
    given = dict(zip(case.tensors, tensors))
    descale = tuple(given.pop(name) for name in case.tensors if name.startswith("descale_"))
    return {**given, **({"descale": descale} if descale else {}), **case.options}


def test_results_are_written_into_views_and_where_nothing_reads_what_the_call_returns():
    def function(q, k, v, buffer):
        heddle.attention(q, k, v, NEAR, out=buffer[:, 3:3 + ROWS])
        return buffer.sum()
    buffers = [torch.zeros(BATCH, ROWS + 5, HEADS, DIM) for _ in range(3)]
    expected = function(Q, K, V, buffers[0])
    for buffer, backend in zip(buffers[1:], ("eager", "aot_eager")):
        torch.testing.assert_close(torch.compile(function, backend=backend, fullgraph=True)(Q, K, V, buffer), expected)
        assert torch.equal(buffer, buffers[0]) and buffer[:, 3:3 + ROWS].any() and not buffer[:, :3].any()


def test_one_graph_serves_all_sizes():
    compiled = torch.compile(lambda q, k, v, out, scale: heddle.attention(q, k, v, NEAR, out=out, descale=(scale, None, None)), backend="eager",
                             fullgraph=True, dynamic=True)
    for rows in (21, 34, 50):
        q, k, v = (low(draw(BATCH, rows, heads, DIM)) for heads in (HEADS, KV_HEADS, KV_HEADS))
        out = torch.zeros(BATCH, rows, HEADS, DIM)
        assert compiled(q, k, v, out, SCALES["descale_q"]) is out
        assert torch.equal(out, heddle.attention(q, k, v, NEAR, out=torch.zeros_like(out), descale=(SCALES["descale_q"], None, None)))


class Model(torch.nn.Module):
    def __init__(self, case):
        super().__init__()
        self.case = case

    def forward(self, *tensors):
        return self.case(*tensors)


@pytest.mark.parametrize("strict", [False, True])
@ONE_OF_EACH
def test_exported_programs_have_it(case, strict):
    with torch.no_grad():
        program = torch.export.export(Model(case), tuple(case.copies()), strict=strict)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    expected, written = case.copies(), case.copies()
    results = case(*expected)
    same(torch.export.load(file).module()(*written), results)
    same(written, expected)


@pytest.mark.parametrize("name", ["attention: out and lse", "indexed_attention: out and lse", "quantize: v_key_major"])
def test_pytorch_finds_the_ops_sound(name):
    case = CASES[name]
    graph = make_fx(lambda *tensors: case(*tensors))(*case.copies()).graph
    node = next(node for node in graph.nodes if str(node.target).startswith("heddle."))
    tensors = dict(zip((each for each in graph.nodes if each.op == "placeholder"), case.copies()))
    arguments = torch.fx.map_arg(node.args, tensors.get)
    torch.library.opcheck(node.target, arguments, test_utils=("test_schema", "test_faketensor"))


# ---------------------------------------------------------------- what is refused
def refused(function, kind, said, *tensors):
    for call in (function, torch.compile(function, backend="eager")):
        with pytest.raises(kind, match=said):
            call(*tensors)
    with pytest.raises((kind, torch._dynamo.exc.Unsupported), match=f"{said}|heddle refuses this call|disable"):
        torch.compile(function, backend="eager", fullgraph=True)(*tensors)


def gradient(case, name):
    tensors = case.copies()
    tensors[list(case.tensors).index(name)].requires_grad_()
    return tensors


@pytest.mark.parametrize("name, tensor", [("attention: descale", "descale_k"), ("attention: descale", "q"), ("attention: out", "q"), ("attention: out", "out"),
                                          ("paged_attention: descale", "descale_k"), ("ragged_attention: lse", "lse"), ("quantize: rotation", "rotation")])
def test_gradients_are_refused_as_outside(name, tensor):
    case = CASES[name]
    refused(lambda *tensors: case(*tensors), heddle.UnsupportedError, "no gradients", *gradient(case, tensor))
    with torch.no_grad():
        torch.compile(lambda *tensors: case(*tensors), backend="eager", fullgraph=True)(*gradient(case, tensor))


BAD = {
    "a scale of other shape": ("attention: descale", "descale_q", torch.ones(BATCH, 3), r"descale_q: expected row-major fp32 of \[2, 4\]"),
    "a scale of other type": ("attention: descale", "descale_k", torch.ones(BATCH, KV_HEADS).double(), "descale_k: expected row-major fp32"),
    "a scale of 0": ("attention: descale", "descale_v", torch.zeros(BATCH, KV_HEADS), "descale_v: element 0: expected a finite number above 0"),
    "scales of other elements": ("attention: descale", "q", Q, "k: dtype: expected"),
    "an out of other shape": ("attention: out", "out", torch.zeros(BATCH, ROWS + 1, HEADS, DIM), "out: size of row: expected 21, got 22"),
    "an lse of other shape": ("attention: lse", "lse", torch.zeros(BATCH, ROWS, HEADS), "lse: expected row-major fp32"),
    "a cache's scale of other shape": ("paged_attention: descale", "descale_v", torch.ones(SEQUENCES, HEADS), r"descale_v: expected row-major fp32 of \[3, 2\]"),
    "a cache's out of other type": ("ragged_attention: out", "out", torch.zeros(SEQUENCES, 1, HEADS, DIM).half(), "out: dtype: expected fp32"),
    "signs of other length": ("quantize: rotation", "rotation", torch.ones(DIM - 1), "rotation: expected row-major fp32"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tensors_are_refused_as_outside(name):
    of, tensor, bad, said = BAD[name]
    case = CASES[of]._replace(tensors={**CASES[of].tensors, tensor: bad})
    with pytest.raises(heddle.InvalidArgumentError, match=said):
        case(*case.copies())
    with pytest.raises(Exception, match=said if tensor != "q" else "expected") as raised:
        torch.compile(lambda *tensors: case(*tensors), backend="eager", fullgraph=True)(*case.copies())
    assert tensor == "q" or isinstance(raised.value, heddle.InvalidArgumentError)


def test_no_tensors_are_refused_as_outside():
    tensors = CASES["paged_attention: plain"].given
    refused(lambda q, k, v: heddle.attention(q, k, v, NEAR, out=5), heddle.InvalidArgumentError, "out: expected a PyTorch tensor as q, got int", Q, K, V)
    refused(lambda *given: serve.paged_attention(*given, "causal", descale=(2.0, None)), heddle.InvalidArgumentError, "descale_k: expected a PyTorch tensor", *tensors)
    refused(lambda *given: serve.paged_attention(*given, "causal", batch_invariant=True, shared_k=given[-1]), heddle.InvalidArgumentError,
            "shared_k: expected None beside batch_invariant", *tensors)


def test_quantize_refuses_as_outside():
    capped = heddle.pattern(union(causal, scores=softcap(20.0)))
    for options, kind, said in ((dict(scale_rows=5), heddle.InvalidArgumentError, "scale_rows: expected 0, 64 or 128, got 5"),
                                (dict(scale_rows=64.0), heddle.InvalidArgumentError, "scale_rows: expected 0, 64 or 128, got 64.0"),
                                (dict(smooth_k=True), heddle.InvalidArgumentError, "smooth_k: expected the pattern"),
                                (dict(smooth_k=True, pattern=capped), heddle.UnsupportedError, "beside softcap")):
        refused(lambda q, k, v: heddle.quantize(q, k, v, **options), kind, said, Q, K, V)


def test_quantize_with_words_breaks_the_graph_and_is_right():
    found = torch.compile(lambda q, k, v: heddle.quantize(q, k, v, causal, smooth_k=True), backend="eager")(Q, K, V)
    same(flat(tuple(found)), flat(tuple(heddle.quantize(Q, K, V, causal, smooth_k=True))))
