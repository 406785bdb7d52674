"""Operations of traced functions on one number, division, powers, and functions of scores, written so that derivatives of extreme scores
are finite. A mask's region has no math, one of scores has; it makes no ints of floats.
"""
import math

from ._pairs import and_, common, emit, eq, gt, le, lshift, lt, minus, ne, or_, plus, times, where
from ._symbols import Symbol, number, refuse


# ---------------------------------------------------------------- one number
def neg(r, input):
    a = r.lift(input)
    if a.kind == "i1":
        refuse("negates a truth, which PyTorch refuses too", "use ~")
    return emit(r, "negf", a) if a.kind == "f32" else minus(r, 0, a)


def absolute(r, input):
    a = r.lift(input)
    if a.kind == "i1":
        return a
    return of_math("absf")(r, a) if a.kind == "f32" and not r.is_mask else where(r, lt(r, a, 0), neg(r, a), a)


def sign(r, input):
    a = r.lift(input)
    return a if a.kind == "i1" else r.lift(where(r, gt(r, a, 0), 1, where(r, lt(r, a, 0), -1, 0)), a.kind)


def of_math(op):
    def operation(r, input):
        a = r.lift(input, "f32")
        if r.is_mask:
            refuse(f"computes {op} of a number in a mask, whose regions have arithmetic and comparisons only", "compare without it: x * x < 9 for x.sqrt() < 3")
        return r.add(f"math.{op} {a.name} : f32", "f32")
    return operation


_exp, _expm1, _floor, _log, _log1p = (of_math(op) for op in ("exp", "expm1", "floor", "log", "log1p"))


def trunc(r, input):
    a = r.lift(input)
    if a.kind != "f32":
        return a
    if r.is_mask:  # from 2^31 on every f32 is whole
        return where(r, lt(r, absolute(r, a), 2.0**31), r.lift(a, "i32"), a)
    return where(r, lt(r, a, 0.0), ceil(r, a), _floor(r, a))


def floor(r, input):
    a = r.lift(input)
    if a.kind != "f32":
        return a
    if not r.is_mask:
        return _floor(r, a)
    whole = trunc(r, a)
    return where(r, lt(r, a, whole), minus(r, whole, 1.0), whole)


def ceil(r, input):
    a = r.lift(input)
    return neg(r, floor(r, neg(r, a))) if a.kind == "f32" else a


def round_(r, input):
    """To the nearest, halves to the even one."""
    a = r.lift(input)
    if a.kind != "f32":
        return a
    low = floor(r, a)
    over = minus(r, a, low)
    is_odd = ne(r, times(r, floor(r, times(r, low, 0.5)), 2.0), low)
    goes_up = or_(r, gt(r, over, 0.5), and_(r, eq(r, over, 0.5), is_odd))
    return where(r, goes_up, plus(r, low, 1.0), low)


def square(r, input):
    return times(r, input, input)


def pow_(r, input, exponent):
    a, e = number(input), number(exponent)
    kind = common(a, e)
    if not isinstance(e, Symbol) and e in ((1, 2, 3) if kind == "f32" else range(32)):
        a, power = r.lift(a, kind), r.constant(1, kind)
        for _ in range(int(e)):
            power = times(r, power, a)
        return power
    if kind != "f32":
        is_shift = not isinstance(a, Symbol) and a == 2
        return lshift(r, 1, e) if is_shift else refuse("computes a power of ints", "use a literal exponent from 0 to 31, 2 ** n, or floats")
    if r.is_mask:
        refuse("computes a power of floats in a mask, whose regions have arithmetic and comparisons only", "use literal exponents 1, 2 and 3")
    a, e = r.lift(a, kind), r.lift(e, kind)
    return r.add(f"math.powf {a.name}, {e.name} : f32", kind)


# ---------------------------------------------------------------- division
def truediv(r, input, other):
    a, b = r.lift(input, "f32"), r.lift(other, "f32")
    return emit(r, "divf", a, b)


def _quotient(r, a, b, op):
    """Of ints. By a position too: what is divided by 0 gives 0, so a % 0 is a; dividing by -1 multiplies, as -2^31 has no quotient."""
    b = number(b)
    if not isinstance(b, Symbol) and b == 0:
        refuse("divides by 0")
    a = r.lift(a, "i32")
    if not isinstance(b, Symbol) and b != -1:
        return emit(r, op, a, r.lift(b, "i32"))
    b = r.lift(b, "i32")
    is_odd = or_(r, eq(r, b, 0), eq(r, b, -1))
    product, quotient = times(r, a, b), emit(r, op, a, where(r, is_odd, 1, b))
    return where(r, is_odd, product, quotient)


def _rounded_quotient(r, input, other, op, rounding):
    a, b = number(input), number(other)
    if common(a, b) == "f32":
        return rounding(r, truediv(r, a, b))
    return _quotient(r, a, b, op)


def floor_divide(r, input, other):
    return _rounded_quotient(r, input, other, "floordivsi", floor)


def div(r, input, other, *, rounding_mode=None):
    if rounding_mode is None:
        return truediv(r, input, other)
    if rounding_mode == "floor":
        return floor_divide(r, input, other)
    if rounding_mode != "trunc":
        refuse(f"divides with rounding_mode={rounding_mode!r}", "expected None, 'floor' or 'trunc'")
    return _rounded_quotient(r, input, other, "divsi", trunc)


def remainder(r, input, other):
    return minus(r, input, times(r, floor_divide(r, input, other), other))


def fmod(r, input, other):
    return minus(r, input, times(r, div(r, input, other, rounding_mode="trunc"), other))


def divmod_(r, input, other):
    quotient = floor_divide(r, input, other)
    return quotient, minus(r, input, times(r, quotient, other))


# ---------------------------------------------------------------- functions of scores
def reciprocal(r, input):
    return truediv(r, 1.0, input)


def _decay(r, a):
    """exp(-|a|), which no score overflows."""
    return _exp(r, neg(r, absolute(r, a)))


def sigmoid(r, input):
    a = r.lift(input, "f32")
    decay = _decay(r, a)
    return truediv(r, where(r, lt(r, a, 0.0), decay, 1.0), plus(r, decay, 1.0))


def logsigmoid(r, input):
    a = r.lift(input, "f32")
    return minus(r, where(r, lt(r, a, 0.0), a, 0.0), _log1p(r, _decay(r, a)))


def softplus(r, input, beta=1.0, threshold=20.0):
    scaled = times(r, r.lift(input, "f32"), float(beta))
    return where(r, gt(r, scaled, float(threshold)), input, truediv(r, _log1p(r, _exp(r, scaled)), float(beta)))


def relu(r, input, inplace=False):
    a = r.lift(input)
    return where(r, le(r, a, 0), 0.0 if a.kind == "f32" else 0, a)


def leaky_relu(r, input, negative_slope=0.01, inplace=False):
    return where(r, gt(r, input, 0), input, times(r, input, float(negative_slope)))


def elu(r, input, alpha=1.0, inplace=False):
    a = r.lift(input, "f32")
    return where(r, gt(r, a, 0.0), a, times(r, _expm1(r, a), float(alpha)))


def silu(r, input, inplace=False):
    return times(r, input, sigmoid(r, input))


def gelu(r, input, *, approximate="none"):
    a = r.lift(input, "f32")
    if approximate == "tanh":
        inner = times(r, plus(r, a, times(r, pow_(r, a, 3), 0.044715)), math.sqrt(2 / math.pi))
        near = of_math("tanh")(r, inner)
    else:
        near = of_math("erf")(r, times(r, a, math.sqrt(0.5)))
    return times(r, times(r, a, 0.5), plus(r, near, 1.0))


def log10(r, input):
    return times(r, _log(r, input), 1 / math.log(10))


def tan(r, input):
    return truediv(r, of_math("sin")(r, input), of_math("cos")(r, input))
