"""torch.nn.attention.flex_attention for what heddle can express: the same names and arguments, so that changing the import is all there is to do."""
import functools
import warnings
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Optional, Tuple, Union

import torch

from . import _direct, _flex
from .calls import attention
from .errors import InvalidArgumentError, UnsupportedError
from .patterns import Pattern

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "flex_attention", "noop_mask", "or_masks"]


class AuxRequest(NamedTuple):
    """What flex_attention returns beside out. There are no max_scores."""
    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    lse: Optional[torch.Tensor] = None
    max_scores: Optional[torch.Tensor] = None


@dataclass(frozen=True)
class BlockMask:
    """A mask function with the sizes that it was made for. No block is computed: calls trace the function."""
    mask_mod: Callable
    B: int
    H: int
    seq_lengths: Tuple[int, int]
    BLOCK_SIZE: Tuple[int, int]

    @property
    def shape(self):
        return (self.B, self.H, *self.seq_lengths)

    def to(self, device) -> "BlockMask":
        return self


def create_block_mask(mask_mod, B: Optional[int], H: Optional[int], Q_LEN: int, KV_LEN: int, device=None, BLOCK_SIZE: Union[int, Tuple[int, int]] = 128,
                      _compile: bool = False, separate_full_blocks: bool = True, compute_dq_write_order: bool = False,
                      dq_kv_order: bool = True) -> BlockMask:
    """Takes what PyTorch's takes and returns at once. What says where or how blocks are computed has no effect."""
    if not callable(mask_mod):
        raise InvalidArgumentError(f"create_block_mask: mask_mod: expected a function, got {mask_mod!r}")
    sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    return BlockMask(mask_mod, 1 if B is None else B, 1 if H is None else H, (Q_LEN, KV_LEN), sizes)


def noop_mask(batch, head, token_q, token_kv):
    """Keeps every pair."""
    return True


def and_masks(*mask_mods):
    """The function that keeps what all of these keep."""
    return _joined("and_masks", lambda a, b: a & b, True, mask_mods)


def or_masks(*mask_mods):
    """The function that keeps what any of these keeps."""
    return _joined("or_masks", lambda a, b: a | b, False, mask_mods)


def _joined(name, join, nothing, mask_mods):
    for each in mask_mods:
        if not callable(each):
            raise InvalidArgumentError(f"{name}: expected functions, got {each!r}")

    def joined(b, h, q_idx, kv_idx):
        return functools.reduce(join, (each(b, h, q_idx, kv_idx) for each in mask_mods)) if mask_mods else nothing
    return joined


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale: Optional[float] = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options=None, *, return_aux: Optional[AuxRequest] = None, **arguments: Any):
    """Attention on tensors [batch, heads, length, head_dim], in the order of FlexAttention's arguments.

    block_mask  a heddle pattern (Pattern, words, a name of the package's library), a function mask_mod(b, h, q_idx, kv_idx), or a BlockMask.
                One made of a function stands for that; its blocks are not read. PyTorch's without a mask_mod keeps the blocks of its lists.
                It is made for at least as many tokens as the call has.
                Functions are exact but no tile is skipped for their sake; words are what makes sparse patterns fast.
    score_mod   a chain of heddle.words (softcap(50.0)), or a function score_mod(score, b, h, q_idx, kv_idx)
    return_aux  AuxRequest(lse=True), heddle's or PyTorch's: returns (out, AuxOutput); max_scores is refused
    arguments   sizes, numbers and tensors of the pattern

    Functions, that of a BlockMask too, are called with symbols at every call; docs/python.md says what they may do. What
    they read (globals, attributes, cells) counts as it is then, also if it was something else when create_block_mask ran. Inside
    torch.compile they break the graph, as words do; a Pattern or a name does not.

    Returns out, (out, lse) with return_lse, or (out, AuxOutput) with return_aux. kernel_options have no effect: heddle tunes.
    """
    if kernel_options is not None and not _direct.is_compiling():
        _warn_of_options()
    _check_requests(return_lse, return_aux)
    for name, each in (("query", query), ("key", key), ("value", value)):
        if getattr(each, "ndim", None) != 4:
            got = type(each).__name__ if not hasattr(each, "shape") else f"one of {list(each.shape)}"
            raise InvalidArgumentError(f"flex_attention: {name}: expected a tensor [batch, heads, length, head_dim], got {got}")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise InvalidArgumentError(f"flex_attention: expected as many heads in key as in query, {query.shape[1]}, got {key.shape[1]}; "
                                   "or give enable_gqa=True")
    _check_lengths(block_mask, query.shape[2], key.shape[2])
    made, tensors = _pattern_of(block_mask, score_mod)
    q, k, v = (each.transpose(1, 2) for each in (query, key, value))
    wants_lse = return_lse or (return_aux is not None and return_aux.lse)
    results = attention(q, k, v, made, scale=scale, return_lse=wants_lse, **tensors, **arguments)
    out, lse = results if wants_lse else (results, None)
    out = out.transpose(1, 2)
    if return_aux is not None:
        return out, AuxOutput(lse=lse)
    return (out, lse) if return_lse else out


def _check_requests(return_lse, return_aux):
    if return_aux is None:
        return
    if return_lse:
        raise InvalidArgumentError("flex_attention: expected return_lse or return_aux, got both; return_aux=AuxRequest(lse=True) asks for the same")
    if return_aux.max_scores:
        raise UnsupportedError("flex_attention: return_aux: heddle returns no max_scores; lse bounds them from above")


def _check_lengths(block_mask, rows, keys):
    """Of a BlockMask, which says nothing of tokens behind those that it was made for."""
    most = getattr(block_mask, "seq_lengths", None)
    if most is not None and (rows > most[0] or keys > most[1]):
        raise InvalidArgumentError(f"flex_attention: block_mask: was made for {most[0]} queries and {most[1]} keys, got {rows} and {keys}")


@functools.lru_cache(maxsize=None)
def _warn_of_options():
    warnings.warn("flex_attention: kernel_options have no effect: heddle.tune searches for a faster kernel", stacklevel=3)


def _pattern_of(block_mask, score_mod):
    """(the pattern, the tensors that it reads beside those of the call's arguments)."""
    if score_mod is None and isinstance(block_mask, (str, Pattern)):
        return block_mask, {}  # nothing to make: inside one graph too
    if _direct.is_compiling():
        from . import _torch_outside
        return _torch_outside.pattern_now(block_mask, score_mod)
    return _flex.pattern_now(block_mask, score_mod)
