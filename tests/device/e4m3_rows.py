#!/usr/bin/env python3
"""Calls of e4m3 whose results are known without computing attention; the standard library is all it needs.

    e4m3_rows.py make CASE KEYS FILE             writes q, k and v
    e4m3_rows.py check CASE KEYS OUT [OTHER]     of their result, fp32; exit 1 and a line if it is not what it must be

Cases of ROWS queries, pattern full: `ones`, v = 1, gives exactly 1; `whole`, one key has all the weight, gives its value; `late` and `early`,
one key, the last but two or the sixth, weighs about as much as all others together. `late` must be near the sum, `early`, where other weights
are too small for e4m3 beside it, near OTHER, the same call by a kernel that adds to fp32 at every tile.
Cases of as many queries as keys, pattern causal: `finite`, and the same with a NaN in one row of `nan_q`, `nan_k` or `nan_v`: rows that keep
it are NaN, others as in OTHER, the result of `finite`; of `nan_v` those that are a tile before it.
"""
import json
import math
import random
import struct
import sys

ROWS, DIM, CAUSAL_HEADS, TILE = 130, 128, 2, 256
ZERO, HALF, ONE, EIGHT, NAN = 0x00, 0x30, 0x38, 0x50, 0x7F
MODERATE = bytes(code & 0x80 | code & 0x3F for code in range(256))  # magnitudes below 2
NEAR = 0.01


def is_causal(case):
    return case == "finite" or case.startswith("nan")


def needle(case, keys):
    return {"early": 5, "late": keys - 3}.get(case, keys // 3 + 5)


def place_of_nan(case, keys):
    row = 100 if case == "nan_q" else keys * 5 // 8
    return row, (row * CAUSAL_HEADS) * DIM + 7  # of head 0


def numbers(seed, rows, heads):
    return bytearray(random.Random(seed).randbytes(rows * heads * DIM).translate(MODERATE))


def tensors(case, keys):
    rows, heads = (keys, CAUSAL_HEADS) if is_causal(case) else (ROWS, 1)
    q, k, v = numbers(1, rows, heads), numbers(2, keys, heads), numbers(3, keys, heads)
    place = slice(needle(case, keys) * DIM, (needle(case, keys) + 1) * DIM)
    if case == "ones":
        v[:] = bytes([ONE]) * len(v)
    elif case == "whole":
        q[:] = bytes([ONE]) * len(q)
        k[place] = bytes([EIGHT]) * DIM
    elif case in ("early", "late"):
        q[:], k[:], v[:] = (bytes([code]) * len(of) for code, of in ((ONE, q), (ZERO, k), (HALF, v)))
        k[place] = v[place] = bytes([ONE]) * DIM
    elif case in ("nan_q", "nan_k", "nan_v"):
        {"nan_q": q, "nan_k": k, "nan_v": v}[case][place_of_nan(case, keys)[1]] = NAN
    return {"q": (q, rows, heads), "k": (k, keys, heads), "v": (v, keys, heads)}


def write(path, made):
    header, at = {}, 0
    for name, (data, rows, heads) in made.items():
        header[name] = {"dtype": "F8_E4M3", "shape": [1, rows, heads, DIM], "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for data, _, _ in made.values()))


def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    begin, end = header["out"]["data_offsets"]
    if header["out"]["dtype"] == "BF16":
        data, begin, end = b"".join(b"\0\0" + data[i:i + 2] for i in range(begin, end, 2)), 0, 2 * (end - begin)
    return struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])


def value_of(code):
    exponent, fraction = code >> 3 & 15, code & 7
    magnitude = math.ldexp(8 + fraction, exponent - 10) if exponent else math.ldexp(fraction, -9)
    return -magnitude if code & 0x80 else magnitude


def expected(case, keys, other):
    """The value of each element of out, or None where nothing is said of it."""
    if case == "ones":
        return [1.0] * (ROWS * DIM)
    if case == "whole":
        data, row = tensors(case, keys)["v"][0], needle(case, keys)
        return [value_of(code) for code in data[row * DIM:(row + 1) * DIM]] * ROWS
    if case == "early":
        return other
    if case == "late":
        weight = math.exp(math.sqrt(DIM))
        return [(weight + 0.5 * (keys - 1)) / (weight + keys - 1)] * (ROWS * DIM)
    row_of_nan, at = place_of_nan(case, keys)
    wanted = list(other)
    for index in range(0, len(wanted), CAUSAL_HEADS * DIM):  # head 0 of each row
        row = index // (CAUSAL_HEADS * DIM)
        if case == "nan_v":
            column = index + at % DIM
            wanted[column] = math.nan if row >= row_of_nan else None if row > row_of_nan - TILE else wanted[column]
        elif row == row_of_nan or (case == "nan_k" and row > row_of_nan):
            wanted[index:index + DIM] = [math.nan] * DIM
    return wanted


def is_as_wanted(value, wanted, tolerance):
    if wanted is None:
        return True
    if math.isnan(wanted):
        return math.isnan(value)
    return abs(value - wanted) <= tolerance * max(abs(wanted), 2**-9)


def check(case, keys, out, other):
    wanted, values = expected(case, keys, other), read(out)
    tolerance = 0 if case == "ones" else NEAR
    wrong = [i for i, (value, want) in enumerate(zip(values, wanted, strict=True)) if not is_as_wanted(value, want, tolerance)]
    if wrong:
        print(f"error: {case}: {len(wrong)} of {len(values)} elements: number {wrong[0]} is {values[wrong[0]]}, not {wanted[wrong[0]]}")
    return int(bool(wrong))


def main():
    verb, case, keys, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    if verb == "make":
        write(path, tensors(case, keys))
        return 0
    return check(case, keys, path, read(sys.argv[5]) if len(sys.argv) > 5 else None)


if __name__ == "__main__":
    sys.exit(main())
