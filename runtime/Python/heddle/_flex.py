"""The pattern of a call in FlexAttention's words."""
import sys

from . import words
from .errors import InvalidArgumentError, UnsupportedError
from .patterns import Pattern, resolved


def pattern_now(block_mask, score_mod) -> Pattern:
    """Functions are traced at every call, so nothing that they read can be out of date; patterns are kept by what tracing yields."""
    mask = _mask_of(block_mask)
    if score_mod is None:
        return resolved(mask)
    if not isinstance(mask, words.Mask):
        raise InvalidArgumentError("flex_attention: block_mask: expected words or a function beside score_mod; a whole pattern says itself what "
                                   "becomes of scores")
    return resolved(words.union(mask, scores=score_mod if isinstance(score_mod, words.Scores) else words.score_map(score_mod)))


def _keeps_all(function):
    """PyTorch's mask_mod of a BlockMask that was given none; it asks tensors what symbols do not know."""
    loaded = sys.modules.get("torch.nn.attention.flex_attention")
    return loaded is not None and function is getattr(loaded, "noop_mask", loaded)


def _mask_of(block_mask):
    mask = getattr(block_mask, "mask_mod", block_mask)
    if _keeps_all(mask):
        if mask is not block_mask:
            raise UnsupportedError("flex_attention: block_mask: a BlockMask without a mask_mod says in its blocks alone what it keeps, and they are not "
                                   "read; give it a mask_mod, or lists of blocks as heddle.library('block_csr'), or None to keep every key")
        return words.full
    if mask is None:
        return words.full
    is_function = callable(mask) and not isinstance(mask, (words.Mask, words.Softmax, Pattern))
    return words.predicate(mask) if is_function else mask
