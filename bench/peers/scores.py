"""Tensors that a pattern adds to scores or takes as a sink: the same data for heddle and for its peers. No torch here."""
from peers.operands import Drawn, Operand


def operands(score, heads, n, sizes):
    """By name, in the order of the pattern's arguments; none for scores that read no tensor."""
    if score == "relative":
        entries = 2 * dict(sizes)["reach"] + 1
        return {"table": Operand("F32", (heads, entries), tuple(_level(17 * i + 31 * h) for h in range(heads) for i in range(entries)))}
    if score == "bias":
        return {"bias": Drawn("BF16", (1, heads, n, n))}
    if score == "sink":
        return {"sinks": Operand("F32", (heads,), tuple(_level(5 * h) for h in range(heads)), has_length=False)}
    return {}


def _level(number):
    """One of 64 numbers from -2 to 2, which every type holds exactly."""
    return (number % 64 - 32) / 16
