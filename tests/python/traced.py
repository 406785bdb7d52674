"""What traced functions keep and what they make of scores, read off the results of heddle.attention on the CPU. Functions are compiled
together, one for each head."""
import functools

import heddle
import numpy as np
from heddle.words import full, predicate, score_map, union


def kept(functions, n, batch=1):
    """[batch, functions, n, n]: whether each function keeps each pair. With equal scores a row of weights says which keys it has."""
    def together(b, h, q, k):
        return functools.reduce(lambda rest, i: rest | (h == i) & functions[i](b, h, q, k), range(len(functions)), False)
    return np.moveaxis(heddle.attention(*_tensors(np.zeros((batch, len(functions), n, n))), predicate(together)), 2, 1) > 0


def changed(functions, scores):
    """[batch, functions, n, n]: what each function makes of each score of an array of that shape; -inf where it has no weight."""
    def together(s, b, h, q, k):
        return functools.reduce(lambda rest, i: functions[i](s, b, h, q, k).where(h == i, rest), range(len(functions)), s)
    weights, lse = heddle.attention(*_tensors(scores), union(full, scores=score_map(together)), scale=1.0, return_lse=True)
    with np.errstate(divide="ignore"):
        return np.log(np.moveaxis(weights, 2, 1)) + lse[..., None]


def _tensors(scores):
    """q, k, v [batch, n, heads, n] whose products are these scores, and whose results are the weights."""
    batch, heads, n, _ = scores.shape
    unit = np.broadcast_to(np.eye(n, dtype=np.float32)[None, :, None], (batch, n, heads, n))
    return np.moveaxis(scores, 1, 2).astype(np.float32), unit, unit


def names_of_unequal(names, equal):
    """Of the functions (second axis) whose results differ somewhere."""
    return [name for name, same in zip(names, np.moveaxis(equal, 1, 0).reshape(len(names), -1).all(1)) if not same]
