"""Two tensor files of bf16 and fp32 tensors: the same names, shapes, and numbers but for a rounding."""
import json
import struct
import sys


def tensors(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    for name, entry in sorted(header.items()):
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        raw = data[begin:end]
        if entry["dtype"] == "BF16":
            raw = b"".join(b"\0\0" + raw[i : i + 2] for i in range(0, len(raw), 2))
        yield name, entry["shape"], struct.unpack("<%df" % (len(raw) // 4), raw)


for (name, shape, one), (other_name, other_shape, other) in zip(tensors(sys.argv[1]), tensors(sys.argv[2]), strict=True):
    assert (name, shape) == (other_name, other_shape), (name, shape, other_name, other_shape)
    worst = max(abs(a - b) / max(abs(a), 1) for a, b in zip(one, other, strict=True))
    assert worst <= 2**-7, (name, worst)
