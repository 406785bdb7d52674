"""Sequences longer than one GPU: one call over the ranks of a group, each with some of the rows.

    out = heddle.distributed.attention(q, k, v, "causal")             # q, k, v: the rank's rows; autograd works through it

The group is one of torch.distributed, or a Group. A plan is the same on every rank: whose rows lie where, and which keys travel to whom in which
step: only those that some row of the receiver keeps. A call that gives a pattern makes and keeps it. docs/distributed.md is the guide.
"""
import ctypes as C
import weakref
from dataclasses import dataclass
from typing import Any, Optional, Sequence, Tuple

import torch
from torch import distributed

from . import _call, _carrier, _elements, _engine, _header, _library, _meeting, _own_plans, _rows, _shares, _split_keys, _torch, patterns, serve
from . import _structs as S
from .errors import InvalidArgumentError, UnsupportedError
from .patterns import Pattern

__all__ = ["Calls", "Group", "Plan", "attention", "decode", "gather", "paged_attention", "plan", "shard"]


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


def _check_planned(argument, tensor):
    """A tensor that a plan is given."""
    if not isinstance(tensor, torch.Tensor):
        raise _torch.no_tensor(argument.name, tensor)
    extents, _ = _header.extents_of(argument.type)
    if len(extents) == 4 and extents[2] == -1:
        raise InvalidArgumentError(f"plan: {argument.name}: it has a row for each query, of which ranks give theirs with each call: leave it out")


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
    placement_free  bits that do not depend on ranks and layout; gradients are computed twice, of a pattern that says gradient(detached) with memory of
                    a rank for keys from the first one on, of one with a bias for what it has for all queries that keep keys of the rank
    arguments       of the pattern, as heddle.attention takes them; tensors of integers are read (copied to host memory). Those of floats without a
                    length of their own (a bias, a sink) may come with each call alone
    """
    pattern = patterns.resolved(pattern)
    loaded = _library.compiler_library("a plan over ranks")
    values, tensors = _call.call_values(pattern, arguments, may_lack=_header.lacks_length)
    for name, tensor in tensors.items():
        _check_planned(pattern.argument(name), tensor)
    hosted = {name: tensor.detach() if tensor.is_floating_point() else tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
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
        self.plans = {}   # of calls that gave a pattern

    @staticmethod
    def of(process_group=None, device: "Optional[int | str]" = None, limit: float = 0) -> "Group":
        """The ranks of a group of torch.distributed, a GPU each (None: the current one), over NCCL. Collective. `limit`: seconds that a rank
        waits for others (0: 30). Without GPUs, or device="cpu": processes that compute on processors; the process group, of gloo, carries
        their messages."""
        return Group._of(process_group, device, limit, lambda: process_group)

    @staticmethod
    def _of(process_group, device, limit, held):
        rank, ranks = distributed.get_rank(process_group), distributed.get_world_size(process_group)
        meeting = _meeting.Members(held, ranks, limit or 30)
        if device == "cpu" or (device is None and not torch.cuda.is_available()):
            carrier = _carrier.Carrier(held, limit or 30)
            loaded = _library.compiler_library("a call over processes without GPUs")
            return Group(loaded.opened("heddle_group_open_carried", rank, ranks, carrier.address, None), rank, ranks, None, carrier, meeting)
        loaded, identity = _library.library(), C.create_string_buffer(S.GROUP_ID_BYTES)
        if rank == 0:
            loaded.call("heddle_group_make_id", identity)
        shared = meeting.told(rank, 0, identity.raw)
        device = torch.cuda.current_device() if device is None else device
        handle = loaded.opened("heddle_group_open", _engine.engine().device(device), C.create_string_buffer(shared, S.GROUP_ID_BYTES), rank, ranks,
                               float(limit))
        return Group(handle, rank, ranks, device, meeting=meeting)

    @staticmethod
    def kept(process_group=None, device: "Optional[int | str]" = None) -> "Group":
        """`Group.of`, made at the first call (collective) and kept until the group of torch.distributed ends, or the process does: what functions
        here take a group of torch.distributed, or None, for."""
        process_group = _meeting.process_group(process_group)
        if device is None:
            device = torch.cuda.current_device() if torch.cuda.is_available() else "cpu"
        known = _kept.setdefault(process_group, {})
        group = known.get(device)
        if group is None or group.handle is None:  # closed by hand
            group = known[device] = Group._of(process_group, device, 0, _meeting.weakly(process_group))
            weakref.finalize(process_group, group.close)
        return group

    @staticmethod
    def local(ranks: int, limit: float = 0) -> "list[Group]":
        """Ranks that are threads of this process, for tensors in host memory: each is used by a thread of its own."""
        handles = (C.c_void_p * ranks)()
        _library.library().call("heddle_group_open_local", ranks, float(limit), handles)
        meeting = _meeting.Meeting(ranks, limit or 30)
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
        self.plans.clear()
        if handle is not None:
            _library.library().close("group", handle)

    def __del__(self):
        self.close()


_kept = weakref.WeakKeyDictionary()  # of groups of torch.distributed: a Group for each device of the rank's


def _group_for(group, device):
    """A Group for tensors of this device, None: of the current one."""
    if isinstance(group, Group):
        return group
    return Group.kept(group, None if device is None else "cpu" if device.type == "cpu" else device.index)


def _forward(q, k, v, the_plan, group, scale, arguments, wants_lse=True):
    out = torch.empty(*q.shape[:3], v.shape[3], dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], dtype=torch.float32, device=q.device) if wants_lse else None
    _shares.run(the_plan, group, "forward", dict(q=q, k=k, v=v, out=out), dict(lse=lse) if wants_lse else {}, scale, arguments)
    return out, lse


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(context, q, k, v, the_plan, group, scale, arguments):
        out, lse = _forward(q, k, v, the_plan, group, scale, arguments)
        tensors = {name: each for name, each in arguments.items() if isinstance(each, torch.Tensor)}
        context.save_for_backward(q, k, v, out, lse, *tensors.values())
        context.call = the_plan, group, scale, {name: each for name, each in arguments.items() if name not in tensors}, list(tensors)
        context.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(context, d_out, d_lse):
        q, k, v, out, lse, *tensors = context.saved_tensors
        the_plan, group, scale, numbers, names = context.call
        arguments = {**numbers, **dict(zip(names, tensors))}
        fp32 = torch.float32
        gradients = [torch.empty(x.shape, dtype=dtype, device=x.device) for x, dtype in ((q, q.dtype if the_plan.writes_d_q else fp32), (k, fp32), (v, fp32))]
        d_out = torch.zeros_like(out) if d_out is None else d_out.contiguous()
        tensors = dict(zip(("q", "k", "v", "out", "d_out", "d_q", "d_k", "d_v"), (q, k, v, out, d_out, *gradients)))
        arrays = dict(lse=lse) if d_lse is None else dict(lse=lse, d_lse=d_lse.contiguous())
        _shares.run(the_plan, group, "backward", tensors, arrays, scale, arguments)
        return (*(each.to(x.dtype) for each, x in zip(gradients, (q, k, v))), None, None, None, None)


def _check(q, k, v, rows, group, gradients_of):
    for name, tensor in dict(q=q, k=k, v=v).items():
        if tensor.dim() != 4 or tensor.shape[1] != rows:
            raise InvalidArgumentError(f"{name}: expected 4 dimensions, and {rows} rows on rank {group.rank}, got {list(tensor.shape)}")
        if _torch._spelled(tensor.dtype) not in _elements.numbers():
            raise InvalidArgumentError(f"{name}: dtype: expected {_elements.listed()}, got {_torch._spelled(tensor.dtype)}")
    if any(isinstance(each, torch.Tensor) and each.requires_grad for each in gradients_of.values()):
        raise UnsupportedError("calls over a group have no gradients of a pattern's tensors: give them detached")


def _plan_for(q, k, v, pattern, group, way, arguments):
    """The plan of a call that gives a pattern, and what is left of its arguments. Collective where a call of its like is new."""
    pattern = patterns.resolved(pattern)
    try:
        _check(q, k, v, q.shape[1] if q.dim() == 4 else "as many", group, arguments)
    except Exception as error:
        _own_plans.refuse(group, pattern, (q, k, v), way, arguments, error)
        raise
    return _plan_of(pattern, group, _own_plans.sizes_of(q, k, v), q.shape[1], q.device, way, arguments)


def _plan_of(pattern, group, sizes, rows, device, way, arguments):
    def make(pattern, calls=None, **others):
        calls = calls or Calls(sizes.batch, sizes.head_dim, sizes.value_dim, sizes.dtype, sizes.gradients)
        return plan(pattern, ranks=group.ranks, calls=calls, **others)

    return _own_plans.of_call(group, pattern, sizes, rows, device, way, arguments, make)


def attention(q, k, v, pattern, group=None, *, scale: Optional[float] = None, return_lse: bool = False, layout: Optional[str] = None,
              form: Optional[str] = None, seqlen: Optional[int] = None, calls: Optional[Calls] = None, placement_free: Optional[bool] = None,
              **arguments: Any):
    """One rank's share of attention over a group, as heddle.attention of the whole. Collective: every rank calls it, in the same order.

    q [batch, rows, heads, head_dim], k and v [batch, rows, kv_heads, ...]: the rank's own rows, on the group's GPU, or in host memory of a group
    of threads, or of processes over gloo. Returns out, or (out, lse), of these rows; gradients of q, k and v are those of the whole call.

    pattern    what heddle.attention takes, or a Plan
    group      a group of torch.distributed (None: the default one; its Group is kept, Group.kept), or a Group
    arguments  of the pattern, as there; with a Plan tensors that differ from the plan's, of the same meaning. A bias has the rank's rows, and keys
               of the whole: [1, heads, rows, seqlen], `shard` along dimension 2
    layout, form, calls, placement_free   as of `plan`, of calls that give a pattern: rank r has the rows of part r; "contiguous" is of whatever lengths
    seqlen     of the whole. None: where a call of its sizes is new to a rank, the ranks ask each other how many rows each has, and keep the
               plan. Where the rows of some ranks change and those of others do not, say it

    UnavailableError names a rank that is lost, or refused.
    """
    group, way = _group_for(group, q.device), _own_plans.Way(layout, form, seqlen, calls, placement_free)
    if isinstance(pattern, Plan):
        way.refuse()
        the_plan = pattern
    else:
        the_plan, arguments = _plan_for(q, k, v, pattern, group, way, arguments)
    try:
        _check(q, k, v, the_plan.rows(group.rank), group, {**the_plan.arguments, **arguments})
    except Exception as error:
        _shares.refuse(the_plan, group, dict(q=q, k=k, v=v), error)
        raise
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        out, lse = _Attention.apply(q, k, v, the_plan, group, scale, arguments)
    else:
        out, lse = _forward(q, k, v, the_plan, group, scale, arguments, wants_lse=return_lse)
    return (out, lse) if return_lse else out


def _meeting_of(group, what):
    """The rank, and how it meets others: no Group is made of one of torch.distributed."""
    if isinstance(group, Group):
        if group.meeting is None:
            raise UnsupportedError(f"{what}: the group carries messages of calls alone: take Group.of or Group.local")
        return group.rank, group.meeting
    group = _meeting.process_group(group)
    return distributed.get_rank(group), _meeting.Members(_meeting.weakly(group), distributed.get_world_size(group))


def shard(x, plan: Plan, group=None, dim: int = 1, *, source: Optional[int] = None, device=None):
    """The rank's rows, its ranges one behind the other, of a tensor that has all along `dim` and that every rank has.

    source  the rank that alone has it (x of others: None): its rows go to their ranks. Collective; no gradients
    device  where they come to on others; None: the current GPU where there is one, else host memory
    """
    rank, meeting = _meeting_of(group, "shard")
    if source is None:
        return plan.shard(x, rank, dim)
    if device is None:
        device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    return _rows.scattered(x, plan, rank, meeting, dim, source, device)


def gather(x, plan: Plan, group=None, dim: int = 1):
    """All rows on every rank, of the rank's own along `dim`. Collective, forward and backward.

    The gradient of x is the sum of what all ranks have for these rows, added in the order of ranks: that of the sum of the ranks' losses. Where
    each computes the same loss of all rows, divide it by the number of ranks, or take the mean of parameters' gradients, as FSDP and DDP do.
    """
    return _rows.gathered(x, plan, *_meeting_of(group, "gather"), dim)


def _group_of_parts(what, group, q):
    """Where ranks merge parts; q may be anything, which is refused later."""
    group = _group_for(group, q.device if isinstance(q, torch.Tensor) else None)
    if group.meeting is None:
        raise UnsupportedError(f"{what}: the group carries messages of calls alone: take Group.of or Group.local")
    return group


@torch.no_grad()
def decode(q, k, v, pattern, group: Group, *, keys: Sequence[Tuple[int, int]], q_origin: Optional[int] = None, scale: Optional[float] = None,
           return_lse: bool = False, **arguments: Any):
    """Few queries, which every rank has, over keys of which each rank has a range: heddle.attention of all keys, with the same bits on every rank.

    q [batch, seqlen_q, heads, head_dim], alike on all ranks; k and v [batch, rows, kv_heads, ...]: the rank's own, maybe none
    keys      the range of each rank, (first, last), one behind the other from 0: the same list on every rank, as are all other arguments
    q_origin  position of query 0, as key 0 has position 0; None: the queries are the last positions of the keys
    arguments  of the pattern; a bias has an entry for each query and each key of all ranks

    Each rank computes its part into fp32; parts are exchanged once, 4 (value_dim + 1) bytes for each head of a query from every rank to all, and
    merged by all alike. Ranks that come with something else: InvalidArgumentError in host memory, NaN on a GPU, where nobody waits but for
    ranks whose q, or dim of v, is of another size: these wait as long as NCCL does. What one rank alone is refused (rows, a type, a shape)
    is UnavailableError with the reason on all others in host memory, NaN for them on a GPU.
    UnsupportedError: a pattern with a sink, and those whose calls cannot be parts. No gradients.
    """
    group = _group_of_parts("decode", group, q)
    out, lse = _split_keys.decode(group, q, k, v, pattern, keys, q_origin, scale, arguments)
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
    4 (value_dim + 1) bytes for each head of a query from every rank to all, and merged by all alike. Ranks that come with something else,
    or parts that are not the whole: InvalidArgumentError in host memory, NaN on a GPU, where nobody waits. What one rank alone is refused, and
    UnsupportedError, as of `decode`.
    """
    group = _group_of_parts("paged_attention", group, q)
    out, lse = _split_keys.paged_attention(group, q, k_cache, v_cache, page_table, pattern, dict(whole_k=whole_k, k_origins=k_origins, seqused_k=seqused_k),
                                           cu_seqlens_q, scale, descale, arguments)
    return (out.to(q.dtype), lse) if return_lse else out.to(q.dtype)
