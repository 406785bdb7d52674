"""The words of the dialect in Python: `causal & window(left=1023) | cols(64)`.

Masks are sets of (query, key) pairs: `&`, `|` and `~` combine them. Sizes in tokens or blocks (window, rows, cols, prefix, segment,
random) are run-time values of the kernel: an int is the default of an argument that is called after its role, and one kernel serves
every value. `size("left", 1023)` gives the argument a name, and the same name in two places is one argument; `static(1023)` makes a
literal. Rates, offsets, sizes of blocks and 0 are literals. docs/reference.md has the meaning of every word.
"""
from dataclasses import dataclass
from typing import Optional, Sequence, Tuple, Union

from . import _mlir, _scalars
from ._mlir import Node, Number, Size, Static, Tensor
from .errors import InvalidArgumentError

__all__ = ["Mask", "Scores", "Softmax", "alibi", "bias", "blocks", "box", "causal", "cols", "csr", "dilate", "documents", "full", "heads", "lse",
           "number", "predicate", "prefix", "random", "relative", "rows", "scaled", "score_map", "segment", "size", "softcap", "static",
           "stride", "tensor", "tree", "union", "window"]

_RULES = ("modulo", "block", "group", "every")


# ---------------------------------------------------------------- values
def size(name: str, default: Optional[int] = None, *, min: Optional[int] = None, doc: Optional[str] = None) -> Size:
    """A run-time size with a name of its own; without a default every call gives it.

    >>> half = size("half", 256)
    >>> window(half, half).arguments()
    ['half']
    """
    name = _mlir.check_name(name, "size")
    return Size(_size_of(default, f"size {name}: default"), name, min=_size_of(min, f"size {name}: min"), doc=_doc(doc, f"size {name}"))


def number(name: str, default: Optional[float] = None, *, min: Optional[float] = None, max: Optional[float] = None,
           doc: Optional[str] = None) -> Number:
    """A run-time f32 with a name of its own."""
    name = _mlir.check_name(name, "number")
    what = f"number {name}: "
    given = (None if value is None else _scalars.finite(value, what + of) for value, of in ((default, "default"), (min, "min"), (max, "max")))
    default, min, max = given
    return Number(default, name, min=min, max=max, doc=_doc(doc, f"number {name}"))


def tensor(name: str, type: str, *, doc: Optional[str] = None) -> Tensor:
    """A tensor that the pattern reads: its shape with ? for run-time extents, and its element type, as in "1x?x?x?xbf16"."""
    name = _mlir.check_name(name, "tensor")
    if not isinstance(type, str):
        raise InvalidArgumentError(f"tensor {name}: expected a type such as '1x?x?x?xbf16', got {type!r}")
    spelled = type if type.startswith("memref<") else f"memref<{type}>"
    return Tensor(name, spelled, _doc(doc, f"tensor {name}"))


def static(value: Union[int, float]) -> Static:
    """A literal of the kernel, where a number would be a run-time value."""
    found = _scalars.whole(value)
    return Static(_scalars.finite(value, "static", "an int or a float") if found is None else found)


def _size_of(value, what):
    found = None if value is None else _scalars.whole(value)
    if found is None and value is not None:
        raise InvalidArgumentError(f"{what}: expected an int, got {_scalars.shown(value)}")
    return found


def _doc(doc, what):
    if doc is not None and not isinstance(doc, str):
        raise InvalidArgumentError(f"{what}: doc: expected a text, got {doc!r}")
    return doc


# ---------------------------------------------------------------- masks
class Mask(Node):
    """A set of (query position, key position) pairs for each head."""

    def __and__(self, other: "Mask") -> "Mask":
        return _joined("and", self, other)

    def __or__(self, other: "Mask") -> "Mask":
        return _joined("or", self, other)

    def __invert__(self) -> "Mask":
        return Mask("not", "attn.not {m[0]}", (self,))

    def __bool__(self):
        # `a and b` would be b alone.
        raise InvalidArgumentError("a mask is neither true nor false: write `a & b`, `a | b` and `~a` for `a and b`, `a or b` and `not a`")

    def dilate(self, by: int, at: Optional[int] = None, rule: Optional[str] = None) -> "Mask":
        return dilate(self, by, at, rule)

    def segment(self, by: Union[int, Size, Static]) -> "Mask":
        return segment(self, by)

    def blocks(self, by: Union[int, Size]) -> "Mask":
        return blocks(self, by)

    def documents(self, at: Tensor, at_k: Optional[Tensor] = None, used: Optional[Tensor] = None) -> "Mask":
        return documents(self, at, at_k, used)

    def arguments(self) -> "list[str]":
        """Names of the run-time values, in the order of their ids."""
        printer = _mlir.Printer()
        printer.declare(self)
        return [name for name, _ in printer.arguments]

    def __hash__(self):
        return self._hash

    def __str__(self):
        return Softmax("union", (self,)).mlir()


def _mask(value, what):
    if not isinstance(value, Mask):
        raise InvalidArgumentError(f"{what}: expected a mask, got {value!r}")
    return value


def _joined(word, *masks):
    """and, or of masks; those of the same word are taken apart."""
    flat = []
    for mask in masks:
        _mask(mask, word)
        flat += mask.operands if mask.word == word else [mask]
    flat = list(dict.fromkeys(flat))
    return flat[0] if len(flat) == 1 else Mask(word, f"attn.{word} {{every}}", tuple(flat))


full = Mask("full", "attn.full")
causal = Mask("causal", "attn.causal")


def window(left: Union[int, Size, Static] = 0, right: Union[int, Size, Static] = 0) -> Mask:
    """Keeps (q, k) when q - left <= k <= q + right.

    >>> print(window(left=1023))
    attn.pattern @pattern(%left: i32 {attn.default = 1023 : i32}) {
      %window = attn.window [%left, 0]
      attn.softmax union(%window)
    }
    <BLANKLINE>
    """
    return Mask("window", "attn.window [{v[0]}, {v[1]}]", values=(_mlir.size(left, "left"), _mlir.size(right, "right")))


def rows(first: Union[int, Size, Static] = 0, last: Union[int, Size, Static] = 0) -> Mask:
    """The first and the last queries, with every key."""
    return Mask("rows", "attn.rows [{v[0]}, {v[1]}]", values=(_mlir.size(first, "first_rows"), _mlir.size(last, "last_rows")))


def cols(first: Union[int, Size, Static] = 0, last: Union[int, Size, Static] = 0) -> Mask:
    """The first and the last keys, for every query."""
    return Mask("cols", "attn.cols [{v[0]}, {v[1]}]", values=(_mlir.size(first, "first_cols"), _mlir.size(last, "last_cols")))


def box(first_q, end_q, first_k, end_k) -> Mask:
    """Keeps (q, k) when first_q <= q < end_q and first_k <= k < end_k. Literals unless they are `size`."""
    given = zip(("first_q", "end_q", "first_k", "end_k"), (first_q, end_q, first_k, end_k))
    values = tuple(_mlir.size(value, role) if _scalars.whole(value) is None else Static(_scalars.whole(value)) for role, value in given)
    return Mask("box", "attn.box [{v[0]}, {v[1]}, {v[2]}, {v[3]}]", values=values)


def prefix(length: Union[int, Size, Static]) -> Mask:
    """Keeps (q, k) when k <= q or k < length."""
    return Mask("prefix", "attn.prefix [{v[0]}]", values=(_mlir.size(length, "length"),))


def _residue(what, by, at, rule, rules):
    rate, residue = _scalars.whole(by), _scalars.whole(at)
    if rate is None or rate < 1:
        raise InvalidArgumentError(f"{what}: expected a rate >= 1, got {_scalars.shown(by)}")
    if (at is None) == (rule is None):
        raise InvalidArgumentError(f"{what}: expected one of `at`, a residue class, and `rule`, one of {', '.join(rules)}")
    if rule is not None and rule not in rules:
        raise InvalidArgumentError(f"{what}: rule: expected one of {', '.join(rules)}, got {rule!r}")
    if at is not None and (residue is None or not 0 <= residue < rate):
        raise InvalidArgumentError(f"{what}: at: expected 0 to {rate - 1}, got {_scalars.shown(at)}")
    return f"by {rate} at {residue}" if rule is None else f"by {rate} rule({rule})"


def stride(axis: str, by: int, at: Optional[int] = None, rule: Optional[str] = None) -> Mask:
    """Every `by`-th position of the axis, "q" or "k", from `at` on, or from the one that the rule gives each head."""
    if axis not in ("q", "k"):
        raise InvalidArgumentError(f"stride: axis: expected 'q' or 'k', got {axis!r}")
    return Mask("stride", f"attn.stride {axis} {_residue('stride', by, at, rule, _RULES[:3])}")


def random(count: Union[int, Size, Static], seed: Union[int, Size, Static] = 0, per_head: bool = False) -> Mask:
    """`count` random keys of each query: the same on every machine; inside `blocks`, key blocks of each query block."""
    seed_value = Size(0, role="seed") if _scalars.whole(seed) == 0 else _mlir.size(seed, "seed")
    text = "attn.random count {v[0]} seed {v[1]}" + (" per_head" if per_head else "")
    return Mask("random", text, values=(_mlir.size(count, "count"), seed_value))


def _tensors(what, *tensors):
    for each in tensors:
        if not isinstance(each, Tensor):
            raise InvalidArgumentError(f"{what}: expected heddle.tensor(name, type), got {each!r}")
    return tensors


def csr(offsets: Tensor, indices: Tensor) -> Mask:
    """Keys (inside `blocks`: key blocks) from index lists: offsets "?x?x?xi32" [batch, heads, rows + 1], indices "?xi32"."""
    return Mask("csr", "attn.csr {v[0]}, {v[1]} : {t[0]}, {t[1]}", values=_tensors("csr", offsets, indices))


def tree(ancestors: Tensor, drafts: Optional[Tensor] = None) -> Mask:
    """What draft tokens see: everything before them, and of each other what the bits of "?xi64" say, or of "?x?xi64" [batch, n].

    Of "?x?xi64" each batch element, or sequence, has a tree. With `drafts`, "?xi32", only so many of its last queries are draft
    tokens, and those before them are causal.
    """
    given = _tensors("tree", *(each for each in (ancestors, drafts) if each is not None))
    return Mask("tree", "attn.tree {v[0]} : {t[0]}" + ("" if drafts is None else " drafts {v[1]} : {t[1]}"), values=given)


def segment(mask: Mask, by: Union[int, Size, Static]) -> Mask:
    """Evaluates a mask inside consecutive segments; positions count from where each begins."""
    return Mask("segment", "attn.segment {m[0]} by [{v[0]}]", (_mask(mask, "segment"),), (_mlir.size(by, "segment", 1),))


def blocks(mask: Mask, by: Union[int, Size]) -> Mask:
    """Evaluates a mask on the numbers of blocks of `by` positions. The size is a literal unless it is `size`."""
    value = _mlir.size(by, "blocks", 1)
    value = value if value is by else Static(value.default)
    return Mask("blocks", "attn.blocks {m[0]} by [{v[0]}]", (_mask(mask, "blocks"),), (value,))


def dilate(mask: Mask, by: int, at: Optional[int] = None, rule: Optional[str] = None) -> Mask:
    """Evaluates a mask on one residue class of both axes, thinned: class `at`, or by head: modulo, block, group, every."""
    return Mask("dilate", "attn.dilate {m[0]} " + _residue("dilate", by, at, rule, _RULES), (_mask(mask, "dilate"),))


def documents(mask: Mask, at: Tensor, at_k: Optional[Tensor] = None, used: Optional[Tensor] = None) -> Mask:
    """Evaluates a mask inside documents that lie behind one another: offsets "?xi32" of queries, of keys, keys in use."""
    given = _tensors("documents", *(each for each in (at, at_k, used) if each is not None))
    if used is not None and at_k is None:
        raise InvalidArgumentError("documents: expected offsets of the keys, `at_k`, beside `used`")
    text = "attn.documents {m[0]} at " + ("{v[0]} : {t[0]}" if at_k is None else "{v[0]}, {v[1]} : {t[0]}, {t[1]}")
    return Mask("documents", text + ("" if used is None else " used {v[2]} : {t[2]}"), (_mask(mask, "documents"),), given)


def heads(*masks: Mask) -> Mask:
    """A different mask for each group of heads; the first groups have one head more where they do not divide."""
    if not masks:
        raise InvalidArgumentError("heads: expected at least one mask")
    return Mask("heads", "attn.heads {every}", tuple(_mask(mask, "heads") for mask in masks))


def predicate(keep) -> Mask:
    """Keeps (q, k) when `keep(batch, head, q, k)` says so: plain arithmetic on ints. No tile is skipped for its sake.

    >>> print(predicate(lambda b, h, q, k: (q - k) % 3 == 0).body.splitlines()[2].strip())
    %0 = arith.subi %q, %k : i32
    """
    from . import _trace
    return Mask("predicate", "attn.predicate {body}", body=_trace.predicate(keep))


# ---------------------------------------------------------------- scores
class Scores(Node):
    """A chain of changes of the score of each pair, from scale * <q, k>."""

    def softcap(self, by: Union[float, Number, Static]) -> "Scores":
        """c tanh(s / c). A cap from 1 to 512 is a run-time number."""
        return Scores("softcap", "attn.softcap {m[0]} by {v[0]}", (self,), (_mlir.number(by, "cap", 1.0, 512.0),))

    def alibi(self) -> "Scores":
        """s - m_h |q - k| with ALiBi's slope of each head."""
        return Scores("alibi", "attn.alibi {m[0]}", (self,))

    def bias(self, by: Tensor) -> "Scores":
        """s + an element of a tensor [batch, heads, seqlen_q, seqlen_k], each `?` or 1."""
        return Scores("bias", "attn.bias {m[0]}, {v[0]} : {t[0]}", (self,), _tensors("bias", by))

    def relative(self, table: Tensor, at: Union[int, Size, Static]) -> "Scores":
        """s + the entry of a table [heads, entries] for the distance q - k; entry `at` is that of distance 0."""
        return Scores("relative", "attn.relative {m[0]}, {v[0]} at [{v[1]}] : {t[0]}", (self,),
                      _tensors("relative", table) + (_mlir.size(at, "reach"),))

    def score_map(self, change) -> "Scores":
        """What `change(score, batch, head, q, k)` makes of a score: plain arithmetic, and torch functions such as torch.tanh."""
        from . import _trace
        return Scores("score_map", "attn.score_map {m[0]} {body}", (self,), body=_trace.score_map(change))

    def __hash__(self):
        return self._hash


scaled = Scores("scaled", "attn.scaled")


def softcap(by: Union[float, Number, Static]) -> Scores:
    return scaled.softcap(by)


def alibi() -> Scores:
    return scaled.alibi()


def bias(by: Tensor) -> Scores:
    return scaled.bias(by)


def relative(table: Tensor, at: Union[int, Size, Static]) -> Scores:
    return scaled.relative(table, at)


def score_map(change) -> Scores:
    return scaled.score_map(change)


# ---------------------------------------------------------------- the end
@dataclass(frozen=True)
class Softmax:
    """One softmax over branches: the end of a pattern."""
    combine: str
    branches: Tuple[Mask, ...]
    scores: Optional[Scores] = None
    sink: Optional[Union[Number, Static, Tensor]] = None
    gradient: Optional[str] = None

    def mlir(self, name: str = "pattern", q_origin: str = "start", arguments: Sequence = ()) -> str:
        """The text of a pattern. `arguments` are named run-time values that come first, in this order."""
        _mlir.check_name(name, "name of a pattern")
        if q_origin not in ("start", "end", "given"):
            raise InvalidArgumentError(f"q_origin: expected 'start', 'end' or 'given', got {q_origin!r}")
        printer = _mlir.Printer(arguments)
        for root in (*self.branches, *([self.scores] if self.scores is not None else [])):
            printer.declare(root)
        if self.sink is not None:
            printer.value(self.sink, "sink")
        branches = ", ".join(printer.result(branch) for branch in self.branches)
        end = f"attn.softmax {self.combine}({branches})"
        if self.scores is not None:
            end += f" of {printer.result(self.scores)}"
        if self.sink is not None:
            end += f" sink {printer.value(self.sink, 'sink')}"
            end += f" : {self.sink.type}" if isinstance(self.sink, Tensor) else ""
        end += f" gradient({self.gradient})" if self.gradient else ""
        return printer.pattern(name, end, q_origin)

    def __str__(self):
        return self.mlir()


def _softmax(combine, masks, scores, sink, gradient):
    if not masks:
        raise InvalidArgumentError(f"{combine}: expected at least one mask")
    if scores is not None and not isinstance(scores, Scores):
        raise InvalidArgumentError(f"{combine}: scores: expected a chain such as softcap(50.0), got {scores!r}")
    if gradient not in (None, "full", "detached"):
        raise InvalidArgumentError(f"{combine}: gradient: expected 'full' or 'detached', got {gradient!r}")
    value = None if sink is None else _mlir.number(sink, "sink")
    return Softmax(combine, tuple(_mask(mask, combine) for mask in masks), scores, value, gradient)


def union(*masks: Mask, scores: Optional[Scores] = None, sink=None) -> Softmax:
    """One softmax over what any mask keeps, each key once. `sink`: the score of one more key without a value, for each row."""
    return _softmax("union", (_joined("or", *masks),) if masks else (), scores, sink, None)


def lse(*masks: Mask, scores: Optional[Scores] = None, sink=None, gradient: Optional[str] = None) -> Softmax:
    """One softmax over the multiset sum of the branches: a key in two of them counts twice (LongNet's mixture)."""
    return _softmax("lse", masks, scores, sink, gradient)
