"""Calls on tensors that are not PyTorch's: numpy arrays and whatever speaks DLPack."""
import ctypes as C

from . import _call, _dlpack, _engine
from .errors import InvalidArgumentError


class Bound:
    """One call with its tensors: results allocated, the kernel found, workspace there. `launch` may be repeated."""

    def __init__(self, q, k, v, pattern, scale, out, lse, q_origin, k_origin, carry, arguments, stream):
        self.stream = stream = _call.stream_address(stream)
        values, tensors = _call.call_values(pattern, arguments)
        views = [_dlpack.view(each, name, stream) for name, each in (("q", q), ("k", k), ("v", v))]
        operands = {name: _dlpack.view(each, name, stream) for name, each in tensors.items()}
        _call.check_tensors(*views)
        shape = (*views[0].shape[:3], views[2].shape[3])
        self.out = _dlpack.empty(q, shape, None) if out is None else out
        self.lse = _dlpack.empty(q, (shape[0], shape[2], shape[1]), "fp32") if lse is None else lse
        for name, each in (("out", out), ("lse", lse)):
            if _dlpack.is_read_only(each):
                raise InvalidArgumentError(f"{name}: expected an array that may be written, got a read-only one")
        out_view, lse_view = _dlpack.view(self.out, "out", stream), _dlpack.view(self.lse, "lse", stream)
        carried = None if carry is None else [_dlpack.view(each, f"carry: {name}", stream) for name, each in zip(("out", "lse"), carry)]
        self.call = _call.Call(pattern, *views, out_view, scale, q_origin, k_origin, values, operands, carried)
        _call.check_results(views[0], views[2], out_view, lse_view)
        self.call.args.lse = lse_view.ptr
        _call.check_apart(self.call.args)
        self.kernel = None if self.call.device is None else _engine.engine().find(self.call.question()).current(stream)
        self._keep = (q, k, v, carry, tensors)
        self._frozen = None
        self._set_workspace()

    def _set_workspace(self):
        """Device memory of the same library that the tensors are of: of the stream, so that it is given to others after the work there."""
        needed = self.call.workspace_bytes(self.kernel) if self.kernel else 0
        if needed:
            q = self._keep[0]
            with _dlpack.stream_of(q, self.stream):
                self.workspace = _dlpack.empty(q, (needed // 4 + 64,), "fp32")
            workspace = _dlpack.view(self.workspace, "workspace", self.stream)
            _call.check_place("workspace", workspace, self.call.device)
            self.call.args.workspace, self.call.args.workspace_bytes = (workspace.ptr + 255) // 256 * 256, needed

    def freeze(self):
        """Checks once: later launches are those of a prepared call."""
        if self.kernel is not None:
            self._frozen = _call.Frozen(_engine.engine().library, self.kernel, self.call.args)

    def launch(self):
        if self.kernel is None:
            _call.run_on_host(self.call)
            return
        if self._frozen is not None:
            self._frozen.launch(self.stream)
            return
        library = _engine.engine().library
        library.call("heddle_kernel_launch", self.kernel.handle, C.c_void_p(self.stream), self.call.reference)


def bind(q, k, v, pattern, scale, out, lse, q_origin, k_origin, carry, arguments, stream):
    for name, each in (("k", k), ("v", v)):
        if type(each).__module__.partition(".")[0] == "torch":
            raise InvalidArgumentError(f"{name}: expected a tensor of the same library as q, {type(q).__name__}, got a PyTorch tensor")
    return Bound(q, k, v, pattern, scale, out, lse, q_origin, k_origin, carry, arguments, stream)
