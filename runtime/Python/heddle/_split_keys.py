"""Keys that lie on the ranks of a group, and queries that every rank has: each rank computes its part in fp32, meanwhile ranks tell each other what
they come with, parts are exchanged at once and merged by every rank alike."""
import functools
import re
import zlib
from typing import NamedTuple

import torch

from . import calls, patterns
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


def part_of(pattern, group, what):
    """The pattern of a rank's call."""
    if group.meeting is None:
        raise UnsupportedError(f"{what}: the group carries messages of calls alone: take Group.of or Group.local")
    part = patterns.part_of(pattern)
    if re.search(r"attn\.softmax[^\n]* sink %", part.text):
        raise UnsupportedError(f"{what}: the pattern has a sink, which every rank's part would add: give all keys to one rank")
    return part


def check_dimensions(what, **tensors):
    for name, each in tensors.items():
        if each.dim() != 4:
            raise InvalidArgumentError(f"{what}: {name}: expected 4 dimensions, got {list(each.shape)}")


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


class Results(NamedTuple):
    """Of a part, behind each other in one message."""
    message: torch.Tensor
    out: torch.Tensor
    lse: torch.Tensor

    @classmethod
    def of(cls, q, value_dim):
        """Without a value."""
        batch, rows, heads, _ = q.shape
        return cls.parted(q.new_empty(batch * rows * heads * (value_dim + 1), dtype=torch.float32), (batch, rows, heads, value_dim))

    @classmethod
    def parted(cls, message, shape):
        """A message, or those of all ranks."""
        batch, rows, heads, _ = shape
        lse = batch * rows * heads
        return cls(message, message[..., :-lse].unflatten(-1, shape), message[..., -lse:].unflatten(-1, (batch, heads, rows)))


def own_part(q, k, v, part, first, q_origin, total, scale, arguments):
    """Of no keys 0 and -inf."""
    own = Results.of(q, v.shape[3])
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


def are_wholes(parts):
    """Of each sequence: the parts of ranks have each of its keys once. `parts` [ranks, 3 or 4, sequences]: first keys, how many, and all of the whole;
    queries, which are alike."""
    firsts, counts, wholes, *queries = parts.long().unbind(1)
    order = torch.argsort(torch.where(counts == 0, wholes, firsts), dim=0, stable=True)  # a part without keys is anywhere
    firsts, counts = (each.gather(0, order) for each in (firsts, counts))
    ends = counts.cumsum(0)
    are_right = ((counts == 0) | (firsts == ends - counts)).all(0) & (ends[-1] == wholes).all(0)
    return are_right & (queries[0] == queries[0][0]).all(0) if queries else are_right


def refuse_parts(parts):
    """In host memory."""
    for sequence in torch.nonzero(~are_wholes(parts)).flatten().tolist():
        firsts, counts, wholes, *queries = parts[..., sequence].unbind(1)
        if queries and not bool((queries[0] == queries[0][0]).all()):
            raise InvalidArgumentError(f"paged_attention: cu_seqlens_q: sequence {sequence}: expected as many queries on all ranks, got {queries[0].tolist()}")
        if not bool((wholes == wholes[0]).all()):
            raise InvalidArgumentError(f"paged_attention: whole_k: sequence {sequence}: expected one number on all ranks, got {wholes.tolist()}")
        got = ", ".join(f"{first} to {first + count}" for first, count in zip(firsts.tolist(), counts.tolist()))
        raise InvalidArgumentError(f"paged_attention: k_origins: sequence {sequence}: expected each of its {int(wholes[0])} keys in the part of one rank, "
                                   f"got {got}")


def refuse_others(words, word, group):
    """In host memory."""
    ranks = torch.nonzero(words.flatten() != word).flatten().tolist()
    if ranks:
        raise InvalidArgumentError(f"the ranks of a group disagree: ranks {ranks} come with something else than rank {group.rank}: pattern, keys, "
                                   "position of the queries, scale or sizes")


def agreed(words, group, device, parts):
    """Whether all ranks come with the same `words`, and their parts with each key once: a bool tensor."""
    own = torch.full((1,), zlib.crc32(repr(words).encode()) & 0x7fffffff, dtype=torch.int32, device=device)
    if device.type == "cpu":
        refuse_others(group.meeting.gather(group.rank, own), own, group)  # or else messages may differ in length
    of_ranks = group.meeting.gather(group.rank, torch.cat((own, *parts)))
    is_right = (of_ranks[:, 0] == own).all()
    if not parts:
        return is_right
    of_ranks = of_ranks[:, 1:].unflatten(1, (len(parts), len(parts[0])))
    if device.type == "cpu":
        refuse_parts(of_ranks)
    return is_right & are_wholes(of_ranks).all()


@functools.lru_cache(maxsize=None)
def second_stream(device):
    return torch.cuda.Stream(device)


class Agreement:
    """Of ranks, on a GPU beside what the stream does meanwhile, where nobody waits to be told; in host memory the ranks that come with something else
    are refused at once. `parts`: as checked_parts gives them."""

    def __init__(self, words, group, device, parts=()):
        if device.type != "cuda":
            self._is_right = agreed(words, group, device, parts)
            return
        self._stream = second_stream(device)
        self._stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(self._stream):
            self._is_right = agreed(words, group, device, parts)

    def result(self):
        if self._is_right.is_cuda:
            stream = torch.cuda.current_stream(self._is_right.device)
            stream.wait_stream(self._stream)
            self._is_right.record_stream(stream)
        return self._is_right


def together(own, agreement, group):
    """out in fp32, and lse, of all ranks' results."""
    of_ranks = Results.parted(group.meeting.gather(group.rank, own.message), own.out.shape)
    return merged(of_ranks, agreement.result())
