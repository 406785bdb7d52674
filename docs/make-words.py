#!/usr/bin/env python3
"""make-words.py [FOLDER]: draws FOLDER/words/*.svg and writes FOLDER/words.md, a picture for each word of heddle.words; the folder is
docs. tests/python holds the committed page against what this writes. Needs libheddle (HEDDLE_LIBRARY)."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
if not os.environ.get("HEDDLE_TEST_INSTALLED"):
    sys.path.insert(0, os.path.join(HERE, "..", "runtime", "Python"))

import heddle  # noqa: E402
from heddle import words  # noqa: E402

HEADER = """# The words, drawn

Queries run down, keys run across, 48 of each. `docs/make-words.py` writes this page; [python.md](python.md) says which numbers are run-time values, [language.md](language.md) what each
word means exactly, [reference.md](reference.md) how MLIR spells it.

| Python | what is kept | picture |
|---|---|---|
"""
# name of the picture, expression, what it keeps
WORDS = [
    ("full", "full", "every pair"),
    ("causal", "causal", "keys up to the query"),
    ("window", "window(left=12, right=4)", "keys from 12 before to 4 behind the query"),
    ("prefix", "prefix(16)", "the first 16 keys, and those up to the query"),
    ("rows", "rows(first=4, last=2)", "the first 4 and the last 2 queries, whole"),
    ("cols", "cols(first=4, last=2)", "the first 4 and the last 2 keys, for everybody"),
    ("box", "box(8, 24, 16, 40)", "queries 8 to 23 with keys 16 to 39"),
    ("stride", "stride('k', 6, at=5)", "every sixth key"),
    ("and", "causal & window(left=8)", "what both keep"),
    ("or", "causal & (window(left=6) | cols(3))", "what either keeps"),
    ("not", "~window(left=8, right=8)", "what it does not keep"),
    ("segment", "causal.segment(16)", "causal inside segments of 16; positions count from where each begins"),
    ("dilate", "causal.dilate(3, rule='every')", "causal among positions of the same class modulo 3"),
    ("dilate-at", "full.dilate(3, at=1)", "class 1 modulo 3, queries and keys alike; other queries keep nothing"),
    ("both", "causal.dilate(2, at=0).segment(16)", "a thinned lattice in segments: a branch of LongNet"),
    ("both-ways", "causal.segment(8).dilate(2, rule='every')", "the other way round: segments of 8 of the thinned positions"),
    ("blocks", "window(left=1, right=1).blocks(8)", "a window of blocks of 8"),
    ("random", "random(2, seed=3).blocks(4)", "2 random blocks of 4 for each block of queries, the same on every machine"),
    ("heads", "heads(causal, full.segment(12))", "one mask for the first half of the heads, another for the second"),
    ("predicate", "predicate(lambda b, h, q, k: (q // 4 + k // 4) % 2 == 0)", "what arithmetic says"),
]


def row(folder, name, expression, kept):
    space = {word: getattr(words, word) for word in words.__all__}
    pattern = heddle.pattern(eval(expression, space), name=name.replace("-", "_"))
    pattern.draw(os.path.join(folder, "words", f"{name}.svg"), seqlen=48)
    return f"| `{expression}` | {kept} | ![{name}](words/{name}.svg) |\n".replace(" | cols", " \\| cols")


def main(folder):
    os.makedirs(os.path.join(folder, "words"), exist_ok=True)
    with open(os.path.join(folder, "words.md"), "w", encoding="utf-8") as page:
        page.write(HEADER + "".join(row(folder, *each) for each in WORDS))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else HERE)
