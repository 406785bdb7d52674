"""The table of the operations of traced functions, by the names that Python, PyTorch and numpy have for them, and those that change the
kind of a number.
"""
from . import _functions as functions
from . import _pairs as pairs
from ._symbols import Symbol, kind_of, kind_of_dtype, number, refuse


# ---------------------------------------------------------------- kinds, and constants beside a symbol
def cast(r, input, *to, dtype=None, **_):
    """.to: a dtype, another symbol or tensor, whose dtype counts, or a device, which does nothing."""
    for each in (dtype, *to):
        if isinstance(each, Symbol):
            return r.lift(input, each.kind)
        like = getattr(each, "dtype", each)
        if str(like).startswith("torch."):
            return r.lift(input, kind_of_dtype(like))
    return r.lift(input)


def _cast_to(kind):
    return lambda r, input: r.lift(input, kind)


def same(r, input, **_):
    return r.lift(input)


def new_full(r, input, size, fill_value, *, dtype=None, **_):
    if tuple(size if hasattr(size, "__iter__") else (size,)) != ():
        refuse(f"makes a tensor of {size}", "positions and scores have the shape ()")
    return full_like(r, input, fill_value, dtype=dtype)


def full_like(r, input, fill_value, *, dtype=None, **_):
    return r.lift(number(fill_value), kind_of(number(input)) if dtype is None else kind_of_dtype(dtype))


def _filled(make, value):
    """ones_like(input) and new_ones(input, size) of full_like and new_full."""
    return lambda r, input, *size, **named: make(r, input, *size, *([named.pop("size")] if "size" in named else []), value, **named)


# ---------------------------------------------------------------- the table
_ROWS = (
    ("add", pairs.add), ("sub subtract", pairs.sub), ("rsub", pairs.rsub), ("mul multiply", pairs.times), ("square", functions.square),
    ("truediv true_divide", functions.truediv), ("div divide", functions.div), ("floordiv floor_divide", functions.floor_divide),
    ("mod remainder", functions.remainder), ("fmod", functions.fmod), ("divmod", functions.divmod_), ("pow power", functions.pow_),
    ("neg negative", functions.neg), ("pos positive clone contiguous", same), ("abs absolute fabs", functions.absolute), ("sign sgn", functions.sign),
    ("maximum max fmax", pairs.maximum), ("minimum min fmin", pairs.minimum), ("clamp clip", pairs.clamp), ("clamp_min", pairs.clamp_min),
    ("clamp_max", pairs.clamp_max), ("lt less", pairs.lt), ("le less_equal", pairs.le), ("gt greater", pairs.gt), ("ge greater_equal", pairs.ge),
    ("eq equal", pairs.eq), ("ne not_equal", pairs.ne), ("and bitwise_and", pairs.and_), ("or bitwise_or", pairs.or_), ("xor bitwise_xor", pairs.xor_),
    ("invert bitwise_not", pairs.invert), ("lshift left_shift bitwise_left_shift", pairs.lshift), ("rshift right_shift bitwise_right_shift", pairs.rshift),
    ("logical_and", pairs.of_truths(pairs.and_)), ("logical_or", pairs.of_truths(pairs.or_)), ("logical_xor", pairs.of_truths(pairs.xor_)),
    ("logical_not", pairs.logical_not), ("where", pairs.where), ("where_of", pairs.where_of), ("masked_fill", pairs.masked_fill),
    ("trunc fix", functions.trunc), ("floor", functions.floor), ("ceil", functions.ceil), ("round rint", functions.round_),
    ("reciprocal", functions.reciprocal), ("sigmoid expit", functions.sigmoid), ("logsigmoid log_sigmoid", functions.logsigmoid),
    ("softplus", functions.softplus), ("relu", functions.relu), ("leaky_relu", functions.leaky_relu), ("elu", functions.elu), ("silu", functions.silu),
    ("gelu", functions.gelu), ("log10", functions.log10), ("tan", functions.tan),
    *((name, functions.of_math(name)) for name in ("cos", "erf", "exp", "exp2", "expm1", "log", "log1p", "log2", "rsqrt", "sin", "sqrt", "tanh")),
    ("to type type_as", cast), ("float double", _cast_to("f32")), ("int long", _cast_to("i32")), ("bool", _cast_to("i1")),
    ("new_full", new_full), ("new_ones", _filled(new_full, 1)), ("new_zeros", _filled(new_full, 0)), ("full_like", full_like),
    ("ones_like", _filled(full_like, 1)), ("zeros_like", _filled(full_like, 0)),
)
OPERATIONS = {name: operation for names, operation in _ROWS for name in names.split()}
