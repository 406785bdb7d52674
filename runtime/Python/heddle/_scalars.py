"""Numbers, as people give them: Python's, numpy's, and tensors and arrays without dimensions, whose value counts as it is then.

A tensor is not read where its value would have to be waited for (on a GPU), or where it requires a gradient, which no number passes on.
Messages say so by `shown`.
"""
import math
import numbers
import sys

from .errors import InvalidArgumentError

OWES_GRADIENT = "that requires a gradient, which no number passes on; its .detach() is taken"


def plain(value):
    """The number that a tensor or array without dimensions holds, if it may be read; everything else as it is."""
    if getattr(value, "ndim", None) != 0 or not hasattr(value, "item") or _device_of(value) or _owes_gradient(value):
        return value
    try:
        return value.item()
    except RuntimeError:  # of torch.vmap and other transforms
        return value


def _device_of(value):
    """Where the value of a tensor would have to be waited for."""
    device = str(getattr(value, "device", None) or "cpu")
    return "" if device.partition(":")[0] == "cpu" else device


def _owes_gradient(value):
    return getattr(value, "requires_grad", False) and sys.modules["torch"].is_grad_enabled()


def shown(value, gradient=""):
    """In messages: what was given in the place of a number, and what would do. `gradient`: also, where one is owed."""
    dimensions = getattr(value, "ndim", None)
    if not isinstance(dimensions, int) or not hasattr(value, "item"):
        return repr(value)
    if dimensions:
        return f"{type(value).__name__} of {list(value.shape)}"
    if _device_of(value):
        return f"a {type(value).__name__} on {_device_of(value)}, whose value would have to be waited for; its .item() is taken"
    if _owes_gradient(value):
        return f"a {type(value).__name__} {OWES_GRADIENT}{gradient}"
    return repr(value)


def whole(value):
    """An int of anything that is one; None of everything else, bool too."""
    value = plain(value)
    if isinstance(value, bool) or not hasattr(value, "__index__") or hasattr(value, "ndim"):
        return None
    try:
        return value.__index__()
    except TypeError:
        return None


def finite(value, what, wanted="a float", gradient=""):
    """A float of any real number that is finite; InvalidArgumentError of everything else, bool too. `gradient`: as of `shown`."""
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise InvalidArgumentError(f"{what}: expected {wanted}, got {shown(value, gradient)}")
    try:
        found = float(number)
    except OverflowError:
        raise InvalidArgumentError(f"{what}: expected {wanted}, got an int that no float holds") from None
    if not math.isfinite(found):
        raise InvalidArgumentError(f"{what}: expected a finite number, got {shown(value)}")
    return found
