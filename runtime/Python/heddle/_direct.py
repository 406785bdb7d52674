"""What calls do at once, outside of any graph of PyTorch."""
import ctypes as C
import sys
import time
from typing import Any, NamedTuple, Optional, Tuple

from . import _call, _elements, _engine, _kinds, _library, _scalars, patterns
from . import _structs as S
from .errors import InvalidArgumentError, UnsupportedError
from .patterns import Pattern


def is_compiling():
    """Inside torch.compile or torch.export; torch itself is not imported for the question."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    return compiler is not None and compiler.is_compiling()


def is_traced():
    """By torch.compile, which runs symbols through Python's code; torch.export does so where it is strict."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    return compiler is not None and compiler.is_dynamo_compiling()


def is_torch(tensor):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(tensor, torch.Tensor)


_eager: Any = None  # ours for PyTorch, once a PyTorch tensor was seen
_plain_types: tuple = ()


def _is_watched():
    """Whether something records what PyTorch does (make_fx, a counter of operations): it sees ops, not addresses."""
    return 0


def _load_eager():
    global _eager, _plain_types, _is_watched
    import torch
    from . import _torch

    def eager(spec, return_lse):
        if _torch.wants_gradients(spec):
            from . import _torch_op
            return _torch_op.recorded(spec, return_lse)
        return _torch.attention(spec, return_lse)

    _eager, _plain_types = eager, (torch.Tensor, torch.nn.Parameter)
    _is_watched = getattr(torch._C, "_len_torch_dispatch_stack", _is_watched)


def is_recorded(tensor):
    """Whether a call must be an op: PyTorch compiles, records what it does, or gave a tensor that has no memory of its own."""
    if is_compiling():
        return True
    if not is_torch(tensor):
        return False
    if _eager is None:
        _load_eager()
    return type(tensor) not in _plain_types or bool(_is_watched())


def no_stream(what):
    return InvalidArgumentError(f"{what}: stream: PyTorch tensors run on PyTorch's current stream: with torch.cuda.stream(...)")


def _resolved(spec, what, **others):
    """With a Pattern that has no argument which the call may have been given, and with Python's numbers; `others`: as of
    CallSpec.refuse_unclear."""
    if type(spec.pattern) is not Pattern:
        spec = spec._replace(pattern=patterns.resolved(spec.pattern))
    if spec.pattern.also_of_calls:
        spec.refuse_unclear(what, **others)
    return _call.with_numbers(spec)


def attention(spec, return_lse):
    if type(spec.pattern) is not Pattern or spec.pattern.also_of_calls:  # seldom: this is asked by every call
        spec = _resolved(spec, "attention", return_lse=return_lse or None)
    else:
        spec = _call.with_numbers(spec)
    if type(spec.q) in _plain_types and spec.stream is None and not _is_watched():
        return _eager(spec, return_lse)
    return _other(spec, return_lse)


def _other(spec, return_lse):
    """Fake and functional tensors of PyTorch, other libraries, and the first call with PyTorch."""
    if is_torch(spec.q):
        if spec.stream is not None:
            raise no_stream("attention")
        _load_eager()
        if type(spec.q) in _plain_types and not _is_watched():
            return _eager(spec, return_lse)
        from . import _torch, _torch_op
        if spec.q.is_nested:
            raise _torch.no_nested("q")
        return _torch_op.attention(spec, return_lse)
    bound = _bound(spec)
    bound.launch()
    return (bound.out, bound.lse) if return_lse else bound.out


def backward(spec):
    spec = _resolved(spec, "attention_backward")
    if is_torch(spec.q):
        if spec.stream is not None:
            raise no_stream("attention_backward")
        if spec.add_to is not None or spec.deterministic:
            from . import _torch_backward
            return _torch_backward.added(spec) if spec.add_to is not None else _torch_backward.gradients(spec)
        from . import _torch_op
        return _torch_op.backward(spec)
    from . import _generic
    return _generic.gradients(spec)


def _bound(spec):
    if is_torch(spec.q):
        from . import _torch
        return _torch.Bound(spec)
    from . import _generic
    return _generic.Bound(spec)


def prepare(spec, kind):
    """A `kind`, which is Prepared, of the call."""
    spec = _resolved(spec, "prepare")
    if spec.carry is not None:
        spec = spec._replace(carry=_call.pair_of(spec.carry))
    if spec.stream is not None and is_torch(spec.q):
        raise no_stream("prepare")
    bound = _bound(spec)
    bound.freeze()
    return kind(bound)


def launch(bound):
    bound.launch()


def call_of(spec):
    """The Call of a question about kernels; its results are not there."""
    if is_torch(spec.q):
        from . import _torch
        view = _torch.view
    else:
        from . import _dlpack
        view = _dlpack.view
    inputs = _call.inputs_of(spec, view, spec.kind)
    of_out = _elements.of_out(inputs.first.dtype).name
    call = _call.Call(spec, inputs, {"out": inputs.first._replace(dtype=of_out, shape=inputs.shape("out"))})
    if call.device is None:
        raise UnsupportedError("kernels are for tensors on a GPU; in host memory there is nothing to choose")
    return call


class Gradients(NamedTuple):
    """Which gradients a kernel that is asked about gives."""
    backward: bool = False
    gradients_of: Tuple[str, ...] = ()
    deterministic: bool = False

    def given(self):
        return {name: value or None for name, value in self._asdict().items()}


def gradients(backward, gradients_of, deterministic):
    names = (gradients_of,) if isinstance(gradients_of, str) else tuple(gradients_of)
    if not backward and (names or deterministic):
        raise InvalidArgumentError(f"{'gradients_of' if names else 'deterministic'}: expected backward=True beside it, forward kernels have no such choice")
    return Gradients(bool(backward), names, bool(deterministic))


def _asks_for_order(tensor):
    """PyTorch's flag, which holds for calls on its tensors."""
    return is_torch(tensor) and sys.modules["torch"].are_deterministic_algorithms_enabled()


def _question(spec, wanted):
    call = call_of(spec)
    question = call.question()
    if not wanted.backward:
        return question
    kind = _kinds.of_gradients(False, wanted.deterministic or _asks_for_order(spec.q))
    return question._replace(kind=_call.kind_text(kind, spec, wanted.gradients_of, call.inputs.first.dtype))


def kernel(spec, wanted):
    spec = _resolved(spec, "kernel", **wanted.given())
    return _engine.engine().ask(_question(spec, wanted))


class Task:
    """Work in the background."""

    def __init__(self, library, handle, question):
        self._library, self._handle, self._question = library, handle, question

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Waits at most so long (None: until it is over); whether it is over. Raises what went wrong in it."""
        until = None if seconds is None else time.monotonic() + seconds
        done = C.c_int32()
        if until is not None and until != until:
            self._library.call("heddle_task_wait", self._handle, until, C.byref(done))  # says why not
        while True:
            # In pieces, so that Ctrl-C is heard.
            piece = 0.2 if until is None else max(0.0, min(0.2, until - time.monotonic()))
            self._library.call("heddle_task_wait", self._handle, piece, C.byref(done))
            if done.value:
                _engine.engine().expire()
                return True
            if until is not None and time.monotonic() >= until:
                return False

    def cancel(self):
        """Asks it to end; what it found until then is kept."""
        self._library.cancel(self._handle)

    def kernel(self) -> _engine.Kernel:
        """The best kernel now."""
        return _engine.engine().ask(self._question)

    def __del__(self):
        try:
            self._library.close("task", self._handle)
        except (AttributeError, TypeError):
            pass  # half made, or the interpreter is ending


class Search(NamedTuple):
    budget: float
    wait: bool
    strategy: Optional[str]
    wanted: Gradients


def tune(spec, search):
    library = _library.compiler_library("heddle.tune")
    budget, wait, strategy, wanted = search
    budget = _scalars.finite(budget, "tune: budget", "seconds")
    spec = _resolved(spec, "tune", strategy=strategy, budget=None if budget == 20.0 else budget, wait=None if wait else wait,
                     **wanted.given())
    question = _question(spec, wanted)
    engine, problem = _engine.engine(), question.problem()
    options = S.sized(S.TuneOptions, budget_seconds=budget, strategy=strategy.encode() if strategy else None)
    task = Task(library, library.opened("heddle_compiler_tune", engine.compiler, engine.device(question.device), question.pattern.handle,
                                        C.byref(problem), C.byref(options), None, None), question)
    if not wait:
        return task
    try:
        task.wait()
    except KeyboardInterrupt:
        task.cancel()
        raise
    return task.kernel()
