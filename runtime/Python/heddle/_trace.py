"""Regions from Python functions: `lambda b, h, q, k: q - k <= 3` is called once with symbols, and what it does is written down."""
import contextlib
import sys

from . import _operations, _symbols
from ._symbols import Region, Symbol
from .errors import InvalidArgumentError

_POSITIONS = (("b", "i32"), ("h", "i32"), ("q", "i32"), ("k", "i32"))


def _without_chance():
    """While PyTorch is there, what draws random numbers is refused: one draw would stand for those of all pairs."""
    if "torch" not in sys.modules:
        return contextlib.nullcontext()
    from . import _torch_chance
    return _torch_chance.Refused()


def _beginning_of(function):
    """The place of a refusal that concerns the whole function."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: in {code.co_name}: " if code is not None else ""


def traced(function, arguments, kind, what):
    """The text of the region; its frame is where the frames of the user's function end."""
    if not callable(function):
        raise InvalidArgumentError(f"{what}: expected a function, got {function!r}")
    region = Region(_operations.OPERATIONS, is_mask=kind == "i1")
    with _without_chance():
        result = function(*(Symbol(region, f"%{name}", of) for name, of in arguments))
    if not isinstance(result, (Symbol, bool, int, float)) and getattr(result, "ndim", None) != 0:
        raise InvalidArgumentError(f"{_beginning_of(function)}{what}: expected a function of symbols, its result is {type(result).__name__}")
    result = _symbols.number(result)
    if kind == "i1" and _symbols.kind_of(result) != "i1":
        _symbols.refuse("returns a number where a mask says yes or no", "compare it: n != 0", _beginning_of(function))
    result = region.lift(result, kind)
    head = ", ".join(f"%{name}: {of}" for name, of in arguments)
    return "\n".join(["{", f"  ^bb0({head}):", *region.lines, f"    attn.yield {result.name} : {kind}", "  }"])


def predicate(keep):
    return traced(keep, _POSITIONS, "i1", "predicate")


def score_map(change):
    return traced(change, (("score", "f32"), *_POSITIONS), "f32", "score_map")
