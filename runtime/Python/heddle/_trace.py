"""Regions from Python functions: `lambda b, h, q, k: q - k <= 3` is called once with symbols, and what it does is written down.

Symbols are i32, i1 or f32; Python's operators work on them, and so do torch functions where torch asks a symbol what to do
(torch.where, torch.tanh and the others of _TORCH). Integer `//` and `%` round toward minus infinity, as in Python.
"""
import math

from . import _mlir
from .errors import InvalidArgumentError, UnsupportedError

_COMPARE = {"lt": ("slt", "olt"), "le": ("sle", "ole"), "gt": ("sgt", "ogt"), "ge": ("sge", "oge"), "eq": ("eq", "oeq"), "ne": ("ne", "une")}
_MATH = ("absf", "ceil", "cos", "erf", "exp", "exp2", "expm1", "floor", "log", "log1p", "log2", "rsqrt", "sin", "sqrt", "tanh")
_TORCH = dict({name: name for name in _MATH}, abs="absf", pow="powf", maximum="maximumf", minimum="minimumf")


class _Region:
    def __init__(self, numbers=True):
        self.lines = []
        self.constants = {}

    def add(self, text, kind):
        name = f"%{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        return Symbol(self, name, kind)

    def constant(self, value, kind):
        known = self.constants.get((value, kind))
        if known is None:
            text = {"i1": str(bool(value)).lower(), "f32": f"{_mlir.float_text(float(value))} : f32" if kind == "f32" else ""}
            known = self.constants[value, kind] = self.add("arith.constant " + text.get(kind, f"{value} : {kind}"), kind)
        return known


def _refuse(what):
    raise UnsupportedError(f"a traced function: {what}; write the region in MLIR instead, or use the words of heddle.words")


class Symbol:
    """A value of a region. Not a number: `if` and `int()` on it are refused."""

    def __init__(self, region, name, kind):
        self.region, self.name, self.kind = region, name, kind

    def __bool__(self):
        _refuse("branches on a position or a score; use `&`, `|`, `~` and torch.where")

    def __getattr__(self, name):
        if name.startswith("__"):  # what Python and numpy look for
            raise AttributeError(name)
        return _refuse(f"asks a position or a score for .{name}, which is for tensors")

    __int__ = __float__ = __index__ = __bool__
    __hash__ = None  # type: ignore[assignment]

    def lifted(self, other, kind=None):
        """A symbol for the other side of an operator."""
        if isinstance(other, Symbol):
            return other
        if type(other).__module__ == "numpy" and getattr(other, "ndim", None) == 0:  # np.int64 and its like
            other = other.item()
        if isinstance(other, bool):
            return self.region.constant(other, "i1")
        if isinstance(other, int):
            return self.region.constant(other, kind or ("i32" if self.kind == "i1" else self.kind))
        if isinstance(other, float):
            return self.region.constant(other, "f32")
        return _refuse(f"reads {type(other).__name__}; tensors are arguments of the pattern")

    def to(self, kind):
        if self.kind == kind:
            return self
        if kind == "f32":
            return self.region.add(f"arith.{'uitofp' if self.kind == 'i1' else 'sitofp'} {self.name} : {self.kind} to f32", "f32")
        if self.kind == "i1" and kind == "i32":
            return self.region.add(f"arith.extui {self.name} : i1 to i32", "i32")
        return _refuse(f"makes {kind} of {self.kind}")

    def _both(self, other):
        other = self.lifted(other)
        kinds = {self.kind, other.kind}
        kind = "f32" if "f32" in kinds else "i32"
        return self.to(kind), other.to(kind), kind

    def _arithmetic(self, other, ints, floats, swap=False):
        a, b, kind = self._both(other)
        a, b = (b, a) if swap else (a, b)
        op = ints if kind == "i32" else floats
        if op is None:
            return _refuse("uses an operator that its numbers do not have")
        return self.region.add(f"arith.{op} {a.name}, {b.name} : {kind}", kind)

    def __add__(self, other): return self._arithmetic(other, "addi", "addf")
    def __radd__(self, other): return self._arithmetic(other, "addi", "addf", True)
    def __sub__(self, other): return self._arithmetic(other, "subi", "subf")
    def __rsub__(self, other): return self._arithmetic(other, "subi", "subf", True)
    def __mul__(self, other): return self._arithmetic(other, "muli", "mulf")
    def __rmul__(self, other): return self._arithmetic(other, "muli", "mulf", True)

    def __truediv__(self, other, swap=False):
        a, b = self.to("f32"), self.lifted(other, "f32").to("f32")
        a, b = (b, a) if swap else (a, b)
        return self.region.add(f"arith.divf {a.name}, {b.name} : f32", "f32")

    def __rtruediv__(self, other): return self.__truediv__(other, True)
    def __neg__(self): return self.region.add(f"arith.negf {self.name} : f32", "f32") if self.kind == "f32" else 0 - self
    def __abs__(self): return self.call("absf") if self.kind == "f32" else where(self < 0, -self, self)

    def __floordiv__(self, other):
        if self.kind == "f32" or not isinstance(other, int) or other < 1:
            return _refuse("divides by something that is no positive number")
        return self.region.add(f"arith.floordivsi {self.name}, {self.lifted(other).name} : i32", "i32")

    def __mod__(self, other):
        return self - (self // other) * other

    def _no_such(self, *_):
        return _refuse("uses one of **, <<, >>, @ and divmod, or divides a number by a position with // or %")

    __pow__ = __rpow__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __matmul__ = __rmatmul__ = _no_such
    __divmod__ = __rdivmod__ = __rfloordiv__ = __rmod__ = _no_such

    def _compare(self, other, how):
        a, b, kind = self._both(other)
        ints, floats = _COMPARE[how]
        op = f"cmpf {floats}" if kind == "f32" else f"cmpi {ints}"
        return self.region.add(f"arith.{op}, {a.name}, {b.name} : {kind}", "i1")

    def __lt__(self, other): return self._compare(other, "lt")
    def __le__(self, other): return self._compare(other, "le")
    def __gt__(self, other): return self._compare(other, "gt")
    def __ge__(self, other): return self._compare(other, "ge")
    def __eq__(self, other): return self._compare(other, "eq")
    def __ne__(self, other): return self._compare(other, "ne")

    def _logic(self, other, op):
        other = self.lifted(other)
        if self.kind != "i1" or other.kind != "i1":
            return _refuse("uses &, | or ^ on something that is no comparison")
        return self.region.add(f"arith.{op} {self.name}, {other.name} : i1", "i1")

    def __and__(self, other): return self._logic(other, "andi")
    def __or__(self, other): return self._logic(other, "ori")
    def __xor__(self, other): return self._logic(other, "xori")
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    def __invert__(self): return self._logic(True, "xori")

    def call(self, op, *others):
        numbers = [self.to("f32")] + [self.lifted(other, "f32").to("f32") for other in others]
        dialect = "arith" if op in ("maximumf", "minimumf") else "math"
        return self.region.add(f"{dialect}.{op} " + ", ".join(each.name for each in numbers) + " : f32", "f32")

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name == "__getitem__":
            return _refuse("reads a tensor; tensors are arguments of the pattern")
        if name == "where" and len(args) == 3:
            return where(*args)
        operator = {"logical_and": "__and__", "logical_or": "__or__", "logical_not": "__invert__", "bitwise_and": "__and__",
                    "bitwise_or": "__or__"}.get(name)
        first = next((each for each in args if isinstance(each, Symbol)), None)
        if operator and first is args[0]:
            return getattr(first, operator)(*args[1:])
        if name == "abs":
            return abs(first)
        if name in _TORCH and first is args[0] and not kwargs:
            return first.call(_TORCH[name], *args[1:])
        return _refuse(f"calls torch.{name}")


def where(condition, yes, no):
    """`yes` where the condition holds, else `no`."""
    if not isinstance(condition, Symbol) or condition.kind != "i1":
        return _refuse("chooses by something that is no comparison")
    yes, no = (_number(condition.region, each) for each in (yes, no))
    kind = yes.kind if yes.kind == no.kind else "f32"
    return condition.region.add(f"arith.select {condition.name}, {yes.to(kind).name}, {no.to(kind).name} : {kind}", kind)


def _number(region, value):
    """A symbol for either side of a choice; here alone -inf may stand, a key that is not kept."""
    if isinstance(value, float) and math.isinf(value):
        return _minus_infinity(region, value)
    return value if isinstance(value, Symbol) else Symbol(region, "", "i32").lifted(value)


def _minus_infinity(region, value):
    if value > 0:
        return _refuse("makes a score of +inf")
    return region.add("arith.constant 0xFF800000 : f32", "f32")


def _traced(function, arguments, kind, what):
    if not callable(function):
        raise InvalidArgumentError(f"{what}: expected a function, got {function!r}")
    region = _Region()
    result = function(*(Symbol(region, f"%{name}", of) for name, of in arguments))
    if isinstance(result, (bool, int, float)):
        result = region.constant(bool(result) if kind == "i1" else float(result), kind)
    if not isinstance(result, Symbol):
        raise InvalidArgumentError(f"{what}: expected a function of symbols, its result is {type(result).__name__}")
    result = result if kind == "i1" else result.to("f32")
    if result.kind != kind:
        raise InvalidArgumentError(f"{what}: expected a result of {kind}, got {result.kind}")
    head = ", ".join(f"%{name}: {of}" for name, of in arguments)
    return "\n".join(["{", f"  ^bb0({head}):", *region.lines, f"    attn.yield {result.name} : {kind}", "  }"])


_POSITIONS = (("b", "i32"), ("h", "i32"), ("q", "i32"), ("k", "i32"))


def predicate(keep):
    return _traced(keep, _POSITIONS, "i1", "predicate")


def score_map(change):
    return _traced(change, (("score", "f32"), *_POSITIONS), "f32", "score_map")
