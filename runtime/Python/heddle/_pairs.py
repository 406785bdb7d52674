"""Operations of traced functions on two numbers: arithmetic, comparisons, bits and choices, as PyTorch's on bool, int and float tensors.

Every operation, here and in _functions.py and _operations.py, takes the region, then symbols and numbers in PyTorch's order, under
PyTorch's names of arguments. Kinds are promoted as PyTorch does: bool, then 32-bit ints, then f32.
"""
import operator

from ._symbols import Symbol, kind_of, number, refuse

_RANK = {"i1": 0, "i32": 1, "f32": 2}
_COMPARE = {"lt": ("slt", "olt"), "le": ("sle", "ole"), "gt": ("sgt", "ogt"), "ge": ("sge", "oge"), "eq": ("eq", "oeq"), "ne": ("ne", "une")}


# ---------------------------------------------------------------- pairs of numbers
def common(*values):
    return max((kind_of(value) for value in values), key=_RANK.__getitem__)


def emit(r, op, *symbols):
    return r.add(f"arith.{op} " + ", ".join(each.name for each in symbols) + f" : {symbols[0].kind}", symbols[0].kind)


def _binary(name, ints, floats, bools):
    """Of two numbers of one kind; None: PyTorch does not do it either."""
    def operation(r, input, other):
        a, b = number(input), number(other)
        kind = common(a, b)
        op = {"i1": bools, "i32": ints, "f32": floats}[kind]
        if op is None:
            refuse(f"computes {name} of two {'floats' if kind == 'f32' else 'truths'}, which PyTorch refuses too")
        return emit(r, op, r.lift(a, kind), r.lift(b, kind))
    return operation


plus = _binary("a sum", "addi", "addf", "ori")
minus = _binary("a difference", "subi", "subf", None)
times = _binary("a product", "muli", "mulf", "andi")
and_ = _binary("&", "andi", None, "andi")
or_ = _binary("|", "ori", None, "ori")
xor_ = _binary("^", "xori", None, "xori")


def add(r, input, other, *, alpha=1):
    return plus(r, input, other if alpha == 1 else times(r, other, alpha))


def sub(r, input, other, *, alpha=1):
    return minus(r, input, other if alpha == 1 else times(r, other, alpha))


def rsub(r, input, other, *, alpha=1):
    return sub(r, other, input, alpha=alpha)


def _inside(value, kind):
    """An int beyond 32 bits bounds nothing there: the nearest that there is."""
    return min(max(value, -2**31), 2**31 - 1) if kind == "i32" and not isinstance(value, Symbol) else value


def _extreme(ints, floats, bools):
    def operation(r, input, other):
        a, b = number(input), number(other)
        kind = common(a, b)
        return emit(r, {"i1": bools, "i32": ints, "f32": floats}[kind], r.lift(_inside(a, kind), kind), r.lift(_inside(b, kind), kind))
    return operation


maximum, minimum = _extreme("maxsi", "maximumf", "ori"), _extreme("minsi", "minimumf", "andi")


def clamp(r, input, min=None, max=None):
    input = input if min is None else maximum(r, input, min)
    return r.lift(input if max is None else minimum(r, input, max))


def clamp_min(r, input, min):
    return clamp(r, input, min)


def clamp_max(r, input, max):
    return clamp(r, input, None, max)


def _compare(name):
    ints, floats = _COMPARE[name]

    def operation(r, input, other):
        a, b = number(input), number(other)
        for one, two, far in ((0, b, b), (a, 0, a)):
            if type(far) is int and not -2**31 <= far < 2**31 and common(a, b) != "f32":  # farther than any position
                return r.constant(getattr(operator, name)(one, two), "i1")
        kind = "f32" if common(a, b) == "f32" else "i32"
        a, b = r.lift(a, kind), r.lift(b, kind)
        return r.add(f"arith.{f'cmpf {floats}' if kind == 'f32' else f'cmpi {ints}'}, {a.name}, {b.name} : {kind}", "i1")
    return operation


lt, le, gt, ge, eq, ne = (_compare(name) for name in _COMPARE)


# ---------------------------------------------------------------- bits and truths
def _shift(op, beyond):
    """By less than 0 or more than 31: what is left when all bits are gone, as in PyTorch."""
    def operation(r, input, other):
        a, by = number(input), number(other)
        if common(a, by) == "f32":
            refuse("shifts floats, which PyTorch refuses too")
        a = r.lift(a, "i32")
        if not isinstance(by, Symbol):
            return emit(r, op, a, r.lift(by, "i32")) if 0 <= by < 32 else beyond(r, a)
        by = r.lift(by, "i32")
        is_inside = r.add(f"arith.cmpi ult, {by.name}, {r.constant(32, 'i32').name} : i32", "i1")
        return where(r, is_inside, emit(r, op, a, where(r, is_inside, by, 0)), beyond(r, a))
    return operation


lshift = _shift("shli", lambda r, a: r.constant(0, "i32"))
rshift = _shift("shrsi", lambda r, a: emit(r, "shrsi", a, r.constant(31, "i32")))


def invert(r, input):
    a = r.lift(input)
    return xor_(r, a, True if a.kind == "i1" else -1)


def of_truths(op):
    return lambda r, input, other: op(r, r.lift(input, "i1"), r.lift(other, "i1"))


def logical_not(r, input):
    return invert(r, r.lift(input, "i1"))


def where(r, condition, input, other):
    condition = number(condition)
    if kind_of(condition) != "i1":
        refuse("chooses by something that is no comparison")
    a, b = number(input), number(other)
    kind = common(a, b)
    condition, a, b = r.lift(condition), r.lift(a, kind), r.lift(b, kind)
    return r.add(f"arith.select {condition.name}, {a.name}, {b.name} : {kind}", kind)


def where_of(r, input, condition, other):
    return where(r, condition, input, other)


def masked_fill(r, input, mask, value):
    return r.lift(where(r, mask, value, input), kind_of(number(input)))
