"""What calls are given beside tensors: scale, positions, values of the pattern, a stream."""
import ctypes as C
import math
import numbers

from . import _scalars
from .errors import InvalidArgumentError


def bad(what):
    return InvalidArgumentError(f"attention arguments: {what}")


def position(name, value):
    """An int of 32 bits: ctypes would cut longer ones off."""
    found = _scalars.whole(value)
    if found is None:
        raise bad(f"{name}: expected an int, got {_scalars.shown(value)}")
    if not -2**31 <= found < 2**31:
        raise bad(f"{name}: expected 32 bits, got {found}")
    return found


def checked_scale(scale):
    """As f32; 0 stands for None, so no number may become 0 on the way."""
    if scale is None:
        return 0.0
    found = _scalars.plain(scale)
    is_number = isinstance(found, numbers.Real) and not isinstance(found, bool)
    value = _float(found) if is_number else math.nan
    if not math.isfinite(value) or not 0 < C.c_float(value).value < math.inf:
        got = _scalars.shown(scale, ", and q times it, with scale=1.0, has one")
        raise bad(f"scale: expected a finite number above 0 (or None for 1 / sqrt(head_dim)), got {got}")
    return value


def _float(number):
    """Infinity for ints that no float reaches."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def stream_address(stream):
    """An address; None and 0 are the default stream."""
    address = 0 if stream is None else _scalars.whole(stream)
    if address is None or not 0 <= address < 2**64:
        raise bad(f"stream: expected an address (an int; None for the default stream), got {_scalars.shown(stream)}")
    return address


_NUMBERS = frozenset((int, float, type(None)))


def with_numbers(spec):
    """The spec of a call with Python's numbers in the place of tensors and arrays without dimensions: their values are those of now, and
    what is kept of a call is kept for these."""
    if type(spec.scale) in _NUMBERS and type(spec.q_origin) in _NUMBERS and type(spec.k_origin) in _NUMBERS and not spec.arguments:
        return spec
    changed = {name: position(name, getattr(spec, name)) for name in ("q_origin", "k_origin") if type(getattr(spec, name)) not in _NUMBERS}
    if type(spec.scale) not in _NUMBERS:
        changed["scale"] = checked_scale(spec.scale)
    others = [name for name, value in spec.arguments.items() if type(value) not in _NUMBERS and spec.pattern.argument(name).kind != "tensor"]
    if others:
        changed["arguments"] = {**spec.arguments, **{name: spec.pattern.checked(name, spec.arguments[name]) for name in others}}
    return spec._replace(**changed) if changed else spec
