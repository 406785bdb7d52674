"""Plans of calls that give a pattern: the ranks say once, for calls of their like, how many rows each has, and the group keeps the plan."""
import ctypes
import hashlib
from typing import Any, NamedTuple, Optional

import torch
from torch.utils.weak import WeakIdKeyDictionary

from . import _call, _header
from .errors import InvalidArgumentError, UnavailableError, UnsupportedError

_MOST_PLANS = 64  # kept by a group
_REFUSED = -1     # in the place of a number of rows


class Way(NamedTuple):
    """How a call lies over ranks, as `attention` is told; None: it is not."""
    layout: Optional[str] = None
    form: Optional[str] = None
    seqlen: Optional[int] = None
    calls: Any = None
    placement_free: Optional[bool] = None

    def refuse(self):
        """Beside a Plan, which says all of it."""
        for name, value in self._asdict().items():
            if value is not None:
                raise InvalidArgumentError(f"{name}: the plan says it: give a pattern in the place of the plan, or {name}= to heddle.distributed.plan")


class Sizes(NamedTuple):
    batch: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    dtype: torch.dtype
    gradients: bool


def sizes_of(q, k, v):
    has_gradients = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    return Sizes(q.shape[0], q.shape[2], k.shape[2], q.shape[3], v.shape[3], q.dtype, has_gradients)


_contents = WeakIdKeyDictionary()  # of tensors that were read: their version, and bytes


def _content(tensor):
    """What a plan reads of it, as something that can be compared."""
    version = None if tensor.is_inference() else tensor._version
    known = _contents.get(tensor)
    if known is None or version is None or known[0] != version:
        hosted = tensor.detach().cpu().contiguous()
        digest = hashlib.sha256(ctypes.string_at(hosted.data_ptr(), hosted.nbytes)).digest()
        known = version, (str(hosted.dtype), tuple(hosted.shape), digest)
        _contents[tensor] = known
    return known[1]


def _asked(group, rows, device):
    """The rows of all ranks. Collective."""
    if group.meeting is None:
        raise UnsupportedError("seqlen: the group carries messages of calls alone, and cannot ask its ranks how many rows they have: give seqlen=, or a plan")
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise UnsupportedError("seqlen: the stream is captured, and ranks cannot be asked how many rows they have: make such a call once before, or give seqlen=")
    try:
        lengths = group.meeting.numbers(group.rank, rows, device)
    except UnavailableError as error:
        raise UnavailableError(f"seqlen: rank {group.rank} asks how many rows each rank has, as a call with {rows} rows is new to it: {error}; where the "
                               "rows of some ranks change and those of others do not, give seqlen=") from None
    refused = [rank for rank, length in enumerate(lengths) if length == _REFUSED]
    if refused and rows != _REFUSED:
        raise UnavailableError(f"rank {refused[0]} takes no part: its q, k or v is refused there")
    return lengths


def _made(make, pattern, sizes, way, lengths, arguments):
    layout = way.layout or "contiguous"
    if way.seqlen is None and layout == "contiguous":  # whatever lengths they are
        ends = [sum(lengths[:rank + 1]) for rank in range(len(lengths))]
        layout = ";".join(f"{end - length}:{end}" for end, length in zip(ends, lengths))
    made = make(pattern, seqlen=way.seqlen or sum(lengths), heads=sizes.heads, kv_heads=sizes.kv_heads, layout=layout, form=way.form or "auto",
                placement_free=bool(way.placement_free), calls=way.calls, **arguments)
    wrong = [rank for rank, length in enumerate(lengths or ()) if length != made.rows(rank)]
    if wrong:
        raise InvalidArgumentError(f"layout: {layout!r} of {made.seqlen} rows gives rank {wrong[0]} {made.rows(wrong[0])} rows, it has {lengths[wrong[0]]}: "
                                   "shard tensors by a plan of this layout (heddle.distributed.shard)")
    return made


def _read(pattern, arguments):
    """What plans are of: values, and tensors that are read; and tensors of floats, which may differ from call to call."""
    values, tensors = _call.call_values(pattern, arguments)
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise InvalidArgumentError(f"pattern {pattern.name}: {name}: expected a PyTorch tensor, got {type(tensor).__name__}")
    floats = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    return values, {name: tensor for name, tensor in tensors.items() if name not in floats}, floats


def _key(pattern, sizes, rows, way, values, read):
    return (pattern, way, sizes, rows if way.seqlen is None else None, tuple(sorted(values.items())),
            tuple((name, _content(tensor)) for name, tensor in sorted(read.items())))


def of_call(group, pattern, sizes, rows, device, way, arguments, make):
    """The plan, and those of `arguments` that may differ from call to call. `rows`: of this rank. Collective where a call of its like is new,
    unless `way` says the length."""
    values, read, floats = _read(pattern, arguments)
    key = _key(pattern, sizes, rows, way, values, read)
    kept = group.plans.get(key)
    if kept is None:
        lengths = _asked(group, rows, device) if way.seqlen is None else None
        copies = {name: tensor.detach().clone() for name, tensor in read.items()}  # the caller may write to his
        sized = {name: tensor for name, tensor in floats.items() if not _header.lacks_length(pattern.argument(name))}
        kept = _made(make, pattern, sizes, way, lengths, {**values, **copies, **sized})
        if len(group.plans) >= _MOST_PLANS:
            group.plans.clear()
        group.plans[key] = kept
    return kept, floats


def refuse(group, pattern, tensors, way, arguments, why):
    """In the place of `of_call`, where `tensors` of this rank are refused, `why`: those that ask are told. With a plan the rank leaves."""
    lengths = {each.shape[1] for each in tensors if each.dim() == 4}
    values, read, _ = _read(pattern, arguments)
    likes = {_key(pattern, None, rows, way, values, read) for rows in lengths}
    batches = {each.shape[0] for each in tensors if each.dim() == 4}
    has_plan = any((*key[:2], None, *key[3:]) in likes and key[2].batch in batches for key in group.plans)
    if has_plan or way.seqlen is not None:
        group.abort(str(why))
    else:
        _asked(group, _REFUSED, tensors[0].device)
