#!/usr/bin/env python3
"""Weights of a byte model that has learned nothing, for tests and load: make_weights.py FILE [--dim D] [--layers N] ... The same options give the
same file. Those of a model that has are what examples/python/byte_model.py --save writes. Needs numpy."""
import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import safetensors_file  # noqa: E402


def weights(dim, heads, kv_heads, layers, seed):
    random = np.random.default_rng(seed)

    def linear(name, outputs, inputs, bias=True):
        tensors[name + ".weight"] = (random.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(np.float32)
        if bias:
            tensors[name + ".bias"] = (0.1 * random.standard_normal(outputs)).astype(np.float32)

    def norm(name):
        tensors[name + ".weight"] = (1 + 0.1 * random.standard_normal(dim)).astype(np.float32)

    tensors = {"embedding.weight": random.standard_normal((256, dim)).astype(np.float32)}
    for layer in range(layers):
        prefix = f"blocks.{layer}."
        norm(prefix + "attention.0")
        linear(prefix + "attention.1.project", (heads + 2 * kv_heads) * (dim // heads), dim, bias=False)
        linear(prefix + "attention.1.out", dim, dim, bias=False)
        norm(prefix + "mlp.0")
        linear(prefix + "mlp.1", 4 * dim, dim)
        linear(prefix + "mlp.3", dim, 4 * dim)
    norm("head.0")
    linear("head.1", 256, dim)
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    for name, default, what in (("dim", 256, ""), ("heads", 4, "of queries"), ("kv-heads", 2, "of keys and values"), ("layers", 4, ""), ("seed", 1, "of chance"),
                                ("first", 4, "tokens that every query sees"), ("left", 1023, "tokens before it that a query sees")):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{what} [{default}]")
    given = parser.parse_args()
    safetensors_file.write(given.file, weights(given.dim, given.heads, given.kv_heads, given.layers, given.seed),
                           dict(heads=given.heads, kv_heads=given.kv_heads, first=given.first, left=given.left))


if __name__ == "__main__":
    main()
