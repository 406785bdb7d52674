"""The elements of tensors, from the tables of the library: their names here, in patterns, and where tensors come from."""
import functools
import re
from typing import NamedTuple

from ._tables import tables

_SHORT = {"float": "fp", "int": "i", "uint": "u"}
_DLPACK_KINDS = {0: "int", 1: "uint", 2: "float"}
_NUMPY_KINDS = {"i": "int", "u": "uint", "f": "float"}


class Element(NamedTuple):
    name: str
    mlir: str  # in the text of a pattern
    torch: str  # of PyTorch and numpy
    number: int  # heddle_dtype; 0: tensors of patterns alone have it
    bytes: int
    dlpack: int  # DLDataTypeCode
    out: str  # the name of the element of out, where q has this one and nobody asks for another


@functools.lru_cache(maxsize=None)
def elements():
    return tuple(Element(*(row[column] for column in Element._fields)) for row in tables()["elements"])


@functools.lru_cache(maxsize=None)
def numbers():
    """Of those that tensors of calls may have, by name."""
    return {element.name: element.number for element in elements() if element.number}


def listed():
    """"bf16, fp16, fp32 or e4m3"."""
    *first, last = numbers()
    return f"{', '.join(first)} or {last}"


@functools.lru_cache(maxsize=None)
def of_out(name):
    """The element of out where q is of the element with this name."""
    return next((each for element in elements() if element.name == name for each in elements() if each.name == element.out), None)


def _of_bytes(count):
    """Names of those that calls may have, so wide."""
    return tuple(element.name for element in elements() if element.number and element.bytes == count)


@functools.lru_cache(maxsize=None)
def outs(name):
    """What out may be of, where q is of the element with this name: as nobody asks for another, or fp32; beside scales any that is narrower."""
    usual = of_out(name).name
    narrower = _of_bytes(2) if name in _of_bytes(1) else ()
    return tuple(dict.fromkeys((usual, *narrower, "fp32")))


@functools.lru_cache(maxsize=None)
def keys(name):
    """What k and v may be of beside q, of calls that take scales of them: that of q, or one with scales where q has two bytes."""
    return (name, *_of_bytes(1)) if name in _of_bytes(2) else (name,)


@functools.lru_cache(maxsize=None)
def torch_name(name):
    """PyTorch's and numpy's, of the element with this name."""
    return next(element.torch for element in elements() if element.name == name)


@functools.lru_cache(maxsize=None)
def of_pattern(mlir):
    return next((element.name for element in elements() if element.mlir == mlir), mlir)


@functools.lru_cache(maxsize=None)
def spelled(torch):
    """float32 is fp32; of a type that is not in the table, float64 is fp64 all the same; None for any other name."""
    found = re.fullmatch(r"(float|u?int)(\d+)", torch)
    return next((element.name for element in elements() if element.torch == torch), found and _SHORT[found[1]] + found[2])


@functools.lru_cache(maxsize=None)
def of_dlpack(code, bits):
    known = (element.name for element in elements() if (element.dlpack, 8 * element.bytes) == (code, bits))
    return next(known, None) or spelled(f"{_DLPACK_KINDS.get(code)}{bits}")


@functools.lru_cache(maxsize=None)
def of_typestring(typestring):
    """Of numpy's "<f4"; None where bytes are in the other order, and of what is no number."""
    kind = _NUMPY_KINDS.get(typestring[1]) if typestring[0] in "<|" else None
    return kind and spelled(f"{kind}{8 * int(typestring[2:])}")
