"""A function with the argument order of torch.nn.attention.flex_attention, for what heddle can express."""
from typing import Optional

import torch

from . import _flex
from .calls import attention
from .errors import InvalidArgumentError, UnsupportedError
from .patterns import Pattern

__all__ = ["flex_attention"]


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale: Optional[float] = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options=None, **arguments):
    """Attention on tensors [batch, heads, length, head_dim], in the order of FlexAttention's arguments.

    block_mask  a heddle pattern (Pattern, words, a name of the package's library), a function mask_mod(b, h, q_idx, kv_idx), or a BlockMask
                made of one, which stands for its mask_mod: its blocks are not read, and one without a mask_mod is refused. Functions are exact but no tile is skipped for their
                sake; words are what makes sparse patterns fast.
    score_mod   a chain of heddle.words (softcap(50.0)), or a function score_mod(score, b, h, q_idx, kv_idx)
    arguments   sizes, numbers and tensors of the pattern

    Functions, that of a BlockMask too, are called with symbols at every call: plain arithmetic on positions and scores, no tensors. What
    they read (globals, attributes, cells) counts as it is then, also if it was something else when create_block_mask ran. Inside
    torch.compile they break the graph, as words do; a Pattern or a name does not.

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


def _pattern_of(block_mask, score_mod):
    if score_mod is None and isinstance(block_mask, (str, Pattern)):
        return block_mask  # nothing to make: inside one graph too
    if torch.compiler.is_compiling():
        from . import _torch_outside
        return _torch_outside.pattern_now(block_mask, score_mod)
    return _flex.pattern_now(block_mask, score_mod)
