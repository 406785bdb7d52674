"""One rank's share of calls over a group, kept for calls with the same sizes, strides and values: then only addresses change."""
import ctypes as C

import torch

from . import _call, _elements, _engine, _header, _library, _torch
from . import _structs as S
from .errors import Error, InvalidArgumentError

_MOST_SHARES = 64  # kept by a group


def operands(pattern, values, views):
    """The array of heddle_operand: tensors, their lengths where they have one, sizes and numbers."""
    given = [(pattern.argument(name), None, view) for name, view in views.items()]
    given += [(pattern.argument(name), _header.length_of(view.shape), None) for name, view in views.items() if pattern.argument(name).takes_length]
    given += [(pattern.argument(name), value, None) for name, value in values.items()]
    array = (S.Operand * max(1, len(given)))()
    for operand, (argument, value, view) in zip(array, given):
        if view is None:
            _engine.set_operand(operand, argument, value)
        else:
            operand.id, operand.kind, operand.value.ptr = argument.id, S.OPERAND_POINTER, view.ptr or _call.NOWHERE
    return array if given else (S.Operand * 0)()


def _check_read(the_plan, arguments):
    """Tensors of integers are those that were read when the plan was made."""
    for name, tensor in arguments.items():
        planned = the_plan.arguments.get(name)
        if not isinstance(planned, torch.Tensor) or planned is tensor or planned.is_floating_point():
            continue
        if planned.shape != tensor.shape or not torch.equal(planned.cpu(), tensor.cpu()):
            raise InvalidArgumentError(f"{name}: expected the numbers of which the plan was made, as its keys travel by them; make a plan of these")


def _kernel_kinds(kind, tensors):
    """Of the kernels of a call: d_q of fp32 is added to, whatever the plan allows."""
    if kind == "forward":
        return "forward", "forward_fp32_out"
    return ("backward_accumulate" if tensors["d_q"].dtype == torch.float32 else "backward_accumulate_keys",)


def check_tensors(pattern, views, call):
    """Those that the pattern reads, against its types, where q lies, and (batch, heads, rows of queries, keys) of the call."""
    for name, view in views.items():
        if name != "q":
            _call.check_operand(pattern, pattern.argument(name), view, views["q"].device, call)


class Share:
    """The argument struct of one rank's share, and its kernels."""

    def __init__(self, the_plan, group, kind, tensors, arrays, scale, arguments):
        self.plan, self.group, self.kind, self.device = the_plan, group, kind.encode(), tensors["q"].device
        self.args = S.sized(S.AttentionArgs, scale=0 if scale is None else scale)
        self.reference = C.byref(self.args)
        self.views = {name: _torch.view(tensor, name) for name, tensor in tensors.items()}
        for name, view in self.views.items():
            _call._describe(getattr(self.args, name), view)
            _call.check_place(name, view, group.device)
        self._places = [getattr(self.args, name) for name in tensors]
        self._set_operands(the_plan, arguments)
        self._arrays = tuple(arrays)
        self._found = None if group.device is None else [_engine.engine().find(self._question(each.encode())) for each in _kernel_kinds(kind, tensors)]
        self._kernels, self.has_met = None, False

    def _set_operands(self, the_plan, arguments):
        _check_read(the_plan, arguments)
        self._values, given = _call.call_values(the_plan.pattern, {**the_plan.arguments, **arguments})
        self._given = {name: tensor.to(self.device) if isinstance(tensor, torch.Tensor) else tensor for name, tensor in given.items()}
        views = {name: _torch.view(tensor, name) for name, tensor in self._given.items()}
        q = self.views["q"]
        check_tensors(the_plan.pattern, {**views, "q": q}, (q.shape[0], the_plan.heads, q.shape[1], the_plan.seqlen))
        self._operands = operands(the_plan.pattern, self._values, views)
        self.args.operands, self.args.operand_count = self._operands, len(self._operands)
        self._operand_of = {name: next(each for each in self._operands if (each.id, each.kind) == (the_plan.pattern.argument(name).id, S.OPERAND_POINTER))
                            for name in arguments if name in views}

    def _question(self, kind):
        q, v, of = self.views["q"], self.views["v"], self.plan
        batch, _, heads, head_dim = q.shape
        sizes = dict(batch=batch, heads=heads // of.head_ranks, kv_heads=max(1, of.kv_heads // of.head_ranks),
                     seqlen_q=of.seqlen if of.placement_free else of.longest_range(self.group.rank), seqlen_k=of.seqlen, q_origin=0, k_origin=0)
        values = dict(self._values, **{each.name: of.seqlen for each in of.part.arguments if each.of_whole})
        values.update((name, _header.length_of(tensor.shape)) for name, tensor in self._given.items() if of.part.argument(name).takes_length)
        return _engine.Question(of.part, self.group.device, _elements.numbers()[q.dtype], kind, head_dim, v.shape[3], sizes, values, is_batch_invariant=of.placement_free)

    def keep(self, arguments):
        """For more calls, whose arguments lie elsewhere."""
        for name in arguments:
            del self._given[name]

    def run(self, tensors, arrays, arguments):
        """Of the sizes, strides and types that it was made of, in that order; `arguments`: likewise."""
        for place, tensor in zip(self._places, tensors.values()):
            place.ptr = tensor.data_ptr()
        for name, tensor in arguments.items():
            self._operand_of[name].value.ptr = tensor.data_ptr() or _call.NOWHERE
        for name in self._arrays:
            setattr(self.args, name, arrays[name].data_ptr())
        if self._found is None:
            _run(self.plan, self.group, self.kind, self.reference)
            self.has_met = True
            return
        try:
            workspace = self._ready()
        except Exception as error:
            refuse(self.plan, self.group, self.views, error)
            raise
        self.args.workspace = workspace.data_ptr()
        self._library.call("heddle_group_launch", *self._where, self._stream, self.reference)  # ranks may meet in it: without the interpreter's lock
        self.has_met = True

    def _ready(self):
        """The workspace of a launch by the kernels that are current."""
        self._stream = _torch.current_stream(self.group.device)
        kernels = [found.current(self._stream) for found in self._found]
        if kernels != self._kernels:
            self._use(kernels)
        return self._workspaces.new()

    def _use(self, kernels):
        self._library = loaded = _engine.engine().library
        handles = (C.c_void_p * len(kernels))(*(kernel.handle for kernel in kernels))
        self._where = C.c_void_p(self.group.handle), C.c_void_p(self.plan.handle), handles, len(kernels), self.kind
        needed = C.c_uint64()
        try:
            loaded.call("heddle_group_workspace", *self._where, self.reference, C.byref(needed))
            self._kernels = kernels
        except Error:
            self._kernels = None  # the launch is refused in the same words, and tells the other ranks
        self.args.workspace_bytes = needed.value
        self._workspaces = _torch.Results((needed.value,), torch.uint8, self.device)


def _run(the_plan, group, kind, reference):
    _library.library().call("heddle_group_run", group.handle, the_plan.handle, the_plan.part.handle, kind, reference, _engine.threads())


def refuse(the_plan, group, tensors, why):
    """In the place of a call whose tensors are refused here. Where ranks meet before it, as it is the first of its like, the library refuses these
    rows, or none, and tells all others; else the rank leaves."""
    batch = tensors["q"].shape[:1]
    if any(share.has_met and share.plan is the_plan and share.views["q"].shape[:1] == batch for share in group.shares.values()):
        group.abort(str(why))
        return
    wrong = [each.shape[1] for each in tensors.values() if len(each.shape) == 4 and each.shape[1] != the_plan.rows(group.rank)]
    args = S.sized(S.AttentionArgs)
    for name in ("q", "k", "v", "out"):
        tensor = getattr(args, name)
        tensor.dtype, tensor.size[:] = _elements.numbers()["fp32"], (1, wrong[0] if wrong else 0, 1, 8)
    try:
        if group.device is None:
            _run(the_plan, group, b"forward", C.byref(args))
        else:
            _library.library().call("heddle_group_launch", group.handle, the_plan.handle, None, 0, b"forward", _torch.current_stream(group.device), C.byref(args))
    except Error:
        pass  # the caller has the reason


def run(the_plan, group, kind, tensors, arrays, scale, arguments):
    """A rank's share of a call: `tensors` and `arrays` by their names in heddle_attention_args, `arguments` of the pattern that are not the plan's."""
    key = None
    device = tensors["q"].device
    if all(isinstance(each, torch.Tensor) and each.is_floating_point() and each.device == device for each in arguments.values()):
        everything = (*tensors.values(), *arguments.values())
        shapes = tuple(part for tensor in everything for part in (tensor.dtype, tensor.device, tensor.shape, tensor.stride(), tensor.is_neg()))
        key = the_plan, kind, scale, tuple(arrays), tuple(arguments), shapes
    share = group.shares.get(key)
    if share is None:
        try:
            share = Share(the_plan, group, kind, tensors, arrays, scale, arguments)
        except Exception as error:
            refuse(the_plan, group, tensors, error)
            raise
        if key is not None:
            if len(group.shares) >= _MOST_SHARES:
                group.shares.clear()
            share.keep(arguments)
            group.shares[key] = share
    share.run(tensors, arrays, arguments if key is not None else {})
