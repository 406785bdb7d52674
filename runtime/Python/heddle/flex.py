"""A function with the argument order of torch.nn.attention.flex_attention, for what heddle can express."""
import functools
from typing import Optional

from . import words
from .calls import attention
from .errors import InvalidArgumentError, UnsupportedError
from .patterns import Pattern, pattern

__all__ = ["flex_attention"]


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale: Optional[float] = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options=None, **arguments):
    """Attention on tensors [batch, heads, length, head_dim], in the order of FlexAttention's arguments.

    block_mask  a heddle pattern (Pattern, words, a name of the package's library), a function mask_mod(b, h, q_idx, kv_idx), or a BlockMask
                made of one. Functions are traced: plain arithmetic on positions, no tensors. They are exact but no tile is skipped for
                their sake; words are what makes sparse patterns fast.
    score_mod   a chain of heddle.words (softcap(50.0)), or a function score_mod(score, b, h, q_idx, kv_idx), which is traced
    arguments   sizes, numbers and tensors of the pattern

    Returns out, or (out, lse) with return_lse. kernel_options must be None: heddle tunes.
    """
    if kernel_options is not None:
        raise UnsupportedError("flex_attention: kernel_options: heddle has none; heddle.tune searches for a faster kernel")
    for name, each in (("query", query), ("key", key), ("value", value)):
        if getattr(each, "ndim", None) != 4:
            got = type(each).__name__ if not hasattr(each, "shape") else f"one of {list(each.shape)}"
            raise InvalidArgumentError(f"flex_attention: {name}: expected a tensor [batch, heads, length, head_dim], got {got}")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise InvalidArgumentError(f"flex_attention: expected as many heads in key as in query, {query.shape[1]}, got {key.shape[1]}; "
                                   "or give enable_gqa=True")
    made = _pattern_of(block_mask, score_mod)
    q, k, v = (each.transpose(1, 2) for each in (query, key, value))
    out, lse = attention(q, k, v, made, scale=scale, return_lse=True, **arguments)
    return (out.transpose(1, 2), lse) if return_lse else out.transpose(1, 2)


def _surroundings(function):
    """What a Python function reads from outside of it: with other values it is another pattern."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ()
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    values = [*cells, *(function.__globals__.get(name) for name in code.co_names), function.__defaults__]
    return (*values, *(_surroundings(each) for each in cells if each is not function))


def _pattern_of(block_mask, score_mod):
    if score_mod is None and isinstance(block_mask, (str, Pattern)):
        return block_mask  # nothing to make: inside torch.compile too
    around = tuple(_surroundings(getattr(each, "mask_mod", each)) for each in (block_mask, score_mod))
    try:
        return _pattern(block_mask, score_mod, around)
    except TypeError:  # something that cannot be kept as a key
        return _pattern.__wrapped__(block_mask, score_mod, around)


@functools.lru_cache(maxsize=256)
def _pattern(block_mask, score_mod, _around):
    mask = getattr(block_mask, "mask_mod", block_mask)
    if mask is None:
        mask = words.full
    elif callable(mask) and not isinstance(mask, (words.Mask, words.Softmax, Pattern)):
        mask = words.predicate(mask)
    if score_mod is None:
        return pattern(mask)
    if not isinstance(mask, words.Mask):
        raise InvalidArgumentError("flex_attention: block_mask: expected words or a function beside score_mod; a whole pattern says itself what "
                                   "becomes of scores")
    return pattern(words.union(mask, scores=score_mod if isinstance(score_mod, words.Scores) else words.score_map(score_mod)))
