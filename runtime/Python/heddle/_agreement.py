"""How ranks that each have a part of the keys agree: what they come with is alike, their parts are the whole, and where a rank is refused what it brings
the others do not wait for it. In host memory they are told, with the reason; on a GPU, where nobody waits to be told, their results are NaN."""
import contextlib
import functools
import zlib
from typing import Any, Callable, NamedTuple, Optional, Sequence

import torch

from .errors import InvalidArgumentError, UnavailableError

_REFUSED = -1  # in the place of a word


class Own(NamedTuple):
    """What a rank comes with, checked."""
    words: tuple                        # what must be alike on all ranks
    compute: Callable[[], Any]          # its part, as Results
    parts: Sequence[torch.Tensor] = ()  # int32 of one length: first keys, how many, and all of the whole; queries


class Messages(NamedTuple):
    """How much a rank sends on a GPU, and so all others: int32 of words and parts, fp32 of results."""
    integers: int
    results: int


def is_told(group):
    """Whether ranks wait to be told what others come with."""
    return group.device is None


def device_of(group):
    return torch.device("cpu") if group.device is None else torch.device("cuda", group.device)


def are_wholes(parts):
    """Of each sequence: the parts of ranks have each of its keys once. `parts` [ranks, 3 or 4, sequences]: first keys, how many, and all of the whole;
    queries, which are alike."""
    firsts, counts, wholes, *queries = parts.long().unbind(1)
    order = torch.argsort(torch.where(counts == 0, wholes, firsts), dim=0, stable=True)  # a part without keys is anywhere
    firsts, counts = (each.gather(0, order) for each in (firsts, counts))
    ends = counts.cumsum(0)
    are_right = ((counts == 0) | (firsts == ends - counts)).all(0) & (ends[-1] == wholes).all(0)
    return are_right & (queries[0] == queries[0][0]).all(0) if queries else are_right


def _refuse_parts(parts):
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


def _word_of(words):
    """Like words have like ones; not negative."""
    return zlib.crc32(repr(words).encode()) & 0x7fffffff


def _tell(group, why):
    """In the place of a word, where this rank is refused."""
    with contextlib.suppress(Exception):  # of others that do not come: the caller has the reason of his own
        words = group.meeting.numbers(group.rank, _REFUSED, device_of(group))
        group.meeting.told(group.rank, words.index(_REFUSED), str(why))


def _refuse_others(group, word):
    """The words of all ranks, or else later messages may differ in length."""
    words = group.meeting.numbers(group.rank, word, device_of(group))
    if _REFUSED in words:
        refused = words.index(_REFUSED)
        raise UnavailableError(f"rank {refused} takes no part: {group.meeting.told(group.rank, refused, None)}")
    others = [rank for rank, each in enumerate(words) if each != word]
    if others:
        raise InvalidArgumentError(f"the ranks of a group disagree: ranks {others} come with something else than rank {group.rank}: pattern, keys, "
                                   "position of the queries, scale or sizes")


def _told(group, checked):
    try:
        own = checked()
        results = own.compute()  # first, as pages and lengths may be refused in it
    except Exception as error:
        _tell(group, error)
        raise
    _refuse_others(group, _word_of(own.words))
    if own.parts:
        _refuse_parts(group.meeting.gather(group.rank, torch.stack(list(own.parts))))
    return results.of_ranks(group), torch.ones((), dtype=torch.bool)


@functools.lru_cache(maxsize=None)
def _second_stream(device):
    return torch.cuda.Stream(device)


class _Agreement:
    """Of ranks, beside what the stream does meanwhile."""

    def __init__(self, own, group):
        self._stream = _second_stream(device_of(group)) if group.device is not None else None
        if self._stream is None:
            self._is_right = self._asked(own, group)
            return
        self._stream.wait_stream(torch.cuda.current_stream(group.device))
        with torch.cuda.stream(self._stream):
            self._is_right = self._asked(own, group)

    @staticmethod
    def _asked(own, group):
        """Whether all ranks come with the same, and their parts with each key once: a bool tensor."""
        word = torch.full((1,), _word_of(own.words), dtype=torch.int32, device=device_of(group))
        of_ranks = group.meeting.gather(group.rank, torch.cat((word, *own.parts)))
        is_right = (of_ranks[:, 0] == word).all()
        if not own.parts:
            return is_right
        return is_right & are_wholes(of_ranks[:, 1:].unflatten(1, (len(own.parts), len(own.parts[0])))).all()

    def result(self):
        if self._stream is not None:
            stream = torch.cuda.current_stream(self._is_right.device)
            stream.wait_stream(self._stream)
            self._is_right.record_stream(stream)
        return self._is_right


def _send(group, value, count, dtype):
    """In the place of a message that this rank does not have."""
    with contextlib.suppress(Exception):  # the caller has the reason of his own
        group.meeting.gather(group.rank, torch.full((count,), value, dtype=dtype, device=device_of(group)))


def _untold(group, checked, messages):
    try:
        own = checked()
    except Exception:
        if messages is not None:
            _send(group, _REFUSED, messages.integers, torch.int32)
            _send(group, torch.nan, messages.results, torch.float32)
        raise
    agreement = _Agreement(own, group)
    try:
        results = own.compute()
    except Exception:
        _send(group, torch.nan, messages.results, torch.float32)
        raise
    return results.of_ranks(group), agreement.result()


def exchanged(group, checked, messages: Optional[Messages]):
    """The parts of all ranks, and whether they are right, a bool tensor. Collective: `checked()` gives an Own, or raises, as its `compute` may. The rank
    then still takes part, so that no other one waits for it: in host memory UnavailableError has the reason on all others, on a GPU theirs are not right.
    `messages`: as what this rank was given says, on a GPU; None: it does not, and the others wait as long as their transport does, as they do where it says
    another length than theirs."""
    return _told(group, checked) if is_told(group) else _untold(group, checked, messages)
