"""What a provider hands over for one workload. No torch here."""
import contextlib
from dataclasses import dataclass, field
from typing import Callable, Optional


@dataclass
class Launch:
    """Calls of one provider on the tensors of one workload. It keeps them alive."""
    run: Callable  # enqueues the work and returns out [b, n, h, d], or (out, lse [b, h, n]); of gradients (d_q, d_k, d_v)
    context: Callable = contextlib.nullcontext  # entered around run, outside of the timed part
    set_up: Optional[Callable] = None  # makes once more, and returns, what is made before the first call: masks, copies of inputs
    workspace_bytes: int = 0  # device memory that the calls were given and that `set_up` does not make
    poison: Optional[Callable] = None  # fills results that every call writes to the same place with NaN
    settle: Optional[Callable] = None  # ends work in the background, so that the next process finds its results
    is_exact: bool = False  # mixes no rounded results, and gives the same bits in every call
    sums_in_any_order: bool = False  # mixes none either, but bits may differ between calls, which is noted and no error
    info: dict = field(default_factory=dict)  # what is known about the kernel


@dataclass(frozen=True)
class Provider:
    name: str
    make: Callable  # (workload, q, k, v) -> Launch, or None where it does not apply
    is_slow: bool = False  # to prepare: builds masks, compiles
    never_cold: str = ""  # why there is no first call with empty caches
    keeps_caches: bool = True  # on disk, so that a second process is faster than the first
    makes_gradients: bool = False  # itself, of workloads of gradients; else those are what autograd makes of its forward launch
    modules: tuple = ("torch",)  # what a program that uses it has imported before its first call


def results(returned):
    """out and lse, which may be None, or gradients, of what `run` returned."""
    return returned if isinstance(returned, tuple) else (returned, None)
