"""Keys that lie on the ranks of a group, and queries that every rank has: each rank computes its part in fp32, parts are exchanged at once and
merged by every rank alike."""
import re
import zlib

import torch

from . import calls, patterns
from .errors import InvalidArgumentError, UnsupportedError


def checked_ranges(ranges, group, rows):
    """The rank's own, of those of all ranks, which lie one behind the other."""
    ranges = [(int(first), int(last)) for first, last in ranges]
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


def own_part(q, k, v, part, first, q_origin, total, scale, arguments):
    """out in fp32, and lse; of no keys 0 and -inf."""
    out = torch.zeros(*q.shape[:3], v.shape[3], dtype=torch.float32, device=q.device)
    lse = torch.full((q.shape[0], q.shape[2], q.shape[1]), -torch.inf, dtype=torch.float32, device=q.device)
    if k.shape[1]:
        wholes = {name: size for name, size in dict(whole_queries=q_origin + q.shape[1], whole_keys=total).items() if any(each.name == name for each in part.arguments)}
        calls.attention(q, k, v, part, scale=scale, out=out, lse=lse, q_origin=q_origin, k_origin=first, **wholes, **arguments)
    return out, lse


def merged(outs, lses):
    """The same bits on every rank. [ranks, batch, rows, heads, dim] and [ranks, batch, heads, rows]."""
    shares = torch.softmax(lses, 0).nan_to_num(0)  # where no rank has a key, 0; NaN of results stays
    return (outs * shares.transpose(2, 3)[..., None]).sum(0), torch.logsumexp(lses, 0)


def are_wholes(parts):
    """Of each sequence: the parts of ranks have each of its keys once. `parts` [ranks, 3, sequences]: first keys, how many, and all of the whole."""
    firsts, counts, wholes = parts.long().unbind(1)
    order = torch.argsort(torch.where(counts == 0, wholes, firsts), dim=0, stable=True)  # a part without keys is anywhere
    firsts, counts = (each.gather(0, order) for each in (firsts, counts))
    ends = counts.cumsum(0)
    return ((counts == 0) | (firsts == ends - counts)).all(0) & (ends[-1] == wholes).all(0)


def refuse_parts(parts):
    """In host memory."""
    for sequence in torch.nonzero(~are_wholes(parts)).flatten().tolist():
        firsts, counts, wholes = parts[..., sequence].unbind(1)
        if not bool((wholes == wholes[0]).all()):
            raise InvalidArgumentError(f"paged_attention: whole_k: sequence {sequence}: expected one number on all ranks, got {wholes.tolist()}")
        got = ", ".join(f"{first} to {first + count}" for first, count in zip(firsts.tolist(), counts.tolist()))
        raise InvalidArgumentError(f"paged_attention: k_origins: sequence {sequence}: expected each of its {int(wholes[0])} keys in the part of one rank, "
                                   f"got {got}")


def refuse_others(same, group):
    """In host memory."""
    if not bool(same.all()):
        ranks = [rank for rank, each in enumerate(same.flatten().tolist()) if not each]
        raise InvalidArgumentError(f"the ranks of a group disagree: ranks {ranks} come with something else than rank {group.rank}: pattern, keys, "
                                   "position of the queries, scale or sizes")


def exchanged(out, lse, words, group, parts=None):
    """Those of all ranks, in one message of each. `words`: what must be alike; `parts`: int32 [3, sequences], of are_wholes."""
    word = torch.full((1,), zlib.crc32(repr(words).encode()) & 0x7fffff, dtype=torch.float32, device=out.device)  # exact in fp32
    pieces = [out.flatten(), lse.flatten(), word]
    if parts is not None:
        pieces.append(parts.view(torch.float32).flatten())  # their bits
    everything = group.meeting.gather(group.rank, torch.cat(pieces))
    outs, lses, others, *bits = everything.split([piece.numel() for piece in pieces], 1)
    of_ranks = bits[0].contiguous().view(torch.int32).unflatten(1, parts.shape) if bits else None
    if out.device.type == "cpu":
        refuse_others(others == word, group)
        if bits:
            refuse_parts(of_ranks)
    is_right = (others == word).all()
    if bits:
        is_right = is_right & are_wholes(of_ranks).all()
    return torch.where(is_right, outs, torch.nan).unflatten(1, out.shape), lses.unflatten(1, lse.shape)  # on a GPU nobody waits to be told
