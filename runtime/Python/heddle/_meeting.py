"""Tensors that the ranks of a group exchange outside of calls: of threads through memory, of processes by torch.distributed."""
import threading
import time
import weakref
from datetime import timedelta

import torch
from torch import distributed

from .errors import InvalidArgumentError, UnavailableError


def process_group(given):
    """The one of torch.distributed that is meant."""
    if given is None and distributed.is_available() and distributed.is_initialized():
        given = distributed.group.WORLD
    if not distributed.is_available() or not isinstance(given, distributed.ProcessGroup):
        what = "None, and no default group" if given is None else type(given).__name__
        raise InvalidArgumentError(f"group: expected a heddle.distributed.Group, a group of torch.distributed that this rank is in, or None behind "
                                   f"torch.distributed.init_process_group, got {what}")
    return given


def weakly(process_group):
    """A function that gives it, for as long as others hold it."""
    reference = weakref.ref(process_group)

    def held():
        found = reference()
        if found is None:
            raise UnavailableError("the group of torch.distributed has ended")
        return found
    return held


class Meeting:
    """Of ranks that are threads."""

    def __init__(self, ranks, seconds):
        self._given, self._barrier = [None] * ranks, threading.Barrier(ranks, timeout=seconds)

    def _all(self, rank, given, take):
        self._given[rank] = given
        try:
            self._barrier.wait()
            taken = take(self._given)
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise UnavailableError(f"tensors of a group: rank {rank} waits for ranks that did not come") from None
        return taken

    def gather(self, rank, tensor):
        """The tensors of all ranks, alike in shape and type, stacked."""
        return self._all(rank, tensor, torch.stack)

    def swap(self, rank, pieces, own):
        """`pieces`: of this rank for each, without gaps; returns those of each for this rank, which have the shapes of `own` and may be it."""
        return self._all(rank, pieces, lambda given: [each[rank] for each in given])

    def told(self, rank, source, what):
        """What the rank `source` says, anything that can be pickled."""
        return self._all(rank, what, lambda given: given[source])

    def numbers(self, rank, number, device):
        """One of each rank."""
        return self._all(rank, number, list)


class Members:
    """Of a group of torch.distributed, which `process_group()` gives (None: the default one). `seconds`: how long `number` waits."""

    def __init__(self, process_group, ranks, seconds=30):
        self._group, self._ranks, self._seconds = process_group, ranks, seconds

    def gather(self, rank, tensor):
        """As of Meeting; on a GPU nobody waits."""
        own = tensor.detach().contiguous()
        everything = own.new_empty(self._ranks, *own.shape)
        given = own if own.dim() else own[None]
        pieces = everything.view(self._ranks, *given.shape).view(torch.uint8)  # bytes: gloo does not know every type
        if own.is_cuda:  # by NCCL a list of tensors is copied once more
            distributed.all_gather_into_tensor(pieces, given.view(torch.uint8)[None], self._group())
        else:
            distributed.all_gather(list(pieces.unbind()), given.view(torch.uint8), self._group())
        return everything

    def swap(self, rank, pieces, own):
        """As of Meeting."""
        given, taken = (torch.cat([each.detach().flatten() for each in tensors]).view(torch.uint8) for tensors in (pieces, own))
        sent, came = ([each.numel() * each.element_size() for each in tensors] for tensors in (pieces, own))
        distributed.all_to_all_single(taken, given, came, sent, self._group())
        return [part.view(each.dtype).view(each.shape) for part, each in zip(taken.split(came), own)]

    def told(self, rank, source, what):
        group, said = self._group(), [what]
        distributed.broadcast_object_list(said, source if group is None else distributed.get_global_rank(group, source), group)
        return said[0]

    def numbers(self, rank, number, device):
        """One of each rank, within the limit: ranks that have theirs do not come."""
        own = torch.tensor([number], device=device)
        everything = own.new_empty(self._ranks)
        work = distributed.all_gather(list(everything.split(1)), own, self._group(), async_op=True)
        try:
            if own.is_cuda:
                work.wait()
                _await(torch.cuda.current_stream(device), self._seconds)
            else:
                work.wait(timedelta(seconds=self._seconds))
        except RuntimeError as error:
            raise UnavailableError(f"the others do not come within {self._seconds} s: {error}") from None
        return everything.tolist()


def _await(stream, seconds):
    event, until = stream.record_event(), time.monotonic() + seconds
    while not event.query():
        if time.monotonic() > until:
            raise RuntimeError("the stream of the call waits for them")
        time.sleep(1e-5)
