"""Patterns of the library, built in Python, from text and from files: the same digests, the same arguments, the same diagnostics."""
import copy
import os
import pickle

import heddle
import pytest
from heddle import _header
from heddle.words import (alibi, bias, box, causal, cols, csr, documents, full, heads, lse, number, prefix, random, relative, rows, size, softcap,
                          static, stride, tensor, tree, union, window)


def exactly(left, right=0):
    return window(static(left), static(right))


def partition(base, lengths, rates, rule="group"):
    return heads(*((base if rate == 1 else base.dilate(rate, rule=rule)).segment(length) for length, rate in zip(lengths, rates)))


def mixture(base, lengths, rates, gradient="detached"):
    return lse(*((base if rate == 1 else base.dilate(rate, rule="block")).segment(static(length)) for length, rate in zip(lengths, rates)),
               gradient=gradient)


def fixed(*values):
    return tuple(static(value) for value in values)


OFFSETS, INDICES, CU = tensor("offsets", "?x?x?xi32"), tensor("indices", "?xi32"), tensor("cu", "?xi32")
BASE = (2048, 4096, 8192, 16384, 32768), (1, 2, 4, 6, 12)
VIT = (1, 2, 4, 8, 16)


def hierarchical():
    windows = [exactly(1024 * 2**level - 1) for level in range(6)]
    levels = [windows[level] & ~windows[level - 1] & stride("k", 2**level, at=0) for level in range(1, 6)]
    return lse(windows[0], *levels)


def sparse_fixed():
    none, block = box(0, 0, 0, 0), causal.segment(static(128))
    summaries = [causal & stride("k", 128, at=at) for at in range(124, 128)]
    return lse(heads(block, summaries[0]), *(heads(none, each) for each in summaries[1:]))


def dilated_heads():
    w = window(size("reach", 8), size("reach", 8))
    return heads(w, *(w.dilate(rate, rule="every") for rate in (2, 4, 8))).blocks(128)


def levels():
    near, wide = exactly(2, 2), exactly(8, 8)
    return (near | (wide & stride("q", 4, at=0)) | stride("q", 16, at=0)).blocks(64)


def thinned():
    halves = exactly(0) | (exactly(2, 2) & ~exactly(1, 1))
    return halves.blocks(128) & heads(full, full.dilate(2, rule="group"))


def bigbird(near, both):
    g, r, s = size("globals", 1), size("randoms", 3), size("seed", 0)
    return (near | (rows(g) | cols(g) if both else cols(g)) | random(r, s)).blocks(64)


def random_blocks(count):
    return (exactly(0) | random(size("count", count), size("seed", 0))).blocks(128)


HALF, GLOBALS = size("half", 256), size("globals", 64)
# What each file of patterns/ says, in Python.
WORDS = {
    "alibi": lambda: union(causal, scores=alibi()),
    "bias": lambda: union(causal, scores=bias(tensor("bias", "1x?x?x?xbf16"))),
    "bigbird": lambda: bigbird(exactly(1, 1), True),
    "bigbird_causal": lambda: bigbird(exactly(1), False) & causal,
    "block_csr": lambda: csr(OFFSETS, INDICES).blocks(128),
    "block_dilated": lambda: (exactly(1, 1) | (exactly(2, 2) & ~exactly(1, 1)) | (exactly(4, 4) & ~exactly(3, 3))).blocks(128),
    "block_dilated_heads": dilated_heads,
    "block_global": lambda: (exactly(2, 2) | rows(size("globals", 1)) | cols(size("globals", 1))).blocks(128),
    "block_levels": levels,
    "block_local": lambda: full.segment(size("block", 512, min=1)),
    "block_strided": lambda: (stride("k", 4, at=0) | (exactly(1, 1) & ~exactly(0))).blocks(128),
    "block_thinned": thinned,
    "block_topk": lambda: (csr(OFFSETS, INDICES) | exactly(0)).blocks(64) & causal,
    "block_window": lambda: window(size("radius", 2), size("radius", 2)).blocks(128),
    "causal": lambda: causal,
    "dilated": lambda: heads(*(full.dilate(r, rule="group").segment(static(w)) for w, r in ((2048, 1), (4096, 2), (8192, 4)))),
    "dilated_base": lambda: partition(causal, fixed(*BASE[0]), BASE[1]),
    "dilated_benchmark": lambda: partition(full, fixed(8192, 16384, 32768), (1, 2, 8)),
    "dilated_compare": lambda: partition(full, fixed(2048, 4096, 8192, 16384), (1, 2, 4, 8)),
    "dilated_guide": lambda: partition(full, fixed(4096, 8192, 16384), (1, 2, 4)),
    "dilated_large": lambda: partition(causal, fixed(4096, 8192, 16384, 32768), (1, 2, 4, 8)),
    "dilated_scaled": lambda: partition(full, [size(name, 1, min=1) for name in ("quarter", "half", "whole")], (1, 2, 4)),
    "dilated_tiny": lambda: partition(full, fixed(2, 4, 8), (1, 2, 4)),
    "dilated_window": lambda: window(HALF, HALF).dilate(4, rule="every"),
    "document": lambda: documents(causal, CU),
    "document_window": lambda: documents(window(size("left", 1023)), tensor("cu_q", "?xi32"), tensor("cu_k", "?xi32"), tensor("used_k", "?xi32")),
    "full": lambda: full,
    "hierarchical": hierarchical,
    "longformer": lambda: window(HALF, HALF) | rows(GLOBALS) | cols(GLOBALS),
    "longnet": lambda: mixture(causal, (2048, 4096), (1, 2)),
    "longnet_base": lambda: mixture(causal, *BASE),
    "longnet_large": lambda: mixture(causal, (4096, 8192, 16384, 32768), (1, 2, 4, 8)),
    "longnet_tiny": lambda: mixture(causal, (4, 8, 16), (1, 2, 4)),
    "longvit_1k": lambda: mixture(full, (64, 128, 256, 512, 1024), VIT),
    "longvit_32k": lambda: mixture(full, (1024, 4096, 32768, 262144, 1048576), VIT),
    "prefix_lm": lambda: prefix(1024),
    "random_blocks": lambda: random_blocks(26),
    "random_blocks_causal": lambda: random_blocks(52) & causal,
    "relative_bias": lambda: union(full, scores=relative(tensor("table", "?x?xf32"), 127)),
    "sink": lambda: union(causal, sink=tensor("sinks", "?xf32")),
    "sliding_window": lambda: window(left=1023),
    "softcap": lambda: union(causal, scores=softcap(50.0)),
    "sparse_fixed": sparse_fixed,
    "sparse_strided": lambda: heads(exactly(63), causal.dilate(64, rule="every")),
    "streaming": lambda: window(size("left", 1023)) | (cols(size("first", 4)) & causal),
    "tree_decode": lambda: tree(tensor("ancestors", "?xi64")),
    "trees": lambda: tree(tensor("ancestors", "?x?xi64"), tensor("drafts", "?xi32")),
    "window_strided": lambda: window(size("left", 1023, min=0)) | (stride("k", 32, at=31) & causal),
}
FROM_THE_END = ("document_window", "tree_decode", "trees")
DECLARED = {"streaming": (size("first", 4), size("left", 1023)), "document_window": [tensor(name, "?xi32") for name in ("cu_q", "cu_k", "used_k")]}


@pytest.mark.compiler
@pytest.mark.parametrize("name", heddle.library_names())
def test_words_say_what_the_library_says(name):
    made = heddle.pattern(WORDS[name](), q_origin="end" if name in FROM_THE_END else "start", arguments=DECLARED.get(name, ()))
    assert made.digest == heddle.library(name).digest, f"\n{made.mlir}\n{heddle.library(name).mlir}"


@pytest.mark.compiler
@pytest.mark.parametrize("name", heddle.library_names())
def test_headers_are_read_as_the_compiler_reads_them(name):
    pattern = heddle.library(name)
    header = _header.header(pattern.text)
    assert header.name == name and header.takes_q_origin == pattern.takes_q_origin
    assert header.arguments == pattern.arguments


@pytest.mark.compiler
def test_digests_do_not_depend_on_values_and_names():
    assert heddle.pattern(window(left=3)).digest == heddle.library("sliding_window").digest
    assert heddle.pattern(causal | window(3)).digest == heddle.pattern(causal | window(4), name="other").digest
    assert heddle.pattern(window(left=static(3))).digest != heddle.library("sliding_window").digest


@pytest.mark.compiler
def test_diagnostics_come_with_their_place():
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.pattern(text="attn.pattern @x() {\n  %m = attn.widow [1, 0]\n  attn.softmax union(%m)\n}")
    assert str(raised.value).startswith("pattern:2:8: error: custom op 'attn.widow' is unknown")
    assert "did you mean 'attn.window'?" in str(raised.value)


@pytest.mark.compiler
def test_what_the_compiler_refuses_is_refused_when_it_is_made():
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.pattern(tree(tensor("t", "?xi64")).segment(8))
    assert "expected to be outside of pullbacks" in str(raised.value)


def test_values_are_bound_and_checked():
    pattern = heddle.library("sliding_window", left=7)
    assert pattern.values == {"left": 7} and pattern(left=9).values == {"left": 9} and pattern.values == {"left": 7}
    assert pattern == heddle.library("sliding_window", left=7) and pattern != heddle.library("sliding_window")
    for value, message in ((-1, "pattern sliding_window: left: expected 0 to 2147483647, got -1"), (1.5, "left: expected an int, got 1.5"),
                           (2**31, "got 2147483648")):
        with pytest.raises(heddle.InvalidArgumentError) as raised:
            pattern(left=value)
        assert message in str(raised.value)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        pattern(width=3)
    assert str(raised.value) == "pattern sliding_window: it has no argument 'width'; it has left"
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.library("softcap", cap=1000.0)
    assert "cap: expected 1.0 to 512.0, got 1000.0" in str(raised.value)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.library("bias", bias=3)
    assert "bias is a tensor (memref<1x?x?x?xbf16>), give it to the call" in str(raised.value)


def test_names_of_the_library():
    assert "sliding_window" in heddle.library_names()
    with pytest.raises(heddle.NotFoundError) as raised:
        heddle.library("slidingwindow")
    assert "there is no pattern 'slidingwindow', did you mean 'sliding_window'?; there are alibi, " in str(raised.value)


def test_names_nearby(tmp_path):
    (tmp_path / "mine.mlir").write_text(heddle.library("causal").text)
    for call, meant in [(lambda: heddle.library("causl"), "'causl', did you mean 'causal'?"),
                        (lambda: heddle.attention(None, None, None, "causl"), "'causl', did you mean 'causal'?"),
                        (lambda: heddle.load(tmp_path / "mien.mlir"), "mien.mlir', did you mean 'mine.mlir'?"),
                        (lambda: heddle.load(tmp_path / "causal.mlir"), "causal.mlir', did you mean heddle.library('causal')?"),
                        (lambda: heddle.library("sliding_window", lft=3), "no argument 'lft', did you mean 'left'?; it has left")]:
        with pytest.raises(heddle.Error) as raised:
            call()
        assert meant in str(raised.value)


def test_files_with_several_patterns(tmp_path):
    file = tmp_path / "two.mlir"
    file.write_text("".join(str(heddle.library(name)) for name in ("causal", "prefix_lm")))
    assert heddle.load(file, "prefix_lm", length=3).values == {"length": 3}
    with pytest.raises(heddle.InvalidArgumentError):
        heddle.load(file)
    with pytest.raises(heddle.InvalidArgumentError):
        heddle.load(file, "other")


def test_patterns_travel_between_processes():
    pattern = heddle.library("sliding_window", left=7)
    assert pickle.loads(pickle.dumps(pattern)) == pattern and copy.deepcopy(pattern) == pattern
    near = heddle.named("near", "%left: i32", "given")(left=3)
    again = pickle.loads(pickle.dumps(near))
    assert (again.name, again.values, again.arguments, again.takes_q_origin) == ("near", {"left": 3}, near.arguments, True)


@pytest.mark.parametrize("make, message", [
    (lambda: heddle.pattern(), "expected a mask, union(...), lse(...) or `text=`"),
    (lambda: heddle.pattern(causal, text="x"), "one of them only"),
    (lambda: heddle.pattern(3), "expected a mask, union(...), lse(...) or MLIR text, got 3"),
])
def test_what_is_no_pattern(make, message):
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        make()
    assert message in str(raised.value)


def test_arguments_of_named_patterns():
    named = heddle.named("near", '%left: i32 {attn.default = 5 : i32, attn.doc = "a, b"}, %t: memref<?x?xf32>, %x: f32', "given")
    assert [(each.name, each.kind, each.default, each.takes_length) for each in named.arguments] == [
        ("left", "size", 5, False), ("t", "tensor", None, True), ("x", "number", None, False)]
    assert named.takes_q_origin and named.name == "near"
    assert heddle.named("x", "%a: i32, %b: i32") != heddle.named("x", "%b: i32, %a: i32")


@pytest.mark.compiler
def test_explain_and_draw_run_the_command_line(tmp_path):
    pattern = heddle.pattern(window(left=3), name="near")
    assert pattern.explain(8)["kept_pairs"] == 4 * 8 - 6
    assert pattern(left=1).explain(8, left=0, heads=2)["kept_pairs"] == 16
    assert pattern.draw(tmp_path / "x.svg", seqlen=64).startswith("<svg") and (tmp_path / "x.svg").read_text().endswith("</svg>\n")
    assert pattern._repr_svg_().startswith("<svg")
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        pattern.explain(8, colour="red")
    assert "'colour': expected one of seqlen" in str(raised.value)
    with pytest.raises(heddle.InvalidArgumentError):
        pattern.explain(-1)


def test_numbers_with_names():
    assert number("cap", 3.0, min=1.0, max=9.0).max == 9.0


def refused(kind, message, call):
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)


TEXT = "attn.pattern @mine() { %m = attn.causal  attn.softmax union(%m) }"


def test_options_of_words_are_not_passed_over():
    """A text says its q_origin and arguments itself: another mask would be computed than the one that was asked for."""
    made = heddle.pattern(causal, name="mine")
    for what in (TEXT, made):
        refused(heddle.InvalidArgumentError, "q_origin and arguments are for patterns made of words", lambda: heddle.pattern(what, q_origin="end"))
        refused(heddle.InvalidArgumentError, "q_origin and arguments are for patterns made of words",
                lambda: heddle.pattern(what, arguments=[heddle.size("w", 3)]))
    refused(heddle.InvalidArgumentError, "name: mine has a name already, got 'other'", lambda: heddle.pattern(made, name="other"))
    assert heddle.pattern(made, name="mine") is made
    refused(heddle.InvalidArgumentError, "arguments: expected a list of heddle.size, number and tensor",
            lambda: heddle.pattern(window(3), arguments=heddle.size("w", 3)))


@pytest.mark.parametrize("text", [TEXT + "\0 and more", TEXT + " // \ud800", causal, None, b"attn.pattern"])
def test_texts_that_are_none(text):
    refused(heddle.InvalidArgumentError, "pattern: text: expected ", lambda: heddle.Pattern(text))


def test_names_that_are_none():
    refused(heddle.InvalidArgumentError, "pattern: name: expected a str, got 3", lambda: heddle.Pattern(TEXT, 3))
    for name in ("../patterns/causal", 3, None, "causal\0"):
        refused(heddle.NotFoundError, f"library: there is no pattern {name!r}", lambda: heddle.library(name))


def test_files_that_are_not_there_or_no_text(tmp_path):
    refused(heddle.NotFoundError, "load: there is no file", lambda: heddle.load(tmp_path / "none.mlir"))
    refused(heddle.IoError, "cannot be read", lambda: heddle.load(tmp_path))
    refused(heddle.InvalidArgumentError, "load: expected a path, got 99", lambda: heddle.load(99))
    refused(heddle.InvalidArgumentError, "expected a text in UTF-8", lambda: heddle.load("none\0.mlir"))
    binary = tmp_path / "binary.mlir"
    binary.write_bytes(b"\xff\xfe\x00")
    refused(heddle.InvalidArgumentError, "expected a text in UTF-8", lambda: heddle.load(binary))


def test_files_with_other_names_and_marks(tmp_path):
    path = tmp_path / "größe ü.mlir"
    path.write_text(TEXT, encoding="utf-8-sig")  # with the mark that some editors begin a file with
    assert heddle.load(path).name == heddle.load(os.fsencode(path)).name == "mine"
    odd = os.path.join(os.fsencode(tmp_path), b"b\xffd.mlir")
    try:
        with open(odd, "w", encoding="utf-8") as file:
            file.write(TEXT)
    except OSError:
        pytest.skip("the file system takes only names in UTF-8")
    assert heddle.load(odd).name == "mine"


def test_values_of_any_name_and_kind():
    own = heddle.pattern(window(heddle.size("self", 3)))
    assert own(self=4).values == {"self": 4}
    refused(heddle.InvalidArgumentError, "self: expected an int, got True", lambda: own(self=True))
    capped = heddle.pattern(heddle.words.union(causal, sink=heddle.number("sink", 0.0)))
    refused(heddle.InvalidArgumentError, "sink: expected a finite number, got an int that no float holds", lambda: capped(sink=10**400))


@pytest.mark.parametrize("arguments, message", [
    ("%a: i32 {attn.default = x}", "argument a: expected numbers, got {attn.default = x}"),
    ("%a: foo", "argument a: expected i32, f32 or a type such as memref<?x?xi32>, got foo"),
])
def test_named_patterns_with_other_arguments(arguments, message):
    refused(heddle.InvalidArgumentError, message, lambda: heddle.named("x", arguments))


@pytest.mark.parametrize("name, q_origin", [("x", "middle"), ("", "start"), (None, "start")])
def test_named_patterns_without_a_name_or_place(name, q_origin):
    refused(heddle.InvalidArgumentError, "named: expected a name, and q_origin 'start', 'end' or 'given'", lambda: heddle.named(name, "", q_origin))


def test_pictures_that_cannot_be_written(tmp_path, monkeypatch):
    from heddle import _command
    monkeypatch.setattr(_command, "draw", lambda pattern, sizes: "<svg/>")
    refused(heddle.IoError, "cannot be written", lambda: heddle.pattern(TEXT).draw(str(tmp_path / "none" / "picture.svg")))
    refused(heddle.InvalidArgumentError, "expected a name that ends in .svg, got", lambda: heddle.pattern(TEXT).draw(tmp_path / "x.png"))
    assert not (tmp_path / "x.png").exists()
