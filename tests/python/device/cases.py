"""Patterns with the pairs that they keep, and attention by its definition in fp64 and in the precision of a call."""
import torch

import heddle
from heddle import nn
from heddle.words import causal, cols, documents, tensor, window


def reference(q, k, v, copies, sink=None):
    """In fp64 from how often each pair counts, [heads or 1, rows, keys]; out and lse."""
    heads = q.shape[2]
    q, k, v = (each.double().transpose(1, 2) for each in (q, k, v))
    k, v = (each.repeat_interleave(heads // each.shape[1], 1) for each in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + copies.double().log()
    lse = torch.logsumexp(scores, -1)
    if sink is not None:
        lse = torch.logaddexp(lse, torch.full_like(lse, sink))
    weights = torch.exp(scores - lse.clamp(min=-1e300)[..., None])
    return (weights @ v).transpose(1, 2), lse


def same_precision(q, k, v, copies):
    """PyTorch's plain attention in the dtype of q, with a mask that adds log(copies)."""
    mask = copies.double().log().to(q.dtype).expand(q.shape[2], -1, -1)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        out = torch.nn.functional.scaled_dot_product_attention(*(each.transpose(1, 2) for each in (q, k, v)), attn_mask=mask, enable_gqa=True)
    return out.transpose(1, 2).double().nan_to_num()  # rows that keep nothing


def segment(n, w, r, offset, is_causal, device):
    i = torch.arange(n, device=device)
    inside = (i[:, None] // w == i // w) & (i[:, None] % w % r == offset) & (i % w % r == offset)
    return inside & (i <= i[:, None]) if is_causal else inside


def cases(n, device):
    i = torch.arange(n, device=device)
    q, k = i[:, None], i[None]
    cu = torch.tensor([0, 100, 100, 401, n], dtype=torch.int32, device=device)
    document = torch.searchsorted(cu, i.int(), right=True)
    pairs = lambda lengths, rates, offset: [segment(n, w, r, offset(r), True, device) for w, r in zip(lengths, rates)]  # noqa: E731
    yield "causal", (k <= q)[None], {}
    yield "sliding_window", ((k <= q) & (q - k <= 99))[None], {"left": 99}
    yield "longformer", (((q - k).abs() <= 20) | (q < 7) | (k < 7))[None], {"half": 20, "globals": 7}
    yield heddle.pattern(causal & (window(left=30) | cols(5)), name="words"), ((k <= q) & ((q - k <= 30) | (k < 5)))[None], {}
    yield heddle.pattern(documents(causal, tensor("cu", "?xi32")), name="documents"), ((document[:, None] == document) & (k <= q))[None], {"cu": cu}
    mixed = [sum(each.int() for each in pairs((64, 256), (1, 2), lambda r, h=h: h // -(-4 // r))) for h in range(4)]
    yield nn.longnet_pattern([64, 256], [1, 2]), torch.stack(mixed), {}
    groups = [segment(n, *((64, 1, 0) if h < 2 else (256, 2, 1)), False, device) for h in range(4)]
    yield nn.dilated_pattern([64, 256], [1, 2]), torch.stack(groups), {}
    yield nn.block_sparse_pattern(64, 1, 1, is_causal=True), (((q // 64 - k // 64 <= 1) | (k // 64 < 1)) & (k <= q))[None], {}
