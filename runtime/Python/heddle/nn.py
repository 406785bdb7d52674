"""Modules with the shapes that people already use: dilated attention, LongNet's mixture, block-sparse attention.

Inputs are [batch, length, heads, head_dim], or [batch, length, embed_dim] of the multi-head modules. Any length will do: a last segment or
block may be short, and rows that no branch keeps are 0. There is no dropout.
"""
from typing import Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from . import _torch_op, _torch_pages_op, _torch_quantize_op, words  # noqa: F401 - programs that torch.export saved need the ops
from .calls import attention
from .errors import InvalidArgumentError
from .patterns import Pattern, pattern, resolved

__all__ = ["BlockSparseAttention", "DilatedAttention", "LongNetAttention", "MultiheadDilatedAttention", "PatternAttention", "dilated_pattern",
           "longnet_pattern", "block_sparse_pattern"]


def _lists(segment_lengths, dilation_rates):
    try:
        return list(segment_lengths), list(dilation_rates)
    except TypeError:
        raise InvalidArgumentError(f"expected lists of segment_lengths and dilation_rates, got {segment_lengths!r} and {dilation_rates!r}") from None


def _branches(what, segment_lengths, dilation_rates):
    lengths, rates = _lists(segment_lengths, dilation_rates)
    if len(lengths) != len(rates) or not lengths:
        raise InvalidArgumentError(f"{what}: expected as many segment_lengths as dilation_rates, at least one, got {len(lengths)} and {len(rates)}")
    return tuple(zip(lengths, rates))


def _base(is_causal):
    return words.causal if is_causal else words.full


def dilated_pattern(segment_lengths: Sequence[int], dilation_rates: Sequence[int], is_causal: bool = False) -> Pattern:
    """Each group of heads has one segment length and one rate; group i keeps the positions of a segment with pos % rate == i % rate.
    Heads that do not divide: the first groups have one more."""
    masks = (_base(is_causal).dilate(rate, rule="group").segment(words.static(length))
             for length, rate in _branches("dilated_pattern", segment_lengths, dilation_rates))
    return pattern(words.heads(*masks), name="dilated")


def longnet_pattern(segment_lengths: Sequence[int], dilation_rates: Sequence[int], is_causal: bool = True, rule: str = "block") -> Pattern:
    """Every head has every branch, mixed with weights exp(lse): a key in two branches counts twice. Head h of H keeps the class
    h / ceil(H / rate) of a segment (rule "block"), or h % rate ("modulo")."""
    masks = (_base(is_causal).dilate(rate, rule=rule).segment(words.static(length))
             for length, rate in _branches("longnet_pattern", segment_lengths, dilation_rates))
    return pattern(words.lse(*masks, gradient="detached"), name="longnet")


def block_sparse_pattern(block_size: int = 128, local_blocks: int = 2, global_blocks: int = 0, random_blocks: int = 0, seed: int = 0,
                         stride: int = 0, is_causal: bool = False) -> Pattern:
    """A query sees the blocks up to `local_blocks` away from its own (-1: none), `global_blocks` at the start, which see and are seen by
    everything, `random_blocks` random ones, and every `stride`-th. One softmax for each row. Causal: of these the keys up to itself, and
    global blocks are seen only."""
    w = words
    parts = []
    if local_blocks >= 0:
        parts.append(w.window(w.size("local_blocks", local_blocks), 0 if is_causal else w.size("local_blocks", local_blocks)))
    if global_blocks:
        parts.append(w.cols(w.size("global_blocks", global_blocks)))
        parts += [] if is_causal else [w.rows(w.size("global_blocks", global_blocks))]
    if random_blocks:
        parts.append(w.random(w.size("random_blocks", random_blocks), w.size("seed", seed)))
    if stride:
        parts.append(w.stride("k", stride, at=0))
    if not parts:
        raise InvalidArgumentError("block_sparse_pattern: expected local, global, random or strided blocks, got none")
    mask = parts[0]
    for part in parts[1:]:
        mask = mask | part
    mask = mask.blocks(block_size)
    return pattern(mask & w.causal if is_causal else mask, name="block_sparse")


def _refuse_dropout(dropout):
    if dropout:
        raise InvalidArgumentError(f"dropout: expected 0.0, heddle has none, got {dropout}")


class _Shared(nn.Module):
    """A module whose sequence may lie over ranks."""

    over_ranks = None

    def over(self, group=None, *, layout: str = "contiguous", whole: bool = False, gather: bool = False, **way):
        """Returns the module itself, whose calls are from now on those of a group, as heddle.distributed.attention has them. Parameters and their
        names stay what they are; dimension 1 of inputs and output are the rank's rows, part r of `layout`.

        group   of torch.distributed (None: the default one), or a heddle.distributed.Group
        whole   inputs have all rows, alike on every rank: the module cuts them
        gather  the output has all rows on every rank (heddle.distributed.gather)
        way     form, seqlen, calls and placement_free of heddle.distributed.attention
        """
        from . import _over_ranks
        self.over_ranks = _over_ranks.OverRanks.of(group, whole, gather, layout=layout, **way)
        return self


def _attend(over_ranks, q, k, v, pattern, scale):
    return attention(q, k, v, pattern, scale=scale) if over_ranks is None else over_ranks.attention(q, k, v, pattern, scale)


class PatternAttention(_Shared):
    """Attention of any pattern, as heddle.attention takes it; `values` are those of its sizes and numbers.

    >>> PatternAttention("sliding_window", left=255).pattern.values
    {'left': 255}
    """

    def __init__(self, pattern, softmax_scale: Optional[float] = None, **values):
        super().__init__()
        made = resolved(pattern)
        self.softmax_scale, self.pattern = softmax_scale, made(**values) if values else made

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """query [batch, length, heads, head_dim]; key and value with as many heads, or a divisor of them. Returns the shape of query."""
        return _attend(self.over_ranks, query, key, value, self.pattern, self.softmax_scale)


class _Attention(_Shared):
    """Patterns for both values of is_causal, made when they are first needed."""

    def __init__(self, softmax_scale, attention_dropout):
        super().__init__()
        _refuse_dropout(attention_dropout)
        self.softmax_scale = softmax_scale
        self.patterns = {is_causal: self.make_pattern(is_causal) for is_causal in (False, True)}

    def forward(self, query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False) -> Tensor:
        """query [batch, length, heads, head_dim]; key and value with as many heads, or a divisor of them. Returns the shape of query."""
        return self._of(query, key, value, is_causal, self.over_ranks)

    def _of(self, query, key, value, is_causal, over_ranks):
        return _attend(over_ranks, query, key, value, self.patterns[bool(is_causal)], self.softmax_scale)


class DilatedAttention(_Attention):
    """Dilated attention, heads split into a group for each segment length and rate (`dilated_pattern`).

    divide_by_groups: divides the output by the number of groups, as some implementations do. The division of each channel by its sum
    over the sequence that the first public implementation has is not offered: it is unbounded, and not causal.

    >>> attention = DilatedAttention([2048, 4096], [1, 2])
    >>> attention.patterns[True].name
    'dilated'
    """

    def __init__(self, segment_lengths: Sequence[int], dilation_rates: Sequence[int], softmax_scale: Optional[float] = None,
                 attention_dropout: float = 0.0, *, divide_by_groups: bool = False):
        self.segment_lengths, self.dilation_rates = _lists(segment_lengths, dilation_rates)
        self.divide_by_groups = divide_by_groups
        super().__init__(softmax_scale, attention_dropout)

    def make_pattern(self, is_causal):
        return dilated_pattern(self.segment_lengths, self.dilation_rates, is_causal)

    def _of(self, query, key, value, is_causal, over_ranks):
        out = super()._of(query, key, value, is_causal, over_ranks)
        return out / len(self.segment_lengths) if self.divide_by_groups else out


class LongNetAttention(_Attention):
    """LongNet's mixed attention: every head runs every branch (`longnet_pattern`)."""

    def __init__(self, segment_lengths: Sequence[int], dilation_rates: Sequence[int], softmax_scale: Optional[float] = None,
                 attention_dropout: float = 0.0, *, rule: str = "block"):
        self.segment_lengths, self.dilation_rates = _lists(segment_lengths, dilation_rates)
        self.rule = rule
        super().__init__(softmax_scale, attention_dropout)

    def make_pattern(self, is_causal):
        return longnet_pattern(self.segment_lengths, self.dilation_rates, is_causal, self.rule)


class BlockSparseAttention(_Attention):
    """Block-sparse attention with one softmax for each row (`block_sparse_pattern`). Blocks that a program chooses at run time are
    heddle.library("block_csr")."""

    def __init__(self, block_size: int = 128, local_blocks: int = 2, global_blocks: int = 0, random_blocks: int = 0, seed: int = 0,
                 stride: int = 0, softmax_scale: Optional[float] = None, attention_dropout: float = 0.0):
        self.options = dict(block_size=block_size, local_blocks=local_blocks, global_blocks=global_blocks, random_blocks=random_blocks, seed=seed,
                            stride=stride)
        super().__init__(softmax_scale, attention_dropout)

    def make_pattern(self, is_causal):
        return block_sparse_pattern(is_causal=is_causal, **self.options)


class MultiheadDilatedAttention(_Shared):
    """Projections, dilated attention, a LayerNorm on the merged heads (layer_norm=False: none) and the output projection.

    mixed=True mixes all branches in every head (LongNetAttention) instead of splitting the heads into groups. `forward` returns
    (output, None), as torch.nn.MultiheadAttention does without weights.
    """

    def __init__(self, embed_dim: int, num_heads: int, dilation_rates: Sequence[int], segment_lengths: Sequence[int], dropout: float = 0.0,
                 bias: bool = True, layer_norm: bool = True, layer_norm_eps: float = 1e-5, gamma_init: float = 1.0, device=None, dtype=None, *,
                 mixed: bool = False):
        super().__init__()
        if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
            raise InvalidArgumentError(f"embed_dim: expected a multiple of num_heads, got {embed_dim} and {num_heads}")
        if (embed_dim // num_heads) % 8:
            raise InvalidArgumentError(f"embed_dim / num_heads: expected a multiple of 8, got {embed_dim // num_heads}")
        _refuse_dropout(dropout)
        self.num_heads, self.gamma_init = num_heads, gamma_init
        made = dict(bias=bias, device=device, dtype=dtype)
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(embed_dim, embed_dim, **made) for _ in range(4))
        kind = LongNetAttention if mixed else DilatedAttention
        self.attention = kind(segment_lengths, dilation_rates, attention_dropout=dropout)
        self.norm = nn.LayerNorm(embed_dim, eps=layer_norm_eps, device=device, dtype=dtype) if layer_norm else None
        self.reset_parameters()

    def reset_parameters(self):
        """Xavier's normal distribution; gamma_init is the gain of the value and output projections."""
        gains = ((self.q_proj, 1.0), (self.k_proj, 1.0), (self.v_proj, self.gamma_init), (self.out_proj, self.gamma_init))
        for layer, gain in gains:
            nn.init.xavier_normal_(layer.weight, gain=gain)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, is_causal: bool = False) -> Tuple[Tensor, None]:
        """Each [batch, length, embed_dim]."""
        if self.over_ranks is None:
            return self._computed(query, key, value, is_causal, self.attention), None
        pattern = self.attention.patterns[bool(is_causal)]
        return self.over_ranks.projected((query, key, value), self.num_heads, pattern, lambda q, k, v, over: self._computed(
            q, k, v, is_causal, lambda *tensors, is_causal: self.attention._of(*tensors, is_causal, over))), None

    def _computed(self, query, key, value, is_causal, attend):
        q, k, v = (layer(each).unflatten(-1, (self.num_heads, -1)) for layer, each in
                   ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        merged = attend(q, k, v, is_causal=is_causal).flatten(-2)
        return self.out_proj(merged if self.norm is None else self.norm(merged))
