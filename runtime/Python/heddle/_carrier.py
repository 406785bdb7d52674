"""Messages of ranks that compute on processors, carried by a group of torch.distributed."""
import ctypes as C
from collections import Counter
from datetime import timedelta

import torch
from torch import distributed

from . import _structs as S

_EXCHANGE = C.CFUNCTYPE(C.c_int32, C.c_void_p, C.POINTER(S.Message), C.c_int32, C.POINTER(S.Message), C.c_int32, C.POINTER(C.c_char), C.c_uint64)


class Carrier:
    """What heddle_group_open_carried takes; lives as long as the group. `process_group()` gives the one of torch.distributed (None: the default)."""

    def __init__(self, process_group, seconds):
        self._group, self._limit = process_group, timedelta(seconds=seconds)
        self._sent, self._received = Counter(), Counter()  # by peer: messages match by their numbers
        self._function = _EXCHANGE(self._exchange)
        self.address = C.cast(self._function, C.c_void_p)

    def _start(self, function, counts, message):
        group = self._group()
        peer = message.peer if group is None else distributed.get_global_rank(group, message.peer)
        counts[peer] += 1
        memory = torch.frombuffer((C.c_char * message.bytes).from_address(message.data), dtype=torch.uint8)
        return message.peer, function(memory, peer, group, tag=counts[peer] & 0x7fffffff)

    def _exchange(self, _, sends, send_count, receives, receive_count, why, why_bytes):
        peer = None
        try:
            works = [self._start(distributed.irecv, self._received, each) for each in receives[:receive_count]]
            works += [self._start(distributed.isend, self._sent, each) for each in sends[:send_count]]
            for peer, work in works:
                work.wait(self._limit)
            return 0
        except Exception as error:  # of any kind: it must not pass through C
            text = (f"{error}" if peer is None else f"rank {peer}: {error}").encode()[:why_bytes - 1] + b"\0"
            C.memmove(why, text, len(text))
            return 1
