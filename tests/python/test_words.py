"""Words to text: what is a run-time value, how it is called, what is refused. No compiler is needed."""
import os
import pickle
import subprocess
import sys

import heddle
import pytest
from heddle import InvalidArgumentError
from heddle.words import (alibi, bias, box, causal, cols, csr, dilate, documents, full, heads, lse, number, predicate, prefix, random, relative,
                          rows, scaled, score_map, segment, size, softcap, static, stride, tensor, tree, union, window)


def test_operators_read_like_the_dialect():
    assert str(causal & window(left=1023) | cols(64)) == """\
attn.pattern @pattern(%left: i32 {attn.default = 1023 : i32}, %first_cols: i32 {attn.default = 64 : i32}) {
  %causal = attn.causal
  %window = attn.window [%left, 0]
  %and = attn.and %causal, %window
  %cols = attn.cols [%first_cols, 0]
  %or = attn.or %and, %cols
  attn.softmax union(%or)
}
"""


def test_the_same_name_is_one_argument_and_numbers_tell_others_apart():
    half = size("half", 256)
    assert (window(half, half) | rows(half)).arguments() == ["half"]
    assert (window(5, 7) | window(6, 8)).arguments() == ["left", "right", "left_2", "right_2"]


def test_equal_parts_are_written_once():
    text = str(window(3) & causal | window(3) & rows(4))
    assert text.count("attn.window") == 1 and text.count("%left:") == 1


def test_zero_and_static_are_literals():
    text = str(window(static(4), 0) | cols(0, static(2)))
    assert "%left" not in text and "attn.window [4, 0]" in text and "attn.cols [0, 2]" in text


def test_rates_and_blocks_are_literals_and_segments_are_not():
    text = str(causal.dilate(4, rule="every").segment(2048).blocks(128))
    assert "by 4 rule(every)" in text and "by [128]" in text and "by [%segment]" in text
    assert "attn.default = 2048" in text


def test_results_never_take_the_name_of_an_argument():
    text = str(full.segment(static(8)).segment(16) | full.segment(32))
    assert text.count("%segment:") == 1 and "by [%segment]" in text and "by [%segment_2]" in text
    names = [line.split("=")[0].strip() for line in text.splitlines()[1:-2]]
    assert not set(names) & {"%segment", "%segment_2"} and len(set(names)) == len(names)


def test_branches_scores_sink_and_gradient():
    text = lse(causal, full, scores=softcap(50.0).alibi(), sink=0.0, gradient="detached").mlir("mixed", "end")
    assert "attn.softmax lse(%causal, %full) of %alibi sink %sink gradient(detached)" in text
    assert text.startswith("attn.pattern @mixed(%cap: f32 {attn.default = 50.0 : f32, attn.min = 1.0 : f32, attn.max = 512.0 : f32}, %sink: f32")
    assert "q_origin(end) {" in text


def test_declared_arguments_come_first_in_their_order():
    a, b = size("a", 1), size("b", 2)
    assert union(window(a, b)).mlir(arguments=[b, a]).startswith("attn.pattern @pattern(%b: i32 {attn.default = 2 : i32}, %a: i32")


def test_tensors_keep_their_types():
    text = str((csr(tensor("o", "1x?x?xi32"), tensor("i", "?xi32")).blocks(64)
                | documents(causal, tensor("q", "?xi32"), tensor("k", "?xi32"), tensor("u", "?xi32"))) & tree(tensor("t", "memref<?xi64>")))
    assert "attn.csr %o, %i : memref<1x?x?xi32>, memref<?xi32>" in text
    assert "at %q, %k : memref<?xi32>, memref<?xi32> used %u : memref<?xi32>" in text and "attn.tree %t : memref<?xi64>" in text
    assert "attn.tree %t : memref<?x?xi64> drafts %n : memref<?xi32>" in str(tree(tensor("t", "?x?xi64"), tensor("n", "?xi32")))
    with pytest.raises(heddle.InvalidArgumentError, match="tree: expected heddle.tensor"):
        tree(tensor("t", "?x?xi64"), 7)


def test_equality_is_that_of_structure():
    assert causal & window(3) == causal & window(3) and hash(causal & window(3)) == hash(causal & window(3))
    assert causal & window(3) != causal & window(4) and ~~causal != causal
    assert (causal | full) | rows(1) == causal | full | rows(1) and causal & causal == causal


def test_doc_strings_are_quoted():
    assert r'attn.doc = "a \"b\" \\ c"' in str(window(size("w", 1, doc='a "b" \\ c')))


@pytest.mark.parametrize("make, message", [
    (lambda: window(left=-1), "left: expected 0 to 2^31 - 1, got -1"),
    (lambda: window(left=2**31), "left: expected 0 to 2^31 - 1, got 2147483648"),
    (lambda: window(left=1.5), "left: expected an int, heddle.size or heddle.static, got 1.5"),
    (lambda: window(left=True), "got True"),
    (lambda: segment(causal, 0), "segment: expected 1 to 2^31 - 1, got 0"),
    (lambda: segment(3, 4), "segment: expected a mask, got 3"),
    (lambda: causal & 3, "and: expected a mask, got 3"),
    (lambda: dilate(causal, 0, at=0), "dilate: expected a rate >= 1, got 0"),
    (lambda: dilate(causal, 4), "dilate: expected one of `at`, a residue class, and `rule`, one of modulo, block, group, every"),
    (lambda: dilate(causal, 4, at=4), "dilate: at: expected 0 to 3, got 4"),
    (lambda: dilate(causal, 4, rule="even"), "dilate: rule: expected one of modulo, block, group, every, got 'even'"),
    (lambda: stride("x", 2, at=0), "stride: axis: expected 'q' or 'k', got 'x'"),
    (lambda: stride("k", 2, rule="every"), "stride: rule: expected one of modulo, block, group, got 'every'"),
    (lambda: heads(), "heads: expected at least one mask"),
    (lambda: lse(), "lse: expected at least one mask"),
    (lambda: lse(causal, gradient="none"), "lse: gradient: expected 'full' or 'detached', got 'none'"),
    (lambda: lse(causal, scores=causal), "lse: scores: expected a chain such as softcap(50.0)"),
    (lambda: documents(causal, tensor("q", "?xi32"), used=tensor("u", "?xi32")), "documents: expected offsets of the keys, `at_k`, beside `used`"),
    (lambda: bias(3), "bias: expected heddle.tensor(name, type), got 3"),
    (lambda: softcap(float("nan")), "expected a finite number, got nan"),
    (lambda: size("1x", 3), "size: expected letters, digits and _, got '1x'"),
    (lambda: str(window(size("w", 1)) | rows(size("w", 2))), "argument 'w' is defined twice"),
    (lambda: union(causal).mlir(q_origin="middle"), "q_origin: expected 'start', 'end' or 'given', got 'middle'"),
    (lambda: union(causal).mlir(name="a b"), "name of a pattern: expected letters, digits and _, got 'a b'"),
])
def test_what_is_refused(make, message):
    with pytest.raises(InvalidArgumentError) as raised:
        make()
    assert message in str(raised.value)


def test_python_functions_become_regions():
    assert predicate(lambda b, h, q, k: (q - k <= 3) & ~(q < k)).body == """\
{
  ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
    %0 = arith.subi %q, %k : i32
    %1 = arith.constant 3 : i32
    %2 = arith.cmpi sle, %0, %1 : i32
    %3 = arith.cmpi slt, %q, %k : i32
    %4 = arith.constant true
    %5 = arith.xori %3, %4 : i1
    %6 = arith.andi %2, %5 : i1
    attn.yield %6 : i1
  }"""
    assert "arith.mulf %score" in score_map(lambda s, b, h, q, k: s * 0.5 + h).body


def test_every_word_is_in_a_pattern_somewhere():
    assert str(box(0, size("r"), 0, 4)) and str(prefix(3)) and str(random(3, per_head=True)) and relative(tensor("t", "?x?xf32"), 3)
    assert alibi() == scaled.alibi() and number("n", 1.0).type == "f32"


class Whole:
    """An int that is not Python's own, as numpy's and PyTorch's are."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def test_ints_of_others_are_ints():
    assert str(window(Whole(5), static(Whole(2))).segment(Whole(8)).blocks(Whole(4))) == str(window(5, static(2)).segment(8).blocks(4))
    assert str(causal.dilate(Whole(3), at=Whole(1)) | box(0, Whole(4), 0, 4) | stride("k", Whole(2), at=0)) == \
        str(causal.dilate(3, at=1) | box(0, 4, 0, 4) | stride("k", 2, at=0))
    assert size("w", Whole(3), min=Whole(1)) == size("w", 3, min=1)


@pytest.mark.parametrize("make, message", [
    (lambda: size("w", 1.5), "size w: default: expected an int, got 1.5"),
    (lambda: size("w", True), "size w: default: expected an int, got True"),
    (lambda: size("w", 3, min=1.5), "size w: min: expected an int, got 1.5"),
    (lambda: size("w", 3, doc=4), "size w: doc: expected a text, got 4"),
    (lambda: number("x", "1.0"), "number x: default: expected a float, got '1.0'"),
    (lambda: number("x", 1.0, max=10**400), "number x: max: expected a float, got an int that no float holds"),
    (lambda: number("x", 1.0, min=float("nan")), "number x: min: expected a finite number, got nan"),
    (lambda: tensor("t", None), "tensor t: expected a type such as '1x?x?x?xbf16', got None"),
    (lambda: static("3, 0] } //"), "static: expected an int or a float, got '3, 0] } //'"),
    (lambda: static(True), "static: expected an int or a float, got True"),
    (lambda: window(static(1.5)), "left: expected an int, heddle.size or heddle.static, got Static(value=1.5)"),
    (lambda: causal.blocks(static(4.0)), "blocks: expected an int, heddle.size or heddle.static, got Static(value=4.0)"),
    (lambda: softcap(10**400), "cap: expected a float, heddle.number or heddle.static, got an int that no float holds"),
    (lambda: random(2, seed=False), "seed: expected an int, heddle.size or heddle.static, got False"),
    (lambda: union(causal).mlir(arguments=["w"]), "arguments: expected heddle.size, number or tensor with a name, got 'w'"),
    (lambda: predicate(3), "predicate: expected a function, got 3"),
])
def test_values_that_are_no_numbers_of_a_pattern(make, message):
    with pytest.raises(InvalidArgumentError) as raised:
        make()
    assert message in str(raised.value)


def test_masks_of_another_process_are_equal_parts():
    """Hashes of texts differ from process to process; a mask that came from another one is still written once."""
    code = "import pickle, sys; from heddle.words import window; sys.stdout.buffer.write(pickle.dumps(window(3)))"
    paths = os.pathsep.join([os.path.dirname(os.path.dirname(heddle.__file__)), os.environ.get("PYTHONPATH", "")])
    came = [pickle.loads(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True,
                                        env=dict(os.environ, PYTHONHASHSEED=seed, PYTHONPATH=paths)).stdout) for seed in ("1", "2")]
    assert {window(3)} == set(came)
    assert (came[0] | came[1] & causal | window(3)).arguments() == ["left"]


@pytest.mark.parametrize("write", [lambda: window(3, 3) and causal, lambda: window(3, 3) or causal, lambda: not causal, lambda: 1 if causal else 2])
def test_a_mask_is_neither_true_nor_false(write):
    with pytest.raises(heddle.InvalidArgumentError, match="write `a & b`, `a | b` and `~a`"):
        write()


def test_numbers_of_numpy_in_traced_functions():
    np = pytest.importorskip("numpy")
    for number in (np.int64(5), np.int32(5), np.array(5)):
        assert predicate(lambda b, h, q, k: q - k < number) == predicate(lambda b, h, q, k: q - k < 5)
    assert predicate(lambda b, h, q, k: q - k < np.float64(4.5)) == predicate(lambda b, h, q, k: q - k < 4.5)
    assert predicate(lambda b, h, q, k: (q >= k) & np.bool_(True)) == predicate(lambda b, h, q, k: (q >= k) & True)
    with pytest.raises(heddle.UnsupportedError, match="reads ndarray of .1, 1.; tensors are arguments of the pattern"):
        predicate(lambda b, h, q, k: q < np.arange(3)[:1].reshape(1, 1))
