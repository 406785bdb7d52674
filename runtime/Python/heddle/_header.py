"""Name, arguments and q_origin of the patterns in a text, without the compiler: what a call by name needs to know of one.

Nothing is verified here; with the compiler on board the same facts come from it.
"""
import math
import re
from dataclasses import dataclass, replace
from typing import Optional, Union

from . import _structs as S
from .errors import InvalidArgumentError

@dataclass(frozen=True)
class Argument:
    """Run-time value number `id` of a pattern. `kind`: "tensor", "size" (int) or "number" (float)."""
    id: int
    name: str
    kind: str
    type: str
    default: Optional[Union[int, float]] = None
    min: Optional[Union[int, float]] = None
    max: Optional[Union[int, float]] = None
    takes_length: bool = False
    doc: str = ""
    of_whole: bool = False  # where the whole ends, of which calls are parts


_START = re.compile(r"\battn\.pattern\s+@([A-Za-z_][\w$.]*)\s*\(")
_ATTRIBUTE = re.compile(r'(attn\.\w+)\s*=\s*("(?:[^"\\]|\\.)*"|[^,}]+)')
_MEMREF = re.compile(r"memref<((\?|\d+)x)+\w+>\Z")
_ARGUMENT = re.compile(r"\s*%([\w$.-]+)\s*:\s*([^{]+?)\s*(\{.*\})?\s*\Z", re.S)


def _without_comments(text):
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*', lambda found: found.group(1) or "", text)


def _closing(text, at):
    """Where the parenthesis that opens before `at` closes; strings are skipped."""
    depth = 1
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[(){}<>]', text[at:]):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if depth == 0:
            return at + token.start()
    raise InvalidArgumentError("pattern: the list of arguments does not end")


def _split(text):
    """At commas outside of braces, brackets and strings."""
    parts, depth, start = [], 0, 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}<>()\[\],]', text):
        sign = token.group()
        depth += (sign in "{<([") - (sign in "}>)]") if len(sign) == 1 else 0
        if sign == "," and depth == 0:
            parts.append(text[start:token.start()])
            start = token.end()
    return parts + [text[start:]] if text.strip() else []


def kind_of(type):
    return "size" if type == "i32" else "number" if type == "f32" else "tensor"


def _argument(number, text):
    found = _ARGUMENT.match(text)
    if not found:
        raise InvalidArgumentError(f"pattern: argument {number}: expected %name: type, got {text.strip()!r}")
    name, type, attributes = found.groups()
    kind = kind_of(type)
    cast = {"size": int, "number": float}.get(kind)
    given = dict(_ATTRIBUTE.findall(attributes or ""))
    doc = given.pop("attn.doc", '""')[1:-1].replace('\\"', '"')
    name, of_whole = given.pop("attn.name", f'"{name}"')[1:-1], given.pop("attn.whole", None) is not None
    try:
        values = {key: cast(value.split(":")[0]) for key, value in given.items()} if cast else {}
    except ValueError:
        raise InvalidArgumentError(f"pattern: argument {name}: expected numbers, got {attributes}") from None
    if kind == "tensor" and not _MEMREF.match(type):
        raise InvalidArgumentError(f"pattern: argument {name}: expected i32, f32 or a type such as memref<?x?xi32>, got {type}")
    return Argument(number, name, kind, type, values.get("attn.default"), values.get("attn.min", 0 if kind == "size" else None),
                    values.get("attn.max"), kind == "tensor" and has_length(type), doc, of_whole)


@dataclass(frozen=True)
class Header:
    name: str
    arguments: tuple
    takes_q_origin: bool


def headers(text):
    """Of every pattern in the text, by name."""
    text = _without_comments(text)
    found = {}
    for start in _START.finditer(text):
        end = _closing(text, start.end())
        arguments = _with_rows(tuple(_argument(number, each) for number, each in enumerate(_split(text[start.end():end]))))
        tail = text[end + 1:].split("{", 1)[0]
        found[start.group(1)] = Header(start.group(1), arguments, "q_origin(given)" in tail.replace(" ", ""))
    return found


def header(text, name=None):
    """Of the pattern of that name, or of the only one."""
    found = headers(text)
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name in found:
        return found[name]
    names = ", ".join(found) or "none"
    wanted = "one pattern" if name is None else f"a pattern {name!r}"
    raise InvalidArgumentError(f"pattern: expected {wanted} in the text, it has {names}")


def extents_of(type):
    """Of a memref type, -1 for ?, and its element type: ((1, -1), "f32") of memref<1x?xf32>."""
    *extents, element = type[len("memref<"):-1].split("x")
    return tuple(-1 if extent == "?" else int(extent) for extent in extents), element


def has_length(type):
    """Whether the last extent of a tensor is its own length, which goes with the call: not of biases, nor of one number per head."""
    extents, element = extents_of(type)
    return extents[-1] == -1 and len(extents) < 4 and not (len(extents) == 1 and not element.startswith("i"))


def length_of(shape):
    """Of a tensor that takes one: of those of parts with rows of queries how many, else the last extent."""
    return shape[2] if len(shape) == 4 else shape[-1]


def _with_rows(arguments):
    """Where calls are parts, biases have a length."""
    if sum(each.of_whole for each in arguments) < 2:
        return arguments
    return tuple(replace(each, takes_length=True) if each.kind == "tensor" and extents_of(each.type)[0][2:-1] == (-1,) else each for each in arguments)


def lacks_length(argument):
    """A tensor of floats whose sizes are all those of a call: what it holds decides on nothing but scores."""
    return argument.kind == "tensor" and not argument.takes_length and not extents_of(argument.type)[1].startswith("i")


def _finite(bound):
    return bound if math.isfinite(bound) else None


def from_library(raw):
    """An argument as heddle_pattern_get_argument gives it."""
    name, type, doc = raw.name.decode(), raw.type.decode(), raw.doc.decode()
    if raw.kind == S.OPERAND_POINTER:
        return Argument(raw.id, name, "tensor", type, takes_length=bool(raw.takes_length), doc=doc)
    if raw.kind == S.OPERAND_INT:
        return Argument(raw.id, name, "size", type, raw.default_int if raw.has_default else None, raw.min_int, doc=doc, of_whole=bool(raw.of_whole))
    return Argument(raw.id, name, "number", type, raw.default_float if raw.has_default else None, _finite(raw.min_float), _finite(raw.max_float),
                    doc=doc)
