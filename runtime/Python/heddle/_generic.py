"""Calls on tensors that are not PyTorch's: numpy arrays and whatever speaks DLPack."""
import ctypes as C

from . import _call, _dlpack, _elements, _engine
from .errors import InvalidArgumentError, UnsupportedError


def _inputs_of(spec, stream):
    for name in ("k", "v"):
        if type(getattr(spec, name)).__module__.partition(".")[0] == "torch":
            raise InvalidArgumentError(f"{name}: expected a tensor of the same library as q, {type(spec.q).__name__}, got a PyTorch tensor")
    return _call.inputs_of(spec, lambda tensor, name: _dlpack.view(tensor, name, stream), spec.kind)


class _Launch:
    """A call with its tensors, which `spec` keeps: the kernel found, workspace there."""

    def __init__(self, call, spec, stream):
        self.call, self._spec, self.stream = call, spec, stream
        self.kernel = None if call.device is None else _engine.engine().find(call.question()).current(stream)
        if self.kernel and call.inputs.kind.has_pages and _engine.checks_pages():
            raise UnsupportedError(f"{spec.name}: heddle.configure(check_pages=True) looks at PyTorch tensors alone, q is a {type(spec.q).__name__}")
        self._frozen = None
        self._set_workspace()

    def _set_workspace(self):
        """Device memory of the same library that the tensors are of: of the stream, so that it is given to others after the work there."""
        needed = self.call.workspace_bytes(self.kernel) if self.kernel else 0
        if needed:
            q = self._spec.q
            with _dlpack.stream_of(q, self.stream):
                self.workspace = _dlpack.empty(q, (needed // 4 + 64,), "fp32")
            workspace = _dlpack.view(self.workspace, "workspace", self.stream)
            _call.check_place("workspace", workspace, self.call.device)
            self.call.args.workspace, self.call.args.workspace_bytes = (workspace.ptr + 255) // 256 * 256, needed

    def freeze(self):
        """Checks once: later launches are those of a prepared call."""
        if self.kernel is None:
            _call.check_on_host(self.call)
        else:
            self._frozen = _call.Frozen(_engine.engine().library, self.kernel, self.call.args)

    def close(self):
        """Lets go of the launch."""
        if self._frozen is not None:
            self._frozen.close()

    def count_pairs(self, pairs):
        if self._frozen is not None:
            self._frozen.count_pairs(_call.pairs_of(self.call) if pairs is None else pairs)

    def launch(self):
        if self.kernel is None:
            _call.run_on_host(self.call)
            return
        if self._frozen is not None:
            self._frozen.launch(self.stream)
            return
        library = _engine.engine().library
        library.call("heddle_kernel_launch", self.kernel.handle, C.c_void_p(self.stream), self.call.reference)


class Bound(_Launch):
    """One call, with its results. `launch` may be repeated."""

    @staticmethod
    def is_traced():
        return False

    def __init__(self, spec):
        stream = _call.stream_address(spec.stream)
        inputs = _inputs_of(spec, stream)
        dtype = inputs.first.dtype
        of_out = _elements.of_out(dtype).name
        self.out = _dlpack.empty(spec.q, inputs.shape("out"), None if of_out == dtype else of_out) if spec.out is None else spec.out
        self.lse = _dlpack.empty(spec.q, inputs.shape("lse"), "fp32") if spec.lse is None else spec.lse
        for name, each in (("out", spec.out), ("lse", spec.lse)):
            if _dlpack.is_read_only(each):
                raise InvalidArgumentError(f"{name}: expected an array that may be written, got a read-only one")
        call = _call.Call(spec, inputs, {name: _dlpack.view(getattr(self, name), name, stream) for name in ("out", "lse")})
        self.lacks_lse = call.lacks_lse
        super().__init__(call, spec, stream)


def gradients(spec):
    """d_q, d_k, d_v, and those of the numbers and tensors of the pattern that are asked for, in fp32."""
    stream = _call.stream_address(spec.stream)
    inputs = _inputs_of(spec, stream)
    for name, each in zip(("d_q", "d_k", "d_v"), spec.add_to or ()):
        if _dlpack.is_read_only(each):
            raise InvalidArgumentError(f"{name}: expected an array that may be written, got a read-only one")
    instead = "give numpy arrays, or those of a library that makes some"
    results = {role.name: _dlpack.empty(spec.q, inputs.shape(role.name), None, role.name, instead) for role in inputs.kind.made}
    call = _call.Call(spec, inputs, {name: _dlpack.view(each, name, stream) for name, each in results.items()})
    others = {name: _dlpack.empty(spec.q, call.gradient_shape(name), "fp32") for name in spec.gradients_of}
    call.set_gradients({name: _dlpack.view(each, name, stream).ptr for name, each in others.items()})
    _Launch(call, spec, stream).launch()
    return [*(spec.add_to or results.values()), *others.values()]
