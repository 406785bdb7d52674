"""Sequences longer than one GPU: one call over the ranks of a group, each with some of the rows.

    plan = heddle.distributed.plan("causal", seqlen=1 << 20, heads=64, kv_heads=8, ranks=world, layout="zigzag")
    group = heddle.distributed.Group.of(torch.distributed.group.WORLD)
    q, k, v = (plan.shard(x, group.rank) for x in (q, k, v))          # or made where they are needed
    out = heddle.distributed.attention(q, k, v, plan, group)          # autograd works through it

The plan is the same on every rank: whose rows lie where, and which keys travel to whom in which step: only those that some row of the
receiver keeps. docs/distributed.md is the guide.
"""
import ctypes as C
from dataclasses import dataclass
from typing import Any, Optional, Sequence, Tuple

import torch

from . import _call, _carrier, _elements, _engine, _library, _shares, _split_keys, _torch, patterns, serve
from . import _structs as S
from .errors import InvalidArgumentError, UnsupportedError
from .patterns import Pattern

__all__ = ["Calls", "Group", "Plan", "attention", "decode", "paged_attention", "plan"]


@dataclass(frozen=True)
class Calls:
    """Of what calls a plan's form is chosen: their sizes, whether gradients count, and rates: TFLOP/s of kernels on kept pairs, GB/s each way
    and microseconds of a message of links, as `heddle ring links` prints them; `host`: so many consecutive ranks are of a host, whose links are
    `host_links`, and `links` those beyond. None: as of H200s of one host."""
    batch: int = 1
    head_dim: int = 128
    value_dim: Optional[int] = None
    dtype: torch.dtype = torch.bfloat16
    gradients: bool = False
    kernel_tflops: Optional[float] = None
    links: Optional[Tuple[float, float]] = None
    host: Optional[int] = None
    host_links: Optional[Tuple[float, float]] = None


class Plan:
    """How a call lies over ranks. `ranks`, `seqlen`, `heads`, `kv_heads`, `layout` (the ranges of each rank), `travelling` (rows of k that
    travel in a forward call of all ranks, each as often as heads of it do), `head_ranks` (so many consecutive ranks are a team that exchanges
    heads, and sends rows of q and of out as well; 1: none do), `placement_free`, `writes_d_q` (gradients of q need no fp32), `form`, `milliseconds` (predicted, where the form was chosen), `text`, `pattern`, `part` (the pattern whose calls are parts)."""

    def __init__(self, pattern: Pattern, arguments: dict, handle, form: str, milliseconds: Optional[float], placement_free: bool):
        loaded = _library.library()
        self.pattern, self.arguments, self.handle = pattern, arguments, handle
        self.form, self.milliseconds, self.placement_free = form, milliseconds, placement_free
        info = S.sized(S.GroupPlanInfo)
        loaded.call("heddle_group_plan_get_info", handle, C.byref(info))
        self.ranks, self.seqlen, self.heads, self.kv_heads = info.ranks, info.rows, info.heads, info.kv_heads
        self.travelling, self.text, self.writes_d_q = info.travelling, info.text.decode(), bool(info.writes_d_q)
        lines = [line.split() for line in self.text.splitlines()]
        self.layout = [[tuple(map(int, word.split(":"))) for word in words[1:]] for words in lines if words[:1] == ["rank"]]
        self.head_ranks = next((int(words[1]) for words in lines if words[:1] == ["teams"]), 1)
        self.part = patterns.part_of(pattern)

    def rows(self, rank: int) -> int:
        """How many rows a rank has."""
        return sum(last - first for first, last in self.layout[rank])

    def longest_range(self, rank: int) -> int:
        """Of the rows of the rank's team, in which a launch of it may be."""
        first = rank // self.head_ranks * self.head_ranks
        ends: "list[list[int]]" = []
        for begin, end in sorted(each for ranges in self.layout[first:first + self.head_ranks] for each in ranges):
            if ends and ends[-1][1] == begin:
                ends[-1][1] = end
            else:
                ends.append([begin, end])
        return max(end - begin for begin, end in ends)

    def shard(self, whole, rank: int, dim: int = 1):
        """The rows of a rank, its ranges one behind the other, of a tensor that has all along `dim`."""
        if whole.shape[dim] != self.seqlen:
            raise InvalidArgumentError(f"shard: expected {self.seqlen} rows along dimension {dim}, got {whole.shape[dim]}")
        return torch.cat([whole.narrow(dim, first, last - first) for first, last in self.layout[rank]], dim)

    def join(self, shards: Sequence[Any], dim: int = 1):
        """The inverse of `shard`: a tensor of all rows from those of every rank."""
        rows = [torch.arange(first, last) for ranges in self.layout for first, last in ranges]
        order = torch.argsort(torch.cat(rows)).to(shards[0].device)
        return torch.cat(list(shards), dim).index_select(dim, order)

    def __del__(self):
        _library.library().close("group_plan", self.handle)


def plan(pattern, *, seqlen: int, heads: int, ranks: int, kv_heads: Optional[int] = None, layout: str = "contiguous", form: str = "auto",
         placement_free: bool = False, farthest_gap: int = 0, column_step: int = 0, calls: Optional[Calls] = None, **arguments: Any) -> Plan:
    """Plans calls of a pattern over ranks; queries and keys lie alike.

    layout          "contiguous", "balanced" (contiguous, cut where rows keep as many pairs: even for windows), "zigzag" (chunks r and
                    2 ranks - 1 - r: even for causal), "striped:ROWS", or ranges "0:64,192:256;64:192"; "auto": the one of a name whose
                    calls are predicted to be over first (`calls`), of those within 2% the one that sends least
    form            "auto": the one whose calls are predicted to be over first (`calls`). "gather": keys that a rank asks for come at once, before the rows that need them. "ring": one peer a step, in the memory
                    of two steps. "ulysses": every rank computes all rows of some heads, where ranks divide them and they are alike.
                    "ulysses4+gather", "ulysses4+ring": teams of 4 consecutive ranks do so, and share the sequence among teams as the other word says
    calls           what "auto" decides on, the same on every rank
    placement_free  bits that do not depend on ranks and layout; gradients are computed twice
    arguments       of the pattern, as heddle.attention takes them; tensors of integers are read (copied to host memory)
    """
    pattern = patterns.resolved(pattern)
    loaded = _library.compiler_library("a plan over ranks")
    values, tensors = _call.call_values(pattern, arguments)
    hosted = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    operands = _shares.operands(pattern, values, {name: _torch.view(tensor, name) for name, tensor in hosted.items()})
    calls = calls or Calls()
    flags = S.GROUP_PLACEMENT_FREE * bool(placement_free) | S.GROUP_GRADIENTS * bool(calls.gradients)
    options = S.sized(S.GroupOptions, ranks=ranks, seqlen=seqlen, heads=heads, kv_heads=kv_heads or heads, layout=layout.encode(),
                      form=form.encode(), flags=flags, farthest_gap=farthest_gap, column_step=column_step, batch=calls.batch, head_dim=calls.head_dim,
                      value_dim=calls.value_dim or 0, dtype=_elements.numbers()[_torch._spelled(calls.dtype)], kernel_tflops=calls.kernel_tflops or 0)
    options.link_gbps, options.link_us = calls.links or (0, 0)
    options.host_ranks, (options.host_link_gbps, options.host_link_us) = calls.host or 0, calls.host_links or (0, 0)
    options.operands, options.operand_count = operands, len(operands)
    if layout == "auto":  # what follows is of the layout that is chosen
        made = Plan(pattern, dict(arguments), loaded.opened("heddle_group_plan_make", pattern.handle, C.byref(options)), form, None, bool(placement_free))
        options.layout = ";".join(",".join(f"{first}:{last}" for first, last in ranges) for ranges in made.layout).encode()
    chosen, milliseconds = C.c_char_p(), C.c_double()
    loaded.call("heddle_group_choose_form", pattern.handle, C.byref(options), C.byref(chosen), C.byref(milliseconds))
    options.form = chosen.value
    handle = loaded.opened("heddle_group_plan_make", pattern.handle, C.byref(options))
    return Plan(pattern, dict(arguments), handle, chosen.value.decode(), milliseconds.value or None, bool(placement_free))


class Group:
    """One rank's end of a group: `rank`, `ranks`, `device` (the number of its GPU, None: processors)."""

    def __init__(self, handle, rank: int, ranks: int, device: Optional[int], carrier=None, meeting=None):
        self.handle, self.rank, self.ranks, self.device, self._carrier, self.meeting = handle, rank, ranks, device, carrier, meeting
        self.shares = {}  # of calls with the sizes of earlier ones

    @staticmethod
    def of(process_group=None, device: "Optional[int | str]" = None, limit: float = 0) -> "Group":
        """The ranks of a group of torch.distributed, a GPU each (None: the current one), over NCCL. Collective. `limit`: seconds that a rank
        waits for others (0: 30). Without GPUs, or device="cpu": processes that compute on processors; the process group, of gloo, carries
        their messages."""
        from torch import distributed
        rank, ranks = distributed.get_rank(process_group), distributed.get_world_size(process_group)
        if device == "cpu" or (device is None and not torch.cuda.is_available()):
            carrier = _carrier.Carrier(process_group, limit or 30)
            loaded = _library.compiler_library("a call over processes without GPUs")
            return Group(loaded.opened("heddle_group_open_carried", rank, ranks, carrier.address, None), rank, ranks, None, carrier,
                         _split_keys.Members(process_group, ranks))
        loaded, identity = _library.library(), C.create_string_buffer(S.GROUP_ID_BYTES)
        if rank == 0:
            loaded.call("heddle_group_make_id", identity)
        shared = [identity.raw]
        distributed.broadcast_object_list(shared, distributed.get_global_rank(process_group, 0) if process_group else 0, process_group)
        device = torch.cuda.current_device() if device is None else device
        handle = loaded.opened("heddle_group_open", _engine.engine().device(device), C.create_string_buffer(shared[0], S.GROUP_ID_BYTES), rank, ranks,
                               float(limit))
        return Group(handle, rank, ranks, device, meeting=_split_keys.Members(process_group, ranks))

    @staticmethod
    def local(ranks: int, limit: float = 0) -> "list[Group]":
        """Ranks that are threads of this process, for tensors in host memory: each is used by a thread of its own."""
        handles = (C.c_void_p * ranks)()
        _library.library().call("heddle_group_open_local", ranks, float(limit), handles)
        meeting = _split_keys.Meeting(ranks, limit or 30)
        return [Group(handle, rank, ranks, None, meeting=meeting) for rank, handle in enumerate(handles)]

    def abort(self, why: str = ""):
        """From any thread: the rank leaves, and the others are told."""
        _library.library().call("heddle_group_abort", self.handle, why.encode() or None)

    def wait(self):
        """Until the calls on the current stream are over; UnavailableError names a rank that is lost."""
        if self.device is not None:
            _library.library().call("heddle_group_wait", self.handle, _torch.current_stream(self.device))

    def close(self):
        """Waits for no CUDA graph of its calls: these may outlive it, unless its communicator is another library's, which waits for them itself."""
        handle, self.handle = self.handle, None
        self.shares.clear()
        if handle is not None:
            _library.library().close("group", handle)

    def __del__(self):
        self.close()


def _forward(q, k, v, the_plan, group, scale, arguments, wants_lse=True):
    out = torch.empty(*q.shape[:3], v.shape[3], dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], dtype=torch.float32, device=q.device) if wants_lse else None
    _shares.run(the_plan, group, "forward", dict(q=q, k=k, v=v, out=out), dict(lse=lse) if wants_lse else {}, scale, arguments)
    return out, lse


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(context, q, k, v, the_plan, group, scale, arguments):
        out, lse = _forward(q, k, v, the_plan, group, scale, arguments)
        context.save_for_backward(q, k, v, out, lse)
        context.call = the_plan, group, scale, arguments
        context.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(context, d_out, d_lse):
        q, k, v, out, lse = context.saved_tensors
        the_plan, group, scale, arguments = context.call
        fp32 = torch.float32
        gradients = [torch.empty(x.shape, dtype=dtype, device=x.device) for x, dtype in ((q, q.dtype if the_plan.writes_d_q else fp32), (k, fp32), (v, fp32))]
        d_out = torch.zeros_like(out) if d_out is None else d_out.contiguous()
        tensors = dict(zip(("q", "k", "v", "out", "d_out", "d_q", "d_k", "d_v"), (q, k, v, out, d_out, *gradients)))
        arrays = dict(lse=lse) if d_lse is None else dict(lse=lse, d_lse=d_lse.contiguous())
        _shares.run(the_plan, group, "backward", tensors, arrays, scale, arguments)
        return (*(each.to(x.dtype) for each, x in zip(gradients, (q, k, v))), None, None, None, None)


def _check(q, k, v, the_plan, group, arguments):
    for name, tensor in dict(q=q, k=k, v=v).items():
        if tensor.dim() != 4 or tensor.shape[1] != the_plan.rows(group.rank):
            raise InvalidArgumentError(f"{name}: expected 4 dimensions, and {the_plan.rows(group.rank)} rows on rank {group.rank}, got {list(tensor.shape)}")
        if _torch._spelled(tensor.dtype) not in _elements.numbers():
            raise InvalidArgumentError(f"{name}: dtype: expected {_elements.listed()}, got {_torch._spelled(tensor.dtype)}")
    if any(isinstance(each, torch.Tensor) and each.requires_grad for each in {**the_plan.arguments, **arguments}.values()):
        raise UnsupportedError("calls over a group have no gradients of a pattern's tensors: give them detached")


def attention(q, k, v, the_plan: Plan, group: Group, *, scale: Optional[float] = None, return_lse: bool = False, **arguments: Any):
    """One rank's share of attention over a group, as heddle.attention of the whole. Collective: every rank calls it, in the same order.

    q [batch, rows, heads, head_dim], k and v [batch, rows, kv_heads, ...]: the rank's own rows (`Plan.shard`), on the group's GPU, or in host
    memory of a group of threads. Returns out, or (out, lse), of these rows; gradients of q, k and v are those of the whole call.
    `arguments`: tensors of the pattern that differ from the plan's, of the same meaning. UnavailableError names a rank that is lost.
    """
    try:
        _check(q, k, v, the_plan, group, arguments)
    except Exception:
        _shares.refuse(the_plan, group, dict(q=q, k=k, v=v))
        raise
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        out, lse = _Attention.apply(q, k, v, the_plan, group, scale, arguments)
    else:
        out, lse = _forward(q, k, v, the_plan, group, scale, arguments, wants_lse=return_lse)
    return (out, lse) if return_lse else out


@torch.no_grad()
def decode(q, k, v, pattern, group: Group, *, keys: Sequence[Tuple[int, int]], q_origin: Optional[int] = None, scale: Optional[float] = None,
           return_lse: bool = False, **arguments: Any):
    """Few queries, which every rank has, over keys of which each rank has a range: heddle.attention of all keys, with the same bits on every rank.

    q [batch, seqlen_q, heads, head_dim], alike on all ranks; k and v [batch, rows, kv_heads, ...]: the rank's own, maybe none
    keys      the range of each rank, (first, last), one behind the other from 0: the same list on every rank, as are all other arguments
    q_origin  position of query 0, as key 0 has position 0; None: the queries are the last positions of the keys

    Each rank computes its part into fp32; parts are exchanged once, 4 (value_dim + 1) bytes for each head of a query from every rank to all, and
    merged in the order of ranks. Ranks that come with something else: InvalidArgumentError in host memory, NaN on a GPU, where nobody waits.
    UnsupportedError: a pattern with a sink, and those whose calls cannot be parts. No gradients.
    """
    pattern = patterns.resolved(pattern)
    part = _split_keys.part_of(pattern, group, "decode")
    ranges = _split_keys.checked_ranges(keys, group, k.shape[1])
    total = ranges[-1][1]
    origin = total - q.shape[1] if q_origin is None else q_origin
    out, lse = _split_keys.own_part(q, k, v, part, ranges[group.rank][0], origin, total, scale, arguments)
    words = pattern.digest, ranges, origin, scale, tuple(q.shape), tuple(v.shape[2:]), str(q.dtype)
    out, lse = _split_keys.merged(*_split_keys.exchanged(out, lse, words, group))
    return (out.to(q.dtype), lse) if return_lse else out.to(q.dtype)


@torch.no_grad()
def paged_attention(q, k_cache, v_cache, page_table, seqused_k, pattern, group: Group, *, k_origins, whole_k, cu_seqlens_q=None,
                    scale: Optional[float] = None, return_lse: bool = False, descale: Optional[Tuple[Any, Any]] = None, **arguments: Any):
    """heddle.serve.paged_attention of sequences whose keys lie in the caches of all ranks, a part of each sequence on each: one call over all keys,
    with the same bits on every rank.

    q, cu_seqlens_q  as there, alike on all ranks; the queries of a sequence are its last positions
    k_cache, v_cache, page_table, seqused_k, descale
                     the rank's own: its part of each sequence, maybe none (seqused_k[s] is 0)
    k_origins        int32 [sequences]: position of the first key of the part
    whole_k          int32 [sequences]: the keys of each sequence, on all ranks together, alike on all of them

    Parts lie in any order, and each key of a sequence in one of them. Each rank computes its part into fp32; parts are exchanged once,
    4 (value_dim + 1) bytes for each head of a query from every rank to all, and merged in the order of ranks. Ranks that come with something else,
    or parts that are not the whole: InvalidArgumentError in host memory, NaN on a GPU, where nobody waits. UnsupportedError as of `decode`.
    """
    pattern = patterns.resolved(pattern)
    part = _split_keys.part_of(pattern, group, "paged_attention")
    out = torch.empty(*q.shape[:3], v_cache.shape[3], dtype=torch.float32, device=q.device)
    lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], dtype=torch.float32, device=q.device)
    serve.paged_attention(q, k_cache, v_cache, page_table, seqused_k, part, cu_seqlens_q=cu_seqlens_q, k_origins=k_origins, whole_k=whole_k,
                          scale=scale, out=out, lse=lse, descale=descale, **arguments)
    words = pattern.key, scale, tuple(q.shape), tuple(v_cache.shape[2:]), str(q.dtype), tuple(whole_k.shape)
    out, lse = _split_keys.merged(*_split_keys.exchanged(out, lse, words, group, torch.stack((k_origins, seqused_k, whole_k))))
    return (out.to(q.dtype), lse) if return_lse else out.to(q.dtype)
