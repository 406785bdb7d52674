"""The lists of PyTorch's BlockMask as the word csr: what a BlockMask without a mask_mod keeps is all of the blocks that it lists, full and partial.

Lists are made on the device of the BlockMask's, where their number of entries is waited for; they are kept as long as the BlockMask and
made anew when its tensors were written to.
"""
import math
import weakref

import torch

from . import words

_LISTS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
_made = weakref.WeakKeyDictionary()  # BlockMask -> (state of its tensors, (mask, tensors))


def mask_of(block_mask):
    """(a mask in words, the tensors that it reads)."""
    tensors = [each for each in (getattr(block_mask, name) for name in _LISTS) if each is not None]
    if any(each.is_inference() for each in tensors):  # which do not count what is written to them
        return _lists_of(block_mask)
    state = [(id(each), each._version) for each in tensors]
    known = _made.get(block_mask)
    if known is None or known[0] != state:
        known = _made[block_mask] = state, _lists_of(block_mask)
    return known[1]


def _lists_of(block_mask):
    rows, keys = block_mask.seq_lengths
    block_q, block_k = block_mask.BLOCK_SIZE
    side = math.gcd(block_q, block_k)  # of the square blocks that both sizes are made of
    listed = _listed(block_mask, -(-keys // block_k)).repeat_interleave(block_q // side, -2).repeat_interleave(block_k // side, -1)
    listed = listed[..., :-(-rows // side), :-(-keys // side)]
    counts = listed.sum(-1, dtype=torch.int32)
    ends = counts.flatten().cumsum(0, dtype=torch.int32).reshape(counts.shape)
    offsets = torch.cat([ends[..., :1] - counts[..., :1], ends], -1)
    indices = torch.cat([listed.nonzero()[:, -1].int(), offsets.new_zeros(1)])  # one more: an empty tensor has no memory
    shape = "x".join("1" if size == 1 else "?" for size in offsets.shape[:2])
    mask = words.csr(words.tensor("block_offsets", shape + "x?xi32"), words.tensor("block_indices", "?xi32")).blocks(side)
    return mask, {"block_offsets": offsets, "block_indices": indices}


def _listed(block_mask, columns):
    """[batch, heads, query blocks, key blocks]: whether a block is in one of its row's lists."""
    made = None
    for counts, indices in zip(*(iter([getattr(block_mask, name) for name in _LISTS]),) * 2):
        if counts is None:
            continue
        is_entry = torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]
        listed = torch.zeros((*indices.shape[:-1], columns + 1), dtype=torch.bool, device=indices.device)
        listed.scatter_(-1, torch.where(is_entry, indices, columns).long(), True)
        made = listed if made is None else made | listed
    made = made[..., :columns]
    return made.reshape((1,) * (4 - made.ndim) + tuple(made.shape))
