"""What calls refuse, by the table of tests/data/arguments/bad.txt, of which tests/unit/library_arguments_test.cpp tries the C interface:
heddle.attention and heddle.attention_backward in host memory, and `heddle run`, say the same words."""
import json
import os
import struct
import subprocess
import types

import heddle
import pytest

np = pytest.importorskip("numpy")
from heddle import _command  # noqa: E402
from heddle.errors import of_status  # noqa: E402

pytestmark = pytest.mark.compiler

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "arguments")
DIMS = ("batch", "row", "head", "dim")
DTYPES = {"fp16": np.float16, "fp32": np.float32, "i32": np.int32, "i64": np.int64}
BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "i32": 4, "i64": 8}
NAMES = {"bf16": "BF16", "fp16": "F16", "fp32": "F32", "i32": "I32", "i64": "I64"}
ROOM = 1 << 17  # bytes from one tensor to the next
ARGUMENTS = {
    "near": dict(left=7),
    "tree": dict(ancestors=("i64", [1, 3, 7, 15, 31])),
    "trees": dict(trees=("i64", [1, 3, 7, 15, 31]), drafts=("i32", [5])),
    "packed": dict(cu_q=("i32", [0, 10, 24]), cu_k=("i32", [0, 15, 40]), used=("i32", [15, 20])),
    "lists": dict(offsets=("i32", [0] * 25), indices=("i32", [0])),
}


def bad_calls(door):
    with open(os.path.join(FOLDER, "bad.txt")) as table:
        rows = [[cell.strip() for cell in line.split("|")] for line in table if line.strip() and not line.startswith("#")]
    return [types.SimpleNamespace(kind=row[0], pattern=row[1], change=row[2], status=int(row[3]), words=row[4]) for row in rows if door in row[5].split()]


class Place:
    """A tensor in the memory of a call, in elements of its type."""

    def __init__(self, dtype, shape, offset):
        self.dtype, self.shape, self.offset, self.strides, self.values = dtype, list(shape), offset, {}, None

    def array(self, memory):
        strides, step = [], BYTES[self.dtype]
        for extent in reversed(self.shape):
            strides.insert(0, step)
            step *= extent
        for dim, stride in self.strides.items():
            strides[dim] = stride * BYTES[self.dtype]
        made = np.ndarray(self.shape, DTYPES[self.dtype], memory, self.offset, strides)
        if self.values is not None:
            made[...] = np.array(self.values, made.dtype).reshape(self.shape)
        return made


class Call:
    """The call that the table changes."""

    def __init__(self, bad):
        self.kind, self.fields, self.sizes = bad.kind, {}, {}
        self.places, self.words = {}, {}
        shapes = dict(q=(1, 24, 4, 64), k=(1, 40, 2, 64), v=(1, 40, 2, 64), out=(1, 24, 4, 64), lse=(1, 4, 24))
        if bad.kind != "forward":
            shapes.update(d_out=(1, 24, 4, 64), d_q=(1, 24, 4, 64), d_k=(1, 40, 2, 64), d_v=(1, 40, 2, 64))
        for name, shape in shapes.items():
            self._place(name, "fp32" if name in ("lse", "d_q", "d_k", "d_v") else "fp16", shape)
        self.roles = list(shapes)
        for name, argument in ARGUMENTS[bad.pattern].items():
            if isinstance(argument, tuple):
                self._place(name, argument[0], None)
                self._set_values(name, argument[1])
            else:
                self.sizes[name] = argument
        for word in bad.change.split():
            self._change(word)
        if "lse" in self.roles:
            self.places["lse"].shape[2] = self.places["q"].shape[1]

    def _place(self, name, dtype, shape):
        self.places[name] = Place(dtype, shape or (), ROOM * (1 + len(self.places)))

    def _set_values(self, name, values):
        self.places[name].values = values
        self.places[name].shape = [1] * {"offsets": 2, "trees": 1}.get(name, 0) + [len(values)]

    def _change(self, word):
        at = min(word.index(sign) for sign in "=@*" if sign in word)
        what, to = word[:at], word[at + 1:]
        if word[at] == "@":
            other, bytes_behind = to.split("+")
            self.places[what].offset = self.places[other].offset + int(bytes_behind)
        elif word[at] == "*":
            values, count = self.places[what].values, int(to)
            self._set_values(what, (values + values[-1:] * count)[:count])
        elif what in self.sizes:
            self.sizes[what] = int(to)
        elif what in self.places:
            self._set_values(what, [int(each) for each in to.split(",")])
        elif "." in what:
            self._change_tensor(what.split("."), to)
        else:
            self.fields[what] = float(to) if what == "scale" else int(to)

    def _change_tensor(self, path, to):
        place = self.places[path[0]]
        if path[1] == "dtype":
            place.dtype = to
        elif path[1] == "size":
            place.shape[DIMS.index(path[2])] = int(to)
        else:
            place.strides[DIMS.index(path[2])] = int(to)

    def run(self, pattern):
        memory = bytearray(ROOM * (2 + len(self.places)))
        arrays = {name: place.array(memory) for name, place in self.places.items()}
        given = {**{name: each for name, each in arrays.items() if name not in self.roles}, **self.sizes, **self.fields}
        if self.kind == "forward":
            return heddle.attention(*(arrays[name] for name in "qkv"), pattern, out=arrays["out"], lse=arrays["lse"], **given)
        return heddle.attention_backward(*(arrays[name] for name in ("d_out", "q", "k", "v", "out", "lse")), pattern,
                                         add_to=tuple(arrays[name] for name in ("d_q", "d_k", "d_v")), **given)

    def write(self, path):
        """The tensors that a call reads, in a safetensors file of zeros and integers."""
        header, data = {}, b""
        for name, place in self.places.items():
            if name in self.roles and name not in "qkv":
                continue
            size = BYTES[place.dtype] * int(np.prod(place.shape))
            values = bytes(size) if place.values is None else np.array(place.values, DTYPES[place.dtype]).tobytes()
            header[name] = dict(dtype=NAMES[place.dtype], shape=place.shape, data_offsets=[len(data), len(data) + size])
            data += values
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture(scope="module")
def patterns():
    with open(os.path.join(FOLDER, "patterns.mlir")) as file:
        text = file.read()
    return {name: heddle.Pattern(text, name) for name in ARGUMENTS}


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("kind", ["forward", "backward_accumulate"])
def test_the_call_that_the_table_changes_is_served(patterns, kind, name):
    Call(types.SimpleNamespace(kind=kind, pattern=name, change="")).run(patterns[name])


@pytest.mark.parametrize("bad", bad_calls("python"), ids=lambda bad: f"{bad.kind}-{bad.pattern}-{bad.change}")
def test_bad_arguments(patterns, bad):
    with pytest.raises(type(of_status(bad.status, ""))) as raised:
        Call(bad).run(patterns[bad.pattern])
    assert bad.words in str(raised.value)


def run_command(tmp_path, bad):
    call = Call(bad)
    call.write(tmp_path / "x.safetensors")
    sizes = [f"--set={name}={value}" for name, value in call.sizes.items()]
    command = [_command.program(), "run", os.path.join(FOLDER, "patterns.mlir"), f"--pattern={bad.pattern}", "--target=cpu", *sizes,
               f"--inputs={tmp_path / 'x.safetensors'}", f"--output={tmp_path / 'y.safetensors'}"]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_command_line_serves_the_call(tmp_path, name):
    done = run_command(tmp_path, types.SimpleNamespace(kind="forward", pattern=name, change=""))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("bad", bad_calls("command"), ids=lambda bad: f"{bad.pattern}-{bad.change}")
def test_bad_arguments_of_the_command_line(tmp_path, bad):
    done = run_command(tmp_path, bad)
    assert done.returncode in (1, 2) and bad.words in done.stderr, done.stderr
    assert not (tmp_path / "y.safetensors").exists()
