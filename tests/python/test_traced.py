"""Traced functions without PyTorch: every operator and method against Python's ints and floats, random functions, and what is refused
where."""
import functools
import math
import operator
import random

import heddle
import pytest
from heddle.words import predicate, score_map

np = pytest.importorskip("numpy")
import traced  # noqa: E402

N = 12
I32 = 2**31


def positions(heads, batch=1):
    return np.ndindex(batch, heads, N, N)


def check_masks(pairs):
    """pairs: name -> (function of symbols, function of ints)."""
    got = traced.kept([function for function, _ in pairs.values()], N)
    expected = np.zeros(got.shape, bool)
    references = [reference for _, reference in pairs.values()]
    for b, h, q, k in positions(len(pairs)):
        expected[b, h, q, k] = references[h](b, h, q, k)
    assert traced.names_of_unequal(list(pairs), got == expected) == []


def check_scores(pairs, tolerance=2e-5):
    scores = np.random.default_rng(0).uniform(-3, 3, (1, len(pairs), N, N)).astype(np.float32)
    got = traced.changed([function for function, _ in pairs.values()], scores)
    expected = np.zeros(got.shape)
    references = [reference for _, reference in pairs.values()]
    for b, h, q, k in positions(len(pairs)):
        expected[b, h, q, k] = references[h](float(scores[b, h, q, k]), b, h, q, k)
    assert traced.names_of_unequal(list(pairs), np.isclose(got, expected, rtol=tolerance, atol=tolerance)) == []


# ---------------------------------------------------------------- operators: one function for symbols and ints
OPERATORS = {
    "arithmetic": lambda b, h, q, k: 3 * q - k + 2 > q + 1 * k,
    "compare": lambda b, h, q, k: (q < k) | (q == k) ^ (q != 3) & (k <= 4) | (q >= 9) & (k > 2),
    "reflected": lambda b, h, q, k: (5 - q < 7 * k) & (11 // (k + 1) < q + 3) & (100 % (q + 1) > 2),
    "negative": lambda b, h, q, k: -q + k > -3,
    "absolute": lambda b, h, q, k: abs(q - k) < 4,
    "floor of negative": lambda b, h, q, k: (q - 7) // 3 == (k - 5) // 4,
    "remainder of negative": lambda b, h, q, k: (q - 7) % 3 == (k - 5) % 4,
    "negative divisors": lambda b, h, q, k: (q - 7) // -3 + (q - 7) % -3 > (k - 5) // -1,
    "by a position": lambda b, h, q, k: (q - 6) // (k + 1) == (q - 6) % (k + 1) - 1,
    "by a negative position": lambda b, h, q, k: (q - 6) // (k - 12) == (q - 6) % (k - 12) + 3,
    "bits": lambda b, h, q, k: (q & 5 | k & 3) ^ (q & k) > 3,
    "complement": lambda b, h, q, k: ~q + 9 > ~(k - 20),
    "shifts": lambda b, h, q, k: (q << 2) - (100 - k >> 3) > 1 << (k & 3),
    "shifts by positions": lambda b, h, q, k: (3 << q) > (50000 >> k),
    "powers": lambda b, h, q, k: (q - 4) ** 3 > 2 ** k - k ** 2,
    "truths as numbers": lambda b, h, q, k: (q > k) * 3 + 1 > (k & 3),
    "truths": lambda b, h, q, k: ~(q > k) & True | (k > 8) ^ False,
    "far bounds": lambda b, h, q, k: (q < 2**40) & (k > -2**63) & ~(q == 2**31) & (-2**40 < k) | (q > k + 2**20),
    "fractions": lambda b, h, q, k: q / 3 > k * 0.5 + 0.25,
    "a bound that is a fraction": lambda b, h, q, k: q - k < 2.5,
    "divmod": lambda b, h, q, k: divmod(q, 5)[0] * 2 > divmod(k, 3)[1],
}


def as_truth(function):
    return lambda *positions: bool(function(*positions) & 1)


@pytest.mark.compiler
def test_operators_mean_what_pythons_do():
    truths = {"complement", "truths"}  # ~True is -2 of Python's ints
    check_masks({name: (each, as_truth(each) if name in truths else each) for name, each in OPERATORS.items()})


def ratio(a, b):
    return a / b if b else math.copysign(math.inf, a) if a else math.nan


def whole(rounding, x):
    return rounding(x) if math.isfinite(x) else x


METHODS = {
    "clamp": (lambda b, h, q, k: q.clamp(2, 7) > k.clamp(min=3), lambda b, h, q, k: min(max(q, 2), 7) > max(k, 3)),
    "clip": (lambda b, h, q, k: q.clip(max=5) >= k.clamp_max(2**40).clamp_min(4), lambda b, h, q, k: min(q, 5) >= max(k, 4)),
    "clamp to positions": (lambda b, h, q, k: q.clamp(k - 2, k + 1) == q, lambda b, h, q, k: min(max(q, k - 2), k + 1) == q),
    "clamp to a fraction": (lambda b, h, q, k: q.clamp(min=4.5) > k, lambda b, h, q, k: max(q, 4.5) > k),
    "extremes": (lambda b, h, q, k: q.maximum(k) - q.min(k) < 3, lambda b, h, q, k: abs(q - k) < 3),
    "sign": (lambda b, h, q, k: (q - k).sign() + 1 == k.sign() * 2, lambda b, h, q, k: (q > k) - (q < k) + 1 == 2 * (k > 0)),
    "div": (lambda b, h, q, k: (q - 6).div(4, rounding_mode="trunc") == (k - 6).div(3, rounding_mode="floor"),
            lambda b, h, q, k: int((q - 6) / 4) == (k - 6) // 3),
    "trunc by a position": (lambda b, h, q, k: (q - 6).div(k - 20, rounding_mode="trunc") + 1 == (k > 9), lambda b, h, q, k: int((q - 6) / (k - 20)) + 1 == (k > 9)),
    "fmod": (lambda b, h, q, k: (q - 6).fmod(4) > (k - 6).remainder(3) - 2, lambda b, h, q, k: math.fmod(q - 6, 4) > (k - 6) % 3 - 2),
    "by zero": (lambda b, h, q, k: (q // (k - k) == 0) & (q % (k - k) == q) & (k > q), lambda b, h, q, k: k > q),
    "shifts beyond": (lambda b, h, q, k: ((q << 40) + (q << k - k - 1) == 0) & ((-q >> 99) == (-q >> k - k + 32)) & ((-q >> 32) + 1 == k),
                      lambda b, h, q, k: (-1 if q else 0) + 1 == k),
    "logical": (lambda b, h, q, k: q.logical_and(k).logical_xor(q > 5).logical_or(k.logical_not()), lambda b, h, q, k: (bool(q and k) ^ (q > 5)) or not k),
    "bitwise": (lambda b, h, q, k: q.bitwise_and(6).bitwise_or(k).bitwise_xor(3).bitwise_not().bitwise_left_shift(1).bitwise_right_shift(2) > -3,
                lambda b, h, q, k: ~((q & 6 | k) ^ 3) << 1 >> 2 > -3),
    "compare": (lambda b, h, q, k: q.lt(k) & k.ge(3) | q.eq(k).ne(q.le(2)) & k.gt(5), lambda b, h, q, k: q < k and k >= 3 or ((q == k) != (q <= 2)) and k > 5),
    "sum of truths": (lambda b, h, q, k: (q > k) + (k > 3) == (q > 2) * (q < 9), lambda b, h, q, k: (q > k or k > 3) == (2 < q < 9)),
    "where": (lambda b, h, q, k: q.where(q > 4, k) > k.masked_fill(q < 3, 7) - 2, lambda b, h, q, k: (q if q > 4 else k) > (7 if q < 3 else k) - 2),
    "casts": (lambda b, h, q, k: ((q.float() / 4).int() == k.long()) | (q.bool() & (k / 2).bool()), lambda b, h, q, k: q // 4 == k or bool(q and k)),
    "new": (lambda b, h, q, k: b.new_full((), 3) + b.new_ones(()) + b.new_zeros(size=()) > q, lambda b, h, q, k: q < 4),
    "rounding": (lambda b, h, q, k: ((q - 6) / 4).floor() + ((q - 5) / 4).ceil() + ((k - 6) / 4).trunc() > ((k - 6) / 4).round(),
                 lambda b, h, q, k: math.floor((q - 6) / 4) + math.ceil((q - 5) / 4) + math.trunc((k - 6) / 4) > round((k - 6) / 4)),
    "float division": (lambda b, h, q, k: (q - 6) // 2.5 + (k - 6) % 2.5 > 0, lambda b, h, q, k: (q - 6) // 2.5 + (k - 6) % 2.5 > 0),
    "fractions of zero": (lambda b, h, q, k: ((q - 6) / k).floor() > (k / (q - 6)).round(),
                          lambda b, h, q, k: math.nan not in (ratio(q - 6, k), ratio(k, q - 6)) and whole(math.floor, ratio(q - 6, k)) > whole(round, ratio(k, q - 6))),
    "ints of what is none": (lambda b, h, q, k: (q / (k - k)).int() == k, lambda b, h, q, k: k == 0),
    "square": (lambda b, h, q, k: q.square() > (k / 2).pow(3).abs(), lambda b, h, q, k: q * q > (k / 2) ** 3),
    "numpy": (lambda b, h, q, k: np.minimum(q, 7) + np.int64(2) > np.floor_divide(np.int32(20), k + 1) * np.abs(-k), lambda b, h, q, k: min(q, 7) + 2 > 20 // (k + 1) * k),
    "numpy compares": (lambda b, h, q, k: (np.int64(5) > q) | np.equal(np.int64(7), q) & np.bool_(True), lambda b, h, q, k: q < 5 or q == 7),
}


@pytest.mark.compiler
def test_methods_mean_what_pytorchs_do():
    check_masks(METHODS)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


SCORES = {
    "arithmetic": (lambda s, b, h, q, k: (2 - s) * 3 + s / 4 - -s + q - 0.5 * k, lambda s, b, h, q, k: (2 - s) * 3 + s / 4 + s + q - 0.5 * k),
    "of positions alone": (lambda s, b, h, q, k: (q - k) // 2, lambda s, b, h, q, k: (q - k) // 2),
    "exponentials": (lambda s, b, h, q, k: s.exp() + s.exp2() + s.expm1(), lambda s, b, h, q, k: 2 * math.exp(s) + 2**s - 1),
    "logarithms": (lambda s, b, h, q, k: s.abs().log() + s.abs().log2() + s.abs().log1p() + s.abs().log10(),
                   lambda s, b, h, q, k: math.log(abs(s)) + math.log2(abs(s)) + math.log1p(abs(s)) + math.log10(abs(s))),
    "periodic": (lambda s, b, h, q, k: s.sin() + s.cos() + (s / 4).tan() + s.tanh(), lambda s, b, h, q, k: math.sin(s) + math.cos(s) + math.tan(s / 4) + math.tanh(s)),
    "roots": (lambda s, b, h, q, k: (s * s).sqrt() + (s * s + 1).rsqrt() + (s * s + 1) ** 0.5 + (s * s + 1).reciprocal(),
              lambda s, b, h, q, k: abs(s) + (s * s + 1)**-0.5 + (s * s + 1)**0.5 + 1 / (s * s + 1)),
    "powers": (lambda s, b, h, q, k: s**2 + s**3 + abs(s)**1.5 + 2.0**s + s**1, lambda s, b, h, q, k: s * s + s**3 + abs(s)**1.5 + 2**s + s),
    "sigmoid": (lambda s, b, h, q, k: s.sigmoid() + (s * 5).sigmoid().log(), lambda s, b, h, q, k: sigmoid(s) + math.log(sigmoid(5 * s))),
    "relu": (lambda s, b, h, q, k: s.relu() + s.sign() + q.relu(), lambda s, b, h, q, k: max(s, 0) + (s > 0) - (s < 0) + q),
    "rounding": (lambda s, b, h, q, k: s.floor() + s.ceil() / 8 + s.trunc() / 64 + (s / 2 + k).round() / 4,
                 lambda s, b, h, q, k: math.floor(s) + math.ceil(s) / 8 + math.trunc(s) / 64 + round(s / 2 + k) / 4),
    "half to even": (lambda s, b, h, q, k: (q / 2 - 3).round(), lambda s, b, h, q, k: round(q / 2 - 3)),
    "extremes": (lambda s, b, h, q, k: s.clamp(-1, 2) + s.maximum(q) - s.minimum(0.5), lambda s, b, h, q, k: min(max(s, -1), 2) + max(s, q) - min(s, 0.5)),
    "division": (lambda s, b, h, q, k: s // 0.7 + s.fmod(0.7), lambda s, b, h, q, k: s // 0.7 + math.fmod(s, 0.7)),
    "masks": (lambda s, b, h, q, k: s.where(q >= k, -math.inf), lambda s, b, h, q, k: s if q >= k else -math.inf),
    "masks by fills": (lambda s, b, h, q, k: s.masked_fill(q < k, -1e300), lambda s, b, h, q, k: s if q >= k else -math.inf),
    "slopes": (lambda s, b, h, q, k: s + (k - q) * (-(h + 1) * 0.05).exp2(), lambda s, b, h, q, k: s + (k - q) * 2 ** (-(h + 1) * 0.05)),
    "constants": (lambda s, b, h, q, k: s * math.pi + s.new_full((), math.e), lambda s, b, h, q, k: s * math.pi + math.e),
}


@pytest.mark.compiler
def test_functions_of_scores():
    check_scores(SCORES)


# ---------------------------------------------------------------- random functions
def wrapped(value):
    return (value + I32) % (2 * I32) - I32


def quotient(a, b):
    return wrapped(a // b) if b else 0


INTS = {"add": (operator.add, 2), "sub": (operator.sub, 2), "mul": (operator.mul, 2), "and": (operator.and_, 2), "or": (operator.or_, 2),
        "xor": (operator.xor, 2), "neg": (operator.neg, 1), "invert": (operator.invert, 1), "abs": (abs, 1), "floordiv": (operator.floordiv, 2),
        "mod": (operator.mod, 2), "lshift": (operator.lshift, 2), "rshift": (operator.rshift, 2), "maximum": (lambda a, b: a.maximum(b), 2),
        "minimum": (lambda a, b: a.minimum(b), 2), "where": (lambda c, a, b: a.where(c, b), 3)}
OF_INTS = dict({name: function for name, (function, _) in INTS.items()}, maximum=max, minimum=min, where=lambda c, a, b: a if c else b, floordiv=quotient,
               mod=lambda a, b: a - quotient(a, b) * b, lshift=lambda a, b: a << b if 0 <= b < 32 else 0, rshift=lambda a, b: a >> (b if 0 <= b < 32 else 31))
COMPARE = [getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")]
TRUTHS = [operator.and_, operator.or_, operator.xor]


def random_int(pick, depth):
    """(what it is, parts)."""
    if depth == 0 or pick.random() < 0.15:
        return ("constant", pick.choice((-7, -1, 1, 2, 3, 5, 64, 1000))) if pick.random() < 0.3 else ("position", pick.randrange(2))
    name = pick.choice(list(INTS))
    if name == "where":
        return name, random_truth(pick, depth - 1), ("symbol", random_int(pick, depth - 1)), random_int(pick, depth - 1)
    parts = [random_int(pick, depth - 1) for _ in range(INTS[name][1])]
    return (name, ("symbol", parts[0]), *parts[1:])


def random_truth(pick, depth):
    if depth == 0 or pick.random() < 0.5:
        return "compare", pick.randrange(6), ("symbol", random_int(pick, max(depth - 1, 0))), random_int(pick, max(depth - 1, 0))
    if pick.random() < 0.2:
        return "not", random_truth(pick, depth - 1)
    return "truths", pick.randrange(3), random_truth(pick, depth - 1), random_truth(pick, depth - 1)


def value(tree, ints, at):
    """Of symbols with `ints` None, else of ints with the functions in `ints`. A first part is made a symbol: constants have no methods."""
    what, *parts = tree
    if what == "constant":
        return parts[0]
    if what == "position":
        return at[parts[0]]
    if what == "symbol":
        inner = value(parts[0], ints, at)
        return inner + (at[0] - at[0]) if parts[0][0] == "constant" else inner
    if what == "compare":
        return COMPARE[parts[0]](*(value(each, ints, at) for each in parts[1:]))
    if what == "not":
        inner = value(parts[0], ints, at)
        return ~inner if ints is None else not inner
    if what == "truths":
        return TRUTHS[parts[0]](*(value(each, ints, at) for each in parts[1:]))
    operands = [value(each, ints, at) for each in parts]
    return INTS[what][0](*operands) if ints is None else wrapped(ints[what](*operands))


@pytest.mark.compiler
@pytest.mark.parametrize("seed", range(4))
def test_random_masks(seed):
    pick = random.Random(seed)
    trees = [random_truth(pick, 4) for _ in range(50)]
    check_masks({str(tree): (lambda b, h, q, k, tree=tree: value(tree, None, (q, k)), lambda b, h, q, k, tree=tree: value(tree, OF_INTS, (q, k)))
                 for tree in trees})


FLOATS = [(lambda x, y: x + y, lambda x, y: x + y), (lambda x, y: x - y, lambda x, y: x - y), (lambda x, y: x * 0.5 * y.tanh(), lambda x, y: x * 0.5 * math.tanh(y)),
          (lambda x, y: x.maximum(y), max), (lambda x, y: x.minimum(y), min), (lambda x, y: (-x.abs()).exp() + y, lambda x, y: math.exp(-abs(x)) + y),
          (lambda x, y: x.sigmoid() - y, lambda x, y: sigmoid(x) - y), (lambda x, y: x / (y * y + 1), lambda x, y: x / (y * y + 1)),
          (lambda x, y: x.clamp(-2, 2) + y.square() * 0.25, lambda x, y: min(max(x, -2), 2) + y * y * 0.25)]


def random_score(pick, depth):
    if depth == 0:
        return ("score",) if pick.random() < 0.6 else ("int", random_int(pick, 1))
    if pick.random() < 0.2:
        return "choice", random_truth(pick, 2), random_score(pick, depth - 1), random_score(pick, depth - 1)
    return "function", pick.randrange(len(FLOATS)), random_score(pick, depth - 1), random_score(pick, depth - 1)


def score_of(tree, ints, s, at):
    what, *parts = tree
    if what == "score":
        return s
    if what == "int":  # tanh keeps scores where f32 tells weights apart
        inner = value(("symbol", parts[0]), ints, at)
        return (inner * 0.01).tanh() if ints is None else math.tanh(inner * 0.01)
    if what == "choice":
        condition = value(parts[0], ints, at)
        yes, no = (score_of(each, ints, s, at) for each in parts[1:])
        return yes.where(condition, no) if ints is None else yes if condition else no
    return FLOATS[parts[0]][0 if ints is None else 1](*(score_of(each, ints, s, at) for each in parts[1:]))


@pytest.mark.compiler
@pytest.mark.parametrize("seed", range(2))
def test_random_scores(seed):
    pick = random.Random(seed)
    trees = [random_score(pick, 3) for _ in range(50)]
    check_scores({str(tree): (lambda s, b, h, q, k, tree=tree: score_of(tree, None, s, (q, k)), lambda s, b, h, q, k, tree=tree: score_of(tree, OF_INTS, s, (q, k)))
                  for tree in trees}, 1e-4)


# ---------------------------------------------------------------- refusals
def of_a_branch(b, h, q, k):
    return (q >= k) & (
        k > 3 if q > 5 else k > 2)


def deeper(q):
    return int(q) + 1


def of_a_helper(b, h, q, k):
    return deeper(q) > k


def of_a_write(b, h, q, k):
    q[0] = 3
    return q > k


REFUSED = {
    "branch": (of_a_branch, 2, "of_a_branch", "needs the truth of a position or a score"),
    "chain": (lambda b, h, q, k: 0 < q < k, 0, "<lambda>", "use &, |, ~, torch.where"),
    "max": (lambda b, h, q, k: max(q, 3) > k, 0, "<lambda>", "torch.minimum and torch.maximum"),
    "in": (lambda b, h, q, k: q in (1, 2), 0, "<lambda>", "needs the truth"),
    "helper": (of_a_helper, -3, "deeper", "asks for the value of a position or a score"),
    "index": (lambda b, h, q, k: [True] * 50 == [True][q], 0, "<lambda>", "asks for the value"),
    "math": (lambda b, h, q, k: math.exp(q) > 3, 0, "<lambda>", "torch functions take symbols, those of math, lists and print do not"),
    "text": (lambda b, h, q, k: f"{q}" == "3", 0, "<lambda>", "asks for the value"),
    "item": (lambda b, h, q, k: q.item() > 3, 0, "<lambda>", "asks for the value"),
    "write": (of_a_write, 1, "of_a_write", "writes into a position, a score or a tensor"),
    "in place": (lambda b, h, q, k: q.add_(3) > k, 0, "<lambda>", "writes into"),
    "array": (lambda b, h, q, k: q > np.arange(4), 0, "<lambda>", "reads ndarray of [4]"),
    "text constant": (lambda b, h, q, k: q > "x", 0, "<lambda>", "reads str"),
    "number as a mask": (lambda b, h, q, k: q & 1, 0, "<lambda>", "returns a number where a mask says yes or no; compare it"),
    "int as a mask": (lambda b, h, q, k: 1, 0, "<lambda>", "returns a number where a mask says yes or no"),
    "division by 0": (lambda b, h, q, k: q // 0 == k, 0, "<lambda>", "divides by 0"),
    "beyond 32 bits": (lambda b, h, q, k: q + 2**31 > k, 0, "<lambda>", "computes with 2147483648, which 32 bits do not hold"),
    "negated truth": (lambda b, h, q, k: -(q > k), 0, "<lambda>", "negates a truth"),
    "difference of truths": (lambda b, h, q, k: (q > k) - (k > q), 0, "<lambda>", "a difference of two truths, which PyTorch refuses too"),
    "bits of floats": (lambda b, h, q, k: q / 2 & 1, 0, "<lambda>", "computes & of two floats"),
    "math in a mask": (lambda b, h, q, k: q.sqrt() < 3, 0, "<lambda>", "computes sqrt of a number in a mask"),
    "unknown method": (lambda b, h, q, k: q.cumsum(0) > 3, 0, "<lambda>", "asks a position or a score for .cumsum"),
    "unknown ufunc": (lambda b, h, q, k: np.gcd(q, k) > 3, 0, "<lambda>", "calls gcd, which regions do not have"),
    "arguments": (lambda b, h, q, k: q.clamp(1, 2, 3) > 1, 0, "<lambda>", "calls clamp with arguments that it does not take here"),
    "shape": (lambda b, h, q, k: q.new_ones(3) > 0, 0, "<lambda>", "makes a tensor of 3; positions and scores have the shape ()"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_refused_by_name_and_line(name):
    function, offset, called, message = REFUSED[name]
    with pytest.raises(heddle.UnsupportedError) as raised:
        predicate(function)
    assert str(raised.value).startswith(f"{__file__}:{function.__code__.co_firstlineno + offset}: in {called}: a traced function ")
    assert message in str(raised.value)


@pytest.mark.parametrize("change, message", [
    (lambda s, b, h, q, k: s.int(), "makes an int of a score or a fraction, which attn.score_map cannot; torch.floor"),
    (lambda s, b, h, q, k: s + math.inf, "makes a number of inf, as which a score has no weight; -inf is a key that is not kept"),
    (lambda s, b, h, q, k: s + math.nan, "makes a number of nan"),
    (lambda s, b, h, q, k: s + q**k, "computes a power of ints; use a literal exponent from 0 to 31, 2 ** n, or floats"),
])
def test_what_scores_refuse(change, message):
    with pytest.raises(heddle.UnsupportedError) as raised:
        score_map(change)
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"{__file__}:{change.__code__.co_firstlineno}: in <lambda>: ")


@pytest.mark.parametrize("keep, what", [(lambda b, h, q, k: None, "NoneType"), (lambda b, h, q, k: [q > k], "list"), (lambda b, h, q, k: np.ones(3), "ndarray")])
def test_functions_without_a_result(keep, what):
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        predicate(keep)
    assert str(raised.value) == f"{__file__}:{keep.__code__.co_firstlineno}: in <lambda>: predicate: expected a function of symbols, its result is {what}"


def test_symbols_are_of_one_call():
    kept = []
    predicate(lambda b, h, q, k: kept.append(q) or q > k)
    with pytest.raises(heddle.UnsupportedError, match=r"test_traced.py:\d+: in <lambda>: a traced function keeps a position or a score of another call"):
        predicate(lambda b, h, q, k: kept[0] > k)


def test_symbols_are_keys_as_tensors_are():
    halves = functools.lru_cache(lambda at: at // 2)
    for _ in range(2):
        assert predicate(lambda b, h, q, k: halves(q) == halves(k)) == predicate(lambda b, h, q, k: q // 2 == k // 2)
