"""From masks and scores built in Python to the text of a pattern.

A node knows the text of its op, with places for what it stands on; the printer gives names, writes every node once however often
it is used, and makes arguments of the run-time sizes, numbers and tensors in the order in which they are met.
"""
import math
import re
from dataclasses import dataclass, field
from typing import Optional, Tuple, Union

from . import _scalars
from .errors import InvalidArgumentError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_INT32_MAX = 2**31 - 1


def check_name(name, what):
    if not isinstance(name, str) or not _NAME.match(name):
        raise InvalidArgumentError(f"{what}: expected letters, digits and _, got {name!r}")
    return name


@dataclass(frozen=True)
class Static:
    """A literal of the kernel: another value is another kernel."""
    value: Union[int, float]


@dataclass(frozen=True)
class Size:
    """A run-time i32. Without a name of its own it is called after its role."""
    default: Optional[int]
    name: Optional[str] = None
    role: str = field(default="size", compare=False)
    min: Optional[int] = None
    doc: Optional[str] = None
    type = "i32"


@dataclass(frozen=True)
class Number:
    """A run-time f32."""
    default: Optional[float]
    name: Optional[str] = None
    role: str = field(default="number", compare=False)
    min: Optional[float] = None
    max: Optional[float] = None
    doc: Optional[str] = None
    type = "f32"


@dataclass(frozen=True)
class Tensor:
    """A tensor in memory that the pattern reads."""
    name: str
    type: str
    doc: Optional[str] = None


Value = Union[Static, Size, Number, Tensor]


@dataclass(frozen=True)
class Node:
    """One op: `text` has places {m[0]} for operands, {v[0]} for values, {t[0]} for their types, {every} for all operands."""
    word: str
    text: str
    operands: Tuple["Node", ...] = ()
    values: Tuple[Value, ...] = ()
    body: str = ""

    def __post_init__(self):
        object.__setattr__(self, "_hash", hash((self.word, self.text, self.operands, self.values, self.body)))

    def __hash__(self):
        return self._hash

    def __reduce__(self):
        # Without the hash: that of a text is another one in another process.
        return type(self), (self.word, self.text, self.operands, self.values, self.body)


def float_text(value):
    """As MLIR reads an f32: a point in the mantissa."""
    if not math.isfinite(value):
        raise InvalidArgumentError(f"expected a finite number, got {value}")
    mantissa, e, exponent = repr(float(value)).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + e + exponent


def literal(value):
    return float_text(value) if isinstance(value, float) else str(value)


def _attributes(value):
    typed = [("attn.default", getattr(value, "default", None)), ("attn.min", getattr(value, "min", None)), ("attn.max", getattr(value, "max", None))]
    found = [f"{name} = {literal(number)} : {value.type}" for name, number in typed if number is not None]
    if value.doc is not None:
        quoted = value.doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\0A")
        found.append(f'attn.doc = "{quoted}"')
    return " {" + ", ".join(found) + "}" if found else ""


class _Names:
    """Names of one pattern: arguments and results share them."""

    def __init__(self):
        self.taken = set()

    def fresh(self, word):
        name, number = word, 1
        while name in self.taken:
            number += 1
            name = f"{word}_{number}"
        self.taken.add(name)
        return name


class Printer:
    """Writes the nodes of one pattern. `declared` are named arguments that come first, in their order."""

    def __init__(self, declared=()):
        self.names = _Names()
        self.arguments = []  # (name, value), in the order of their ids
        self.lines = []
        self._results = {}
        self._named = {}
        self._declared = set()
        for value in declared:
            if getattr(value, "name", None) is None:
                raise InvalidArgumentError(f"arguments: expected heddle.size, number or tensor with a name, got {value!r}")
            self._argument(value, None)

    def _argument(self, value, place):
        """The name of the argument for a value; `place` tells unnamed ones apart."""
        key = value.name or place
        known = self._named.get(key)
        if known is not None:
            if known[1] != value:
                raise InvalidArgumentError(f"argument {value.name!r} is defined twice: {known[1]} and {value}")
            return known[0]
        if value.name is not None:
            name = check_name(value.name, "name of an argument")
            if name in self.names.taken:
                raise InvalidArgumentError(f"argument {name!r}: another value of the pattern got that name first; give `arguments=` in order")
            self.names.taken.add(name)
        else:
            name = self.names.fresh(value.role)
        self._named[key] = (name, value)
        self.arguments.append((name, value))
        return name

    def declare(self, node):
        """Names the arguments of a node and of what it stands on, before results take names."""
        if node not in self._declared:
            self._declared.add(node)
            for operand in node.operands:
                self.declare(operand)
            for number, value in enumerate(node.values):
                self.value(value, (node, number))

    def value(self, value, place):
        return literal(value.value) if isinstance(value, Static) else "%" + self._argument(value, place)

    def result(self, node):
        """The name of a node's result, which is written if it was not."""
        known = self._results.get(node)
        if known is None:
            operands = [self.result(operand) for operand in node.operands]
            text = self.text(node, operands)
            known = self._results[node] = "%" + self.names.fresh(node.word)
            self.lines.append(f"  {known} = {text}")
        return known

    def text(self, node, operands):
        values = [self.value(value, (node, number)) for number, value in enumerate(node.values)]
        types = [getattr(value, "type", "") for value in node.values]
        return node.text.format(m=operands, v=values, t=types, every=", ".join(operands), body=node.body)

    def pattern(self, name, end, q_origin):
        """The whole text; `end` is the text behind the last op."""
        arguments = ", ".join(f"%{called}: {value.type}{_attributes(value)}" for called, value in self.arguments)
        origin = "" if q_origin == "start" else f" q_origin({q_origin})"
        return "\n".join([f"attn.pattern @{name}({arguments}){origin} {{", *self.lines, "  " + end, "}"]) + "\n"


def size(value, role, least=0):
    """What a word makes of an int: a run-time size called after its role, but 0, which says that something is not there."""
    if isinstance(value, Size) or isinstance(value, Static) and isinstance(value.value, int):
        return value
    found = _scalars.whole(value)
    if found is None:
        raise InvalidArgumentError(f"{role}: expected an int, heddle.size or heddle.static, got {_scalars.shown(value)}")
    if not least <= found <= _INT32_MAX:
        raise InvalidArgumentError(f"{role}: expected {least} to 2^31 - 1, got {found}")
    return Static(0) if found == 0 else Size(found, role=role)


def number(value, role, least=None, most=None):
    """Likewise of a float."""
    if isinstance(value, (Number, Static, Tensor)):
        return Static(_scalars.finite(value.value, role)) if isinstance(value, Static) else value
    value = _scalars.finite(value, role, "a float, heddle.number or heddle.static")
    inside = (least is None or value >= least) and (most is None or value <= most)
    return Number(value, role=role, min=least, max=most) if inside else Static(value)
