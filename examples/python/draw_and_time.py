#!/usr/bin/env python3
"""Draws a pattern, says what it costs, and times it: draw_and_time.py PATTERN [--seqlen N] [--heads H] [--set NAME=VALUE] [-o FILE.svg].

PATTERN is a name of the package's library, a .mlir file, or words: "causal & (window(left=1023) | cols(64))".
"""
import argparse
import os
import time

import heddle
from heddle import words


def find_pattern(text, values):
    if os.path.exists(text):
        return heddle.load(text, **values)
    if text in heddle.library_names():
        return heddle.library(text, **values)
    named = {name: getattr(words, name) for name in words.__all__}
    return heddle.pattern(eval(text, {"__builtins__": {}}, named), **values)  # what its own user typed


def make_tensors(seqlen, heads):
    """On the GPU if there is one: tensors, a wait for the GPU, what they run on."""
    try:
        import torch
        if torch.cuda.is_available():
            shape = (1, seqlen, heads, 128)
            return [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3)], torch.cuda.synchronize, torch.cuda.get_device_name()
    except ImportError:
        pass
    import numpy
    generator = numpy.random.default_rng(0)
    return [generator.standard_normal((1, seqlen, heads, 64), numpy.float32) for _ in range(3)], lambda: None, "this machine's processors"


def median_ms(call, wait, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        wait()
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[len(times) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern")
    parser.add_argument("--seqlen", type=int, default=2048)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="run-time size of the pattern")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-o", "--output", default="pattern.svg")
    given = parser.parse_args()
    heddle.configure(first="best")  # what is timed: the default for this GPU, not what serves while that compiles
    pattern = find_pattern(given.pattern, {name: int(value) for name, value in (each.split("=") for each in given.set)})
    print(pattern)
    pattern.draw(given.output, seqlen=given.seqlen, heads=given.heads)
    facts = pattern.explain(given.seqlen, heads=given.heads, head_dim=128)
    print(f"{given.output}: {facts['kept_pairs']:,} pairs of {given.heads} head{'' if given.heads == 1 else 's'}, {100 * facts['density']:.2f} % of all")
    tensors, wait, place = make_tensors(given.seqlen, given.heads)
    call = heddle.prepare(*tensors, pattern)
    call()
    wait()
    print(f"{median_ms(call, wait, given.repeats):.3f} ms on {place}" + (f", {call.kernel}" if call.kernel else ""))


if __name__ == "__main__":
    main()
