"""Keys that lie on the ranks of a group, and queries that every rank has: each rank computes its part in fp32, meanwhile ranks tell each other what
they come with (_agreement.py), parts are exchanged at once and merged by every rank alike."""
import re
from typing import NamedTuple

import torch

from . import _agreement, _call, _shares, _torch, calls, patterns, serve
from .errors import InvalidArgumentError, UnsupportedError


def checked_ranges(ranges, group, rows):
    """The rank's own, of those of all ranks, which lie one behind the other."""
    try:
        ranges = [(int(first), int(last)) for first, last in ranges]
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"decode: keys: expected a range (first, last) for each rank, got {ranges!r}") from None
    ends = [0, *(last for _, last in ranges)]
    if len(ranges) != group.ranks or any(first != before or last < first for (first, last), before in zip(ranges, ends)):
        raise InvalidArgumentError(f"decode: keys: expected a range for each of {group.ranks} ranks, each from the end of the one before, got {ranges}")
    first, last = ranges[group.rank]
    if last - first != rows:
        raise InvalidArgumentError(f"decode: k: expected {last - first} rows on rank {group.rank}, got {rows}")
    return ranges


def part_of(pattern, what):
    """The pattern of a rank's call."""
    part = patterns.part_of(pattern)
    if re.search(r"attn\.softmax[^\n]* sink %", part.text):
        raise UnsupportedError(f"{what}: the pattern has a sink, which every rank's part would add: give all keys to one rank")
    return part


def check_tensors(what, group, **tensors):
    device = _agreement.device_of(group)
    for name, each in tensors.items():
        if not isinstance(each, torch.Tensor):
            raise InvalidArgumentError(f"{what}: {name}: expected a PyTorch tensor, got {type(each).__name__}")
        if each.dim() != 4:
            raise InvalidArgumentError(f"{what}: {name}: expected 4 dimensions, got {list(each.shape)}")
        if each.device != device:
            raise InvalidArgumentError(f"{what}: {name}: expected a tensor in {_call.place(group.device)}, where the group computes, got one on {each.device}")


def checked_parts(device, cu_seqlens_q, **numbers):
    """k_origins, seqused_k and whole_k, and the queries of each sequence where offsets say them: int32 [sequences] each."""
    def check(name, tensor, length):
        if not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.int32 or tensor.device != device or tensor.dim() != 1 or length not in (None, len(tensor)):
            got = f"{tensor.dtype} {list(tensor.shape)} in {tensor.device}" if isinstance(tensor, torch.Tensor) else repr(tensor)
            raise InvalidArgumentError(f"paged_attention: {name}: expected torch.int32 [{'sequences' if length is None else length}] in {device} as q, got {got}")
    check("whole_k", numbers["whole_k"], None)
    sequences = len(numbers["whole_k"])
    for name, tensor in numbers.items():
        check(name, tensor, sequences)
    parts = [numbers[name] for name in ("k_origins", "seqused_k", "whole_k")]
    if cu_seqlens_q is None:
        return parts
    check("cu_seqlens_q", cu_seqlens_q, sequences + 1)
    return [*parts, cu_seqlens_q.diff()]


def words_of(q, v, scale, arguments):
    """Of what must be alike on all ranks: of tensors of the pattern their types and sizes."""
    given = {name: (str(each.dtype), tuple(each.shape)) if isinstance(each, torch.Tensor) else each for name, each in sorted(arguments.items())}
    return None if scale is None else float(scale), tuple(q.shape), tuple(v.shape[2:]), str(q.dtype), given


def size_of_results(q, v):
    """Elements of the message of a part; None where q and v do not say it."""
    if any(not isinstance(each, torch.Tensor) or each.dim() != 4 for each in (q, v)):
        return None
    batch, rows, heads, _ = q.shape
    return batch * rows * heads * (v.shape[3] + 1)


class Results(NamedTuple):
    """Of a part, behind each other in one message."""
    message: torch.Tensor
    out: torch.Tensor
    lse: torch.Tensor

    @classmethod
    def of(cls, q, v):
        """Without a value."""
        return cls.parted(q.new_empty(size_of_results(q, v), dtype=torch.float32), (*q.shape[:3], v.shape[3]))

    @classmethod
    def parted(cls, message, shape):
        """A message, or those of all ranks."""
        batch, rows, heads, _ = shape
        lse = batch * rows * heads
        return cls(message, message[..., :-lse].unflatten(-1, shape), message[..., -lse:].unflatten(-1, (batch, heads, rows)))

    def of_ranks(self, group):
        """Stacked. Collective."""
        return Results.parted(group.meeting.gather(group.rank, self.message), self.out.shape)


def own_part(q, k, v, part, first, q_origin, total, scale, arguments):
    """Of no keys 0 and -inf."""
    own = Results.of(q, v)
    if k.shape[1]:
        wholes = {each.name: q_origin + q.shape[1] if each.name == "whole_queries" else total for each in part.arguments if each.of_whole}
        calls.attention(q, k, v, part, scale=scale, out=own.out, lse=own.lse, q_origin=q_origin, k_origin=first, **wholes, **arguments)
    else:
        own.out.zero_(), own.lse.fill_(-torch.inf)
    return own


def merged(results, is_right):
    """The same bits on every rank; NaN unless they came with the same."""
    shares = torch.softmax(results.lse, 0).nan_to_num(0)  # where no rank has a key, 0; NaN of results stays
    shares = torch.where(is_right, shares, torch.nan).transpose(2, 3)[..., None]
    return (results.out * shares).sum(0), torch.where(is_right, torch.logsumexp(results.lse, 0), torch.nan)


def decode(group, q, k, v, pattern, keys, q_origin, scale, arguments):
    """out in fp32, and lse, as of distributed.decode."""
    def checked():
        whole = patterns.resolved(pattern)
        part = part_of(whole, "decode")
        check_tensors("decode", group, q=q, k=k, v=v)
        ranges = checked_ranges(keys, group, k.shape[1])
        total = ranges[-1][1]
        origin = total - q.shape[1] if q_origin is None else q_origin
        views = {name: _torch.view(each, name) for name, each in dict(arguments, q=q).items() if isinstance(each, torch.Tensor)}
        _shares.check_tensors(whole, views, (q.shape[0], q.shape[2], q.shape[1], total))
        words = whole.digest, ranges, origin, *words_of(q, v, scale, arguments)
        return _agreement.Own(words, lambda: own_part(q, k, v, part, ranges[group.rank][0], origin, total, scale, arguments))
    results = size_of_results(q, v)
    return merged(*_agreement.exchanged(group, checked, None if results is None else _agreement.Messages(1, results)))


def paged_attention(group, q, k_cache, v_cache, page_table, pattern, numbers, cu_seqlens_q, scale, descale, arguments):
    """out in fp32, and lse, as of distributed.paged_attention; `numbers`: whole_k, k_origins and seqused_k."""
    def checked():
        whole = patterns.resolved(pattern)
        part = part_of(whole, "paged_attention")
        check_tensors("paged_attention", group, q=q, k_cache=k_cache, v_cache=v_cache)
        parts = checked_parts(q.device, cu_seqlens_q, **numbers)
        words = whole.key, len(parts), tuple(numbers["whole_k"].shape), *words_of(q, v_cache, scale, arguments)

        def compute():
            own = Results.of(q, v_cache)
            serve.paged_attention(q, k_cache, v_cache, page_table, pattern=part, cu_seqlens_q=cu_seqlens_q, scale=scale, out=own.out, lse=own.lse,
                                  descale=descale, **numbers, **arguments)
            return own
        return _agreement.Own(words, compute, parts)
    results, sequences = size_of_results(q, v_cache), [len(each) for each in numbers.values() if isinstance(each, torch.Tensor) and each.dim() == 1]
    messages = _agreement.Messages(1 + (3 if cu_seqlens_q is None else 4) * sequences[0], results) if results is not None and sequences else None
    return merged(*_agreement.exchanged(group, checked, messages))
