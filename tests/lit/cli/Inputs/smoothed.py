"""smoothed.py INPUTS PLAIN SMOOTHED: k_mean of SMOOTHED is the mean of rows of k of INPUTS (bf16), and scales of k are others than those of PLAIN."""
import json
import struct
import sys


def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: (each["shape"], data[8 + size:][slice(*each["data_offsets"])]) for name, each in header.items() if name != "__metadata__"}


def floats(shape_and_data):
    return struct.unpack(f"<{len(shape_and_data[1]) // 4}f", shape_and_data[1])


inputs, plain, smoothed = (tensors(path) for path in sys.argv[1:4])
(batch, rows, heads, dim), data = inputs["k"]
words = struct.unpack(f"<{len(data) // 2}H", data)
k = struct.unpack(f"<{len(words)}f", struct.pack(f"<{len(words)}I", *(word << 16 for word in words)))
means = floats(smoothed["k_mean"])
for b in range(batch):
    for head in range(heads):
        for channel in range(dim):
            mean = sum(k[((b * rows + row) * heads + head) * dim + channel] for row in range(rows)) / rows
            assert abs(means[(b * heads + head) * dim + channel] - mean) < 1e-5, (b, head, channel)
assert smoothed["q"] == plain["q"] and smoothed["v"] == plain["v"] and floats(smoothed["descale_k"]) != floats(plain["descale_k"])
