"""The pattern of a call in FlexAttention's words, and the tensors that it reads."""
import sys
from typing import Any, Dict, Tuple

from . import words
from .errors import InvalidArgumentError
from .patterns import Pattern, resolved


def pattern_now(block_mask, score_mod) -> Tuple[Pattern, Dict[str, Any]]:
    """Functions are traced at every call, so nothing that they read can be out of date; patterns are kept by what tracing yields."""
    mask, tensors = _mask_of(block_mask)
    if score_mod is None:
        return resolved(mask), tensors
    if not isinstance(mask, words.Mask):
        raise InvalidArgumentError("flex_attention: block_mask: expected words or a function beside score_mod; a whole pattern says itself what "
                                   "becomes of scores")
    scores = score_mod if isinstance(score_mod, words.Scores) else words.score_map(score_mod)
    return resolved(words.union(mask, scores=scores)), tensors


def _keeps_all(function):
    """PyTorch's mask_mod of a BlockMask that was given none."""
    loaded = sys.modules.get("torch.nn.attention.flex_attention")
    return loaded is not None and function is getattr(loaded, "noop_mask", loaded)


def _mask_of(block_mask):
    mask = getattr(block_mask, "mask_mod", block_mask)
    if _keeps_all(mask) and mask is not block_mask:
        from . import _torch_blocks
        return _torch_blocks.mask_of(block_mask)
    if mask is None or _keeps_all(mask):
        return words.full, {}
    is_function = callable(mask) and not isinstance(mask, (words.Mask, words.Softmax, Pattern))
    return (words.predicate(mask) if is_function else mask), {}
