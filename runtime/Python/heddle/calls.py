"""heddle.attention, heddle.prepare, heddle.kernel, heddle.tune: calls, whoever owns the tensors."""
import ctypes as C
import sys
import time
from typing import Any, Optional, Tuple, Union

from . import _call, _engine, _generic, _library, patterns
from . import _structs as S
from .errors import InvalidArgumentError, UnsupportedError
from .patterns import Pattern
from .words import Mask, Softmax

__all__ = ["attention", "prepare", "kernel", "tune", "Prepared", "Task"]

PatternLike = Union[Pattern, Mask, Softmax, str]
Carry = Optional[Tuple[Any, Any]]


def _is_compiling():
    """Inside torch.compile or torch.export; torch itself is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def _is_traced():
    """By torch.compile, which runs symbols through Python's code; torch.export does so where it is strict."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def _is_torch(tensor):
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
    _eager, _plain_types = _torch.attention, (torch.Tensor, torch.nn.Parameter)
    _is_watched = getattr(torch._C, "_len_torch_dispatch_stack", _is_watched)


def attention(q, k, v, pattern: PatternLike, *, scale: Optional[float] = None, return_lse: bool = False, out=None, lse=None,
              q_origin: Optional[int] = None, k_origin: int = 0, carry: Carry = None, stream: Optional[int] = None, **arguments: Any):
    """Attention over exactly the pairs that the pattern keeps.

    q [batch, seqlen_q, heads, head_dim], k [batch, seqlen_k, kv_heads, head_dim], v [batch, seqlen_k, kv_heads, value_dim]; heads is a
    multiple of kv_heads. bf16 or fp16 on a GPU, fp32 too in host memory. The last stride is 1, any others that are multiples of 16 bytes
    will do (in host memory: any): pass tensors [batch, heads, seqlen, dim] as `q.transpose(1, 2)`, nothing is copied.

    pattern     a Pattern, words (`causal & window(left=1023)`), MLIR text, or a name of the package's library
    scale       of q . k; None: 1 / sqrt(head_dim)
    return_lse  returns (out, lse); lse is fp32 [batch, heads, seqlen_q], natural logarithm, -inf for rows that keep nothing
    out, lse    results to write, completely; out has the dtype of q, or fp32
    q_origin    position of query 0, of patterns whose q_origin is given; k_origin: position of key 0
    carry       (out, lse) of an earlier call with the same queries over other keys, row-major fp32: the results are those of one call over the
                keys of both. They go to other memory than the carry
    stream      the CUDA stream of tensors that are not PyTorch's (an address; None: the default stream). PyTorch's current one else
    arguments   sizes, numbers and tensors of the pattern, by name, over its defaults

    Returns out [batch, seqlen_q, heads, value_dim] of the library that q belongs to. On a GPU the work is only queued; a first call of a
    pattern finds or compiles its kernel. There is no backward pass: tensors that require gradients or have tangents raise UnsupportedError.
    Raises InvalidArgumentError and the other classes of heddle.errors; nothing was launched then.
    """
    if carry is not None:
        carry = _call.pair_of(carry)
    if _is_compiling():
        return _in_graph(q, k, v, pattern, scale, return_lse, out, lse, q_origin, k_origin, carry, stream, arguments)
    if type(pattern) is not Pattern:
        pattern = patterns.resolved(pattern)
    if pattern.also_of_calls:
        _refuse_unclear("attention", pattern, scale=scale, return_lse=return_lse or None, out=out, lse=lse, q_origin=q_origin, k_origin=k_origin or None,
                        carry=carry, stream=stream)
    if type(q) in _plain_types and stream is None and not _is_watched():
        return _eager(q, k, v, pattern, scale, return_lse, out, lse, q_origin, k_origin, carry, arguments)
    return _other(q, k, v, pattern, scale, return_lse, out, lse, q_origin, k_origin, carry, stream, arguments)


def _in_graph(q, k, v, pattern, scale, return_lse, out, lse, q_origin, k_origin, carry, stream, arguments):
    """A node; what cannot be one breaks the graph of torch.compile."""
    if _is_traced() and not (isinstance(pattern, (str, Pattern)) and out is None and lse is None):
        from . import _torch_outside
        return _torch_outside.attention(q, k, v, pattern, scale=scale, return_lse=return_lse, out=out, lse=lse, q_origin=q_origin, k_origin=k_origin,
                                        carry=carry, stream=stream, **arguments)
    if stream is not None:
        raise _no_stream("attention")
    from . import _torch_op
    made = pattern if isinstance(pattern, (str, Pattern)) else patterns.resolved(pattern)
    if isinstance(made, Pattern) and made.also_of_calls:
        _refuse_unclear("attention", made, scale=scale, return_lse=return_lse or None, q_origin=q_origin, k_origin=k_origin or None, carry=carry)
    return _torch_op.attention(q, k, v, made, scale, return_lse, out, lse, q_origin, k_origin, carry, arguments)


def _refuse_unclear(what, pattern, **given):
    """Of what a call was given, not None."""
    pattern.refuse_unclear(what, [name for name, value in given.items() if value is not None])


def _no_stream(what):
    return InvalidArgumentError(f"{what}: stream: PyTorch tensors run on PyTorch's current stream: with torch.cuda.stream(...)")


def _other(q, k, v, pattern, scale, return_lse, out, lse, q_origin, k_origin, carry, stream, arguments):
    """Fake and functional tensors of PyTorch, other libraries, and the first call with PyTorch."""
    if _is_torch(q):
        if stream is not None:
            raise _no_stream("attention")
        _load_eager()
        if type(q) in _plain_types and not (_is_watched() and out is None and lse is None):
            return _eager(q, k, v, pattern, scale, return_lse, out, lse, q_origin, k_origin, carry, arguments)
        from . import _torch, _torch_op
        if q.is_nested:
            raise _torch.no_nested("q")
        return _torch_op.attention(q, k, v, pattern, scale, return_lse, out, lse, q_origin, k_origin, carry, arguments)
    bound = _generic.bind(q, k, v, pattern, scale, out, lse, q_origin, k_origin, carry, arguments, stream)
    bound.launch()
    return (bound.out, bound.lse) if return_lse else bound.out


class Prepared:
    """A call whose tensors are fixed: checked once, launched by calling it. `out` and `lse` hold the results of the last call, `kernel` is
    what runs (None in host memory). It keeps its tensors alive; any thread may call it, on one stream at a time where it has a workspace."""

    __reduce__ = _call.no_copy

    def __init__(self, bound):
        bound.freeze()
        self._bound = bound
        self.out, self.lse, self.kernel = bound.out, bound.lse, bound.kernel

    def __call__(self):
        if self._bound is None:
            raise InvalidArgumentError("this prepared call is closed")
        self._bound.launch()
        return self.out

    def close(self):
        """Lets go of the tensors. Calls raise from then on."""
        self._bound = None


def prepare(q, k, v, pattern: PatternLike, *, scale: Optional[float] = None, out=None, lse=None, q_origin: Optional[int] = None, k_origin: int = 0,
            carry: Carry = None, stream: Optional[int] = None, **arguments: Any):
    """Checks a call once; calling what it returns launches it, and returns `out`.

    Arguments as of heddle.attention. Addresses are frozen: write new values into q, k, v and read `prepared.out`, `prepared.lse`. The
    kernel stays the one of this moment. PyTorch: on the stream that is current when it is called, also while that is captured into a
    CUDA graph. Keep what this returns for as long as that graph is replayed; queued work does not need it.
    """
    if _is_traced():
        from . import _torch_outside
        return _torch_outside.prepare(q, k, v, pattern, scale=scale, out=out, lse=lse, q_origin=q_origin, k_origin=k_origin, carry=carry, stream=stream,
                                      **arguments)
    pattern = patterns.resolved(pattern)
    _refuse_unclear("prepare", pattern, scale=scale, out=out, lse=lse, q_origin=q_origin, k_origin=k_origin or None, carry=carry, stream=stream)
    if carry is not None:
        carry = _call.pair_of(carry)
    if _is_torch(q):
        if stream is not None:
            raise _no_stream("prepare")
        from . import _torch
        return _torch.Prepared(q, k, v, pattern, scale, out, lse, q_origin, k_origin, carry, arguments)
    return Prepared(_generic.bind(q, k, v, pattern, scale, out, lse, q_origin, k_origin, carry, arguments, stream))


def _call_of(q, k, v, pattern, scale, q_origin, k_origin, arguments):
    """The Call of a question about kernels; its results are not there."""
    if _is_torch(q):
        from . import _torch
        view = _torch.view
    else:
        from . import _dlpack
        view = _dlpack.view
    values, tensors = _call.call_values(pattern, arguments)
    views = [view(each, name) for name, each in (("q", q), ("k", k), ("v", v))]
    _call.check_tensors(*views)
    out = views[0]._replace(shape=(*views[0].shape[:3], views[2].shape[3]))
    operands = {name: view(each, name) for name, each in tensors.items()}
    call = _call.Call(pattern, *views, out, scale, q_origin, k_origin, values, operands)
    if call.device is None:
        raise UnsupportedError("kernels are for tensors on a GPU; in host memory there is nothing to choose")
    return call


def kernel(q, k, v, pattern: PatternLike, *, q_origin: Optional[int] = None, k_origin: int = 0, **arguments: Any) -> _engine.Kernel:
    """The kernel that a call with these tensors would run now."""
    if _is_traced():
        from . import _torch_outside
        return _torch_outside.kernel(q, k, v, pattern, q_origin=q_origin, k_origin=k_origin, **arguments)
    pattern = patterns.resolved(pattern)
    _refuse_unclear("kernel", pattern, q_origin=q_origin, k_origin=k_origin or None)
    call = _call_of(q, k, v, pattern, None, q_origin, k_origin, arguments)
    return _engine.engine().ask(call.question())


class Task:
    """Work in the background."""

    def __init__(self, library, handle, question):
        self._library, self._handle, self._question = library, handle, question

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Waits at most so long (None: until it is over); whether it is over. Raises what went wrong in it."""
        until = None if seconds is None else time.monotonic() + seconds
        done = C.c_int32()
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


def tune(pattern: PatternLike, q, k, v, *, budget: float = 20.0, wait: bool = True, strategy: Optional[str] = None,
         q_origin: Optional[int] = None, k_origin: int = 0, **arguments: Any):
    """Searches the fastest kernel for calls with these sizes, for `budget` seconds, and files it in the database.

    Returns the winner as a heddle.Kernel, or, with wait=False, a Task at once. Calls use the winner once the Task was waited for, else when
    they next ask for a better kernel, at the latest a minute after the search. Needs the compiler and a GPU, which searches share with this process's own work.
    """
    if _is_traced():
        from . import _torch_outside
        return _torch_outside.tune(pattern, q, k, v, budget=budget, wait=wait, strategy=strategy, q_origin=q_origin, k_origin=k_origin, **arguments)
    library = _library.compiler_library("heddle.tune")
    pattern = patterns.resolved(pattern)
    _refuse_unclear("tune", pattern, q_origin=q_origin, k_origin=k_origin or None, strategy=strategy, budget=None if budget == 20.0 else budget,
                    wait=None if wait else wait)
    call = _call_of(q, k, v, pattern, None, q_origin, k_origin, arguments)
    engine, question = _engine.engine(), call.question()
    problem = question.problem()
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
