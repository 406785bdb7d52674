"""Tensors of a pattern as data, and the file that gives them to heddle. No torch here."""
import array
import json
import struct
from dataclasses import dataclass

_CODES = {"I32": "i", "I64": "q", "F32": "f"}


@dataclass(frozen=True)
class Operand:
    """Row-major."""
    dtype: str  # a name of safetensors
    shape: tuple
    values: tuple
    has_length: bool = True  # the kernel asks for the last dimension

    @property
    def length(self):
        return self.shape[-1] if self.has_length else None

    def data(self):
        values = array.array(_CODES[self.dtype], self.values)
        return values.tobytes()


@dataclass(frozen=True)
class Drawn:
    """Standard normal numbers, too many for a file: each process that needs some draws its own."""
    dtype: str
    shape: tuple
    length = None


def write(path, operands):
    """A safetensors file of name -> Operand; a machine with little-endian words."""
    header, data = {}, b""
    for name, operand in operands.items():
        part = operand.data()
        header[name] = {"dtype": operand.dtype, "shape": list(operand.shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
