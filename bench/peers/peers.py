"""What others offer on this machine; providers.py names them. Each takes a workload and its q, k, v ([b, n, h, d]) and gives a Launch, or None
where it does not apply. A peer may make beforehand all that does not depend on the values; what it makes is its set-up."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from peers.launch import Launch
from peers.masks import Causal, Columns, Full, Window
from peers.reference import keeper, score_of, score_tensor
from peers.tensor_masks import Documents

sdpa = torch.nn.functional.scaled_dot_product_attention


def with_backend(backend):
    return lambda: sdpa_kernel(backend)


def heads_second(*tensors):
    return (tensor.transpose(1, 2) for tensor in tensors)


def _sdpa(q, k, v, causal):
    q, k, v = heads_second(q, k, v)
    shared = q.shape[1] != k.shape[1]
    return lambda: sdpa(q, k, v, is_causal=causal, enable_gqa=shared).transpose(1, 2)


def flash(q, k, v, left=None, right=None, causal=False):
    """FlashAttention-2 as torch ships it, with its window: out [b, n, h, d] and lse [b, h, n]."""
    out, lse, *_ = torch.ops.aten._flash_attention_forward(
        q, k, v, None, None, q.shape[1], k.shape[1], 0.0, causal, False, window_size_left=left, window_size_right=right)
    return out, lse


def cudnn(workload, q, k, v):
    """cuDNN where one call computes the pattern; for a block of first keys those keys alone, for first and last keys
    both blocks copied together beforehand."""
    context = with_backend(SDPBackend.CUDNN_ATTENTION)
    mask = workload.mask
    if workload.score:
        return None
    if isinstance(mask, (Full, Causal)):
        return Launch(_sdpa(q, k, v, isinstance(mask, Causal)), context)
    if isinstance(mask, Columns):
        def copies():
            return [torch.cat([t[:, :mask.first], t[:, workload.seqlen - mask.last:]], 1) for t in (k, v)]
        return Launch(_sdpa(q, *copies(), False), context, copies)
    return None


def fa2(workload, q, k, v):
    mask = workload.mask
    if workload.score:
        return None
    if isinstance(mask, (Full, Causal)):
        return Launch(_sdpa(q, k, v, isinstance(mask, Causal)), with_backend(SDPBackend.FLASH_ATTENTION))
    if isinstance(mask, Window):
        return Launch(lambda: flash(q, k, v, mask.left, mask.right))
    return None


def fa2_varlen(workload, q, k, v):
    """FlashAttention-2 on ragged batches: packed rows and the offsets of documents, causal from the last key on."""
    mask = workload.mask
    if not isinstance(mask, Documents) or workload.batch != 1:
        return None

    def offsets_on_device():
        return [torch.tensor(offsets, dtype=torch.int32, device=q.device) for offsets in (mask.queries, mask.keys)]

    starts = offsets_on_device()
    longest = [max(mask.length(offsets, s) for s in range(len(offsets) - 1)) for offsets in (mask.queries, mask.keys)]
    packed = [tensor[0] for tensor in (q, k, v)]
    return Launch(lambda: torch.ops.aten._flash_attention_forward(
        *packed, *starts, *longest, 0.0, True, False, window_size_left=mask.left, window_size_right=None if mask.left is None else 0)[0][None],
        set_up=offsets_on_device)


def flex(workload, q, k, v):
    """FlexAttention, compiled; the block mask is made beforehand."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    torch.compiler.reset()  # after eight workloads it would give up and not compile
    heads, n = workload.heads, workload.seqlen
    keep, change = keeper(workload, q.device), score_of(workload, q.device)

    def mask_mod(b, h, i, j):
        return keep(h, i, j)

    compiled_maker = torch.compile(create_block_mask)

    def make_mask():
        return compiled_maker(mask_mod, 1, heads if workload.differs_by_head else 1, workload.rows, n, q.device)

    block_mask = make_mask()
    score_mod = (lambda score, b, h, i, j: change(score, h, i, j)) if workload.score or workload.has_copies else None
    if workload.score == "sink":
        return _flex_with_sink(score_tensor(workload, q.device), block_mask, make_mask, *heads_second(q, k, v))
    compiled = torch.compile(flex_attention, dynamic=False)
    q, k, v = heads_second(q, k, v)
    return Launch(lambda: compiled(q, k, v, score_mod=score_mod, block_mask=block_mask, enable_gqa=heads != workload.kv).transpose(1, 2),
                  set_up=make_mask)


def _flex_with_sink(sinks, block_mask, make_mask, q, k, v):
    """The sink takes its share of the weights afterwards, in the same compiled function."""
    from torch.nn.attention.flex_attention import flex_attention

    def attend(q, k, v):
        out, lse = flex_attention(q, k, v, block_mask=block_mask, return_lse=True)
        return (out * torch.sigmoid(lse - sinks[:, None]).unsqueeze(-1)).to(q.dtype)

    compiled = torch.compile(attend, dynamic=False)
    return Launch(lambda: compiled(q, k, v).transpose(1, 2), set_up=make_mask)


def sdpa_masked(workload, q, k, v):
    """SDPA with a mask of every pair, a bias where scores change by a sum; made beforehand."""
    if workload.score in ("softcap", "sink"):
        return None
    mask = _dense_mask(workload, q)
    q, k, v = heads_second(q, k, v)
    return Launch(lambda: sdpa(q, k, v, attn_mask=mask, enable_gqa=workload.heads != workload.kv).transpose(1, 2),
                  set_up=lambda: _dense_mask(workload, q))


def _dense_mask(workload, q):
    """Of q's dtype and device."""
    n, keep, change = workload.seqlen, keeper(workload, q.device), score_of(workload, q.device)
    is_bias = workload.score or workload.has_copies
    heads = workload.heads if workload.differs_by_head or is_bias else 1
    mask = torch.empty(1, heads, workload.rows, n, dtype=q.dtype if is_bias else torch.bool, device=q.device)
    keys = torch.arange(n, device=q.device)
    for head in range(heads):
        for first in range(0, workload.rows, 2048):
            rows = torch.arange(first, min(first + 2048, workload.rows), device=q.device)[:, None]
            kept = keep(torch.full_like(rows, head), rows, keys).expand(len(rows), n)
            if is_bias:
                kept = change(torch.zeros_like(kept, dtype=torch.float32), head, rows, keys).masked_fill(~kept, -torch.inf)
            mask[0, head, first:first + len(rows)] = kept
    return mask
