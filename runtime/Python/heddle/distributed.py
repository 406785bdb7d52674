"""Sequences longer than one GPU: one call over the ranks of a group, each with some of the rows.

    plan = heddle.distributed.plan("causal", seqlen=1 << 20, heads=64, kv_heads=8, ranks=world, layout="zigzag")
    group = heddle.distributed.Group.of(torch.distributed.group.WORLD)
    q, k, v = (plan.shard(x, group.rank) for x in (q, k, v))          # or made where they are needed
    out = heddle.distributed.attention(q, k, v, plan, group)          # autograd works through it

The plan is the same on every rank: whose rows lie where, and which keys travel to whom in which step: only those that some row of the
receiver keeps. docs/distributed.md is the guide.
"""
import ctypes as C
from typing import Any, Optional, Sequence

import torch

from . import _call, _elements, _engine, _kinds, _library, _torch, patterns
from . import _structs as S
from .errors import InvalidArgumentError, UnsupportedError
from .patterns import Pattern

__all__ = ["Group", "Plan", "attention", "plan"]


class Plan:
    """How a call lies over ranks. `ranks`, `seqlen`, `heads`, `kv_heads`, `layout` (the ranges of each rank), `travelling` (rows of k that
    travel in a forward call of all ranks, each as often as heads of it do), `text`, `pattern`, `part` (the pattern whose calls are parts)."""

    def __init__(self, pattern: Pattern, arguments: dict, handle):
        loaded = _library.library()
        self.pattern, self.arguments, self.handle = pattern, arguments, handle
        info = S.sized(S.GroupPlanInfo)
        loaded.call("heddle_group_plan_get_info", handle, C.byref(info))
        self.ranks, self.seqlen, self.heads, self.kv_heads = info.ranks, info.rows, info.heads, info.kv_heads
        self.travelling, self.text = info.travelling, info.text.decode()
        lines = (line.split() for line in self.text.splitlines())
        self.layout = [[tuple(map(int, word.split(":"))) for word in words[1:]] for words in lines if words[:1] == ["rank"]]
        self.part = _part_of(pattern)
        self.workspaces = {}

    def rows(self, rank: int) -> int:
        """How many rows a rank has."""
        return sum(last - first for first, last in self.layout[rank])

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


def _part_of(pattern):
    loaded = _library.compiler_library("a call over ranks")
    handle = loaded.opened("heddle_pattern_part", pattern.handle)
    info = S.sized(S.PatternInfo)
    loaded.call("heddle_pattern_get_info", handle, C.byref(info))
    part = Pattern(info.text.decode(), values=pattern.values)
    loaded.close("pattern", handle)
    return part


def plan(pattern, *, seqlen: int, heads: int, ranks: int, kv_heads: Optional[int] = None, layout: str = "contiguous", form: str = "gather",
         placement_free: bool = False, farthest_gap: int = 0, column_step: int = 0, **arguments: Any) -> Plan:
    """Plans calls of a pattern over ranks; queries and keys lie alike.

    layout          "contiguous", "zigzag" (chunks r and 2 ranks - 1 - r: even for causal), "striped:ROWS", or ranges "0:64,192:256;64:192"
    form            "gather": keys that a rank asks for come at once, before the rows that need them. "ring": one peer a step, in the memory
                    of two steps
    placement_free  bits that do not depend on ranks and layout; gradients are computed twice
    arguments       of the pattern, as heddle.attention takes them; tensors of integers are read (copied to host memory)
    """
    pattern = patterns.resolved(pattern)
    loaded = _library.compiler_library("a plan over ranks")
    values, tensors = _call.call_values(pattern, arguments)
    hosted = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    operands = _operands(pattern, values, {name: _torch.view(tensor, name) for name, tensor in hosted.items()})
    flags = S.GROUP_PLACEMENT_FREE * bool(placement_free)
    options = S.sized(S.GroupOptions, ranks=ranks, seqlen=seqlen, heads=heads, kv_heads=kv_heads or heads, layout=layout.encode(),
                      form=form.encode(), flags=flags, farthest_gap=farthest_gap, column_step=column_step)
    options.operands, options.operand_count = operands, len(operands)
    handle = loaded.opened("heddle_group_plan_make", pattern.handle, C.byref(options))
    return Plan(pattern, dict(arguments), handle)


def _operands(pattern, values, views):
    given = [(pattern.argument(name), None, view) for name, view in views.items()]
    given += [(pattern.argument(name), view.shape[-1], None) for name, view in views.items() if pattern.argument(name).takes_length]
    given += [(pattern.argument(name), value, None) for name, value in values.items()]
    operands = (S.Operand * max(1, len(given)))()
    for operand, (argument, value, view) in zip(operands, given):
        if view is None:
            _engine.set_operand(operand, argument, value)
        else:
            operand.id, operand.kind, operand.value.ptr = argument.id, S.OPERAND_POINTER, view.ptr
    return operands if given else (S.Operand * 0)()


class Group:
    """One rank's end of a group: `rank`, `ranks`, `device` (the number of its GPU, None: processors)."""

    def __init__(self, handle, rank: int, ranks: int, device: Optional[int]):
        self.handle, self.rank, self.ranks, self.device = handle, rank, ranks, device

    @staticmethod
    def of(process_group=None, device: Optional[int] = None, limit: float = 0) -> "Group":
        """The ranks of a group of torch.distributed, a GPU each (None: the current one), over NCCL. Collective. `limit`: seconds that a rank
        waits for others (0: 30)."""
        from torch import distributed
        rank, ranks = distributed.get_rank(process_group), distributed.get_world_size(process_group)
        loaded, identity = _library.library(), C.create_string_buffer(S.GROUP_ID_BYTES)
        if rank == 0:
            loaded.call("heddle_group_make_id", identity)
        shared = [identity.raw]
        distributed.broadcast_object_list(shared, distributed.get_global_rank(process_group, 0) if process_group else 0, process_group)
        device = torch.cuda.current_device() if device is None else device
        handle = loaded.opened("heddle_group_open", _engine.engine().device(device), C.create_string_buffer(shared[0], S.GROUP_ID_BYTES), rank, ranks,
                               float(limit))
        return Group(handle, rank, ranks, device)

    @staticmethod
    def local(ranks: int, limit: float = 0) -> "list[Group]":
        """Ranks that are threads of this process, for tensors in host memory: each is used by a thread of its own."""
        handles = (C.c_void_p * ranks)()
        _library.library().call("heddle_group_open_local", ranks, float(limit), handles)
        return [Group(handle, rank, ranks, None) for rank, handle in enumerate(handles)]

    def abort(self, why: str = ""):
        """From any thread: the rank leaves, and the others are told."""
        _library.library().call("heddle_group_abort", self.handle, why.encode() or None)

    def wait(self):
        """Until the calls on the current stream are over; UnavailableError names a rank that is lost."""
        if self.device is not None:
            _library.library().call("heddle_group_wait", self.handle, _torch.current_stream(self.device))

    def close(self):
        handle, self.handle = self.handle, None
        if handle is not None:
            _library.library().close("group", handle)

    def __del__(self):
        self.close()


class _Call:
    """The argument struct of one rank's share."""

    def __init__(self, the_plan, group, kind, tensors, arrays, scale, arguments):
        self.plan, self.group, self.kind = the_plan, group, kind
        self.views = {name: _torch.view(tensor, name) for name, tensor in tensors.items()}
        self.args = S.sized(S.AttentionArgs, scale=0 if scale is None else scale)
        for name, view in self.views.items():
            _call._describe(getattr(self.args, name), view)
            _call.check_place(name, view, group.device)
        for name, array in arrays.items():
            setattr(self.args, name, array.data_ptr())
        values, given = _call.call_values(the_plan.pattern, {**the_plan.arguments, **arguments})
        self.given = {name: tensor.to(tensors["q"].device) for name, tensor in given.items()}
        self.values = values
        self.operands = _operands(the_plan.pattern, values, {name: _torch.view(tensor, name) for name, tensor in self.given.items()})
        self.args.operands, self.args.operand_count = self.operands, len(self.operands)
        self.device = tensors["q"].device

    def run(self):
        if self.group.device is None:
            _library.library().call("heddle_group_run", self.group.handle, self.plan.handle, self.plan.part.handle, self.kind.encode(), C.byref(self.args),
                                    _engine.threads())
            return
        loaded, kernels = _library.library(), self._kernels()
        handles = (C.c_void_p * len(kernels))(*(kernel.handle for kernel in kernels))
        where = (self.group.handle, self.plan.handle, handles, len(kernels), self.kind.encode())
        needed = self._workspace_bytes(where, kernels)
        workspace = torch.empty(needed, dtype=torch.uint8, device=self.device)
        self.args.workspace, self.args.workspace_bytes = workspace.data_ptr(), needed
        loaded.call("heddle_group_launch", *where, _torch.current_stream(self.group.device), C.byref(self.args))

    def _workspace_bytes(self, where, kernels):
        """A formula of sizes: asked once for each."""
        shapes = tuple((name, view.dtype, view.shape, view.stride) for name, view in self.views.items())
        key = self.group.rank, self.kind, shapes, bool(self.args.d_lse), tuple(kernel.content_key for kernel in kernels)
        if key not in self.plan.workspaces:
            needed = C.c_uint64()
            _library.library().call("heddle_group_workspace", *where, C.byref(self.args), C.byref(needed))
            self.plan.workspaces[key] = needed.value
        return self.plan.workspaces[key]

    def _kernels(self):
        kinds = ["backward_accumulate"] if self.kind == "backward" else ["forward", "forward_fp32_out"]
        q, v = self.views["q"], self.views["v"]
        batch, rows, heads, head_dim = q.shape
        sizes = dict(batch=batch, heads=heads, kv_heads=self.plan.kv_heads, seqlen_q=max(last - first for first, last in self.plan.layout[self.group.rank]),
                     seqlen_k=self.plan.seqlen, q_origin=0, k_origin=0)
        values = dict(self.values, whole_queries=self.plan.seqlen, whole_keys=self.plan.seqlen)
        values.update((name, tensor.shape[-1]) for name, tensor in self.given.items() if self.plan.pattern.argument(name).takes_length)
        ask = lambda kind: _engine.Question(self.plan.part, self.group.device, _elements.numbers()[q.dtype], kind.encode(), head_dim, v.shape[3], sizes,
                                            values)
        return [_engine.engine().find(ask(kind)).current(_torch.current_stream(self.group.device)) for kind in kinds]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(context, q, k, v, the_plan, group, scale, arguments):
        out = torch.empty(*q.shape[:3], v.shape[3], dtype=q.dtype, device=q.device)
        lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], dtype=torch.float32, device=q.device)
        _Call(the_plan, group, "forward", dict(q=q, k=k, v=v, out=out), dict(lse=lse), scale, arguments).run()
        context.save_for_backward(q, k, v, out, lse)
        context.call = the_plan, group, scale, arguments
        return out, lse

    @staticmethod
    def backward(context, d_out, d_lse):
        q, k, v, out, lse = context.saved_tensors
        the_plan, group, scale, arguments = context.call
        gradients = [torch.empty(x.shape, dtype=torch.float32, device=x.device) for x in (q, k, v)]
        tensors = dict(zip(("q", "k", "v", "out", "d_out", "d_q", "d_k", "d_v"), (q, k, v, out, d_out.contiguous(), *gradients)))
        arrays = dict(lse=lse) if d_lse is None else dict(lse=lse, d_lse=d_lse.contiguous())
        _Call(the_plan, group, "backward", tensors, arrays, scale, arguments).run()
        return (*(each.to(x.dtype) for each, x in zip(gradients, (q, k, v))), None, None, None, None)


def attention(q, k, v, the_plan: Plan, group: Group, *, scale: Optional[float] = None, return_lse: bool = False, **arguments: Any):
    """One rank's share of attention over a group, as heddle.attention of the whole. Collective: every rank calls it, in the same order.

    q [batch, rows, heads, head_dim], k and v [batch, rows, kv_heads, ...]: the rank's own rows (`Plan.shard`), on the group's GPU, or in host
    memory of a group of threads. Returns out, or (out, lse), of these rows; gradients of q, k and v are those of the whole call.
    `arguments`: tensors of the pattern that differ from the plan's, of the same meaning. UnavailableError names a rank that is lost.
    """
    for name, tensor in dict(q=q, k=k, v=v).items():
        if tensor.dim() != 4 or tensor.shape[1] != the_plan.rows(group.rank):
            raise InvalidArgumentError(f"{name}: expected 4 dimensions, and {the_plan.rows(group.rank)} rows on rank {group.rank}, got {list(tensor.shape)}")
    if any(isinstance(each, torch.Tensor) and each.requires_grad for each in {**the_plan.arguments, **arguments}.values()):
        raise UnsupportedError("calls over a group have no gradients of a pattern's tensors: give them detached")
    out, lse = _Attention.apply(q, k, v, the_plan, group, scale, arguments)
    return (out, lse) if return_lse else out
