"""FlashAttention-3 as a provider of bench/peers.py, forward and gradients: a library behind C functions, `$FA3_SO`, with `fa3.py`, its calls on
torch tensors, beside it. It is no part of this repository; bench/peers.sh takes this plug-in where it finds the library.
"""
import functools
import importlib.util
import os

from peers.launch import Launch, Provider
from peers.masks import Causal, DilatedWindow, Full, Window


@functools.lru_cache(maxsize=1)
def _fa3():
    library = os.environ.get("FA3_SO")
    if not library:
        raise RuntimeError("FA3_SO does not name FlashAttention-3's library")
    found = importlib.util.spec_from_file_location("fa3", os.path.join(os.path.dirname(os.path.abspath(library)), "fa3.py"))
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _mask(workload):
    """causal and window of its calls; None where none of them computes the pattern."""
    mask = workload.mask
    if workload.score or workload.queries or workload.head_dim not in (64, 128):
        return None
    if isinstance(mask, (Full, Causal)):
        return {"causal": isinstance(mask, Causal)}
    if isinstance(mask, Window):
        return {"window": (mask.left, mask.right), "causal": False}
    return None


def _launch(workload, mask, q, k, v):
    import torch
    fa3 = _fa3()
    out = torch.empty_like(q)
    lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], dtype=torch.float32, device=q.device)

    def forward():
        return fa3.fa3_fwd(q, k, v, out=out, lse=lse, **mask)

    if not workload.backward:
        return forward, 0
    from peers.gradients import of_out
    forward()
    d_out = of_out(q)
    gradients = [torch.empty_like(tensor) for tensor in (q, k, v)]
    workspace = fa3.fa3_bwd_workspace(q, k, v, **mask)
    return lambda: fa3.fa3_bwd(d_out, q, k, v, out, lse, *_named(mask), *gradients, workspace), workspace.numel()


def _named(mask):
    return mask.get("causal", False), mask.get("window")


def fa3(workload, q, k, v):
    mask = _mask(workload)
    if mask is None:
        return None
    run, workspace_bytes = _launch(workload, mask, q, k, v)
    return Launch(lambda: tuple(run()), workspace_bytes=workspace_bytes)


def fa3_view(workload, q, k, v):
    """A dilated window is a plain one on [b, n / r, r h, d]: residue and head are one index there, without a copy."""
    mask = workload.mask
    if not isinstance(mask, DilatedWindow) or workload.seqlen % mask.rate or workload.head_dim not in (64, 128):
        return None
    shapes = [tensor.shape for tensor in (q, k, v)]
    views = [tensor.view(tensor.shape[0], workload.seqlen // mask.rate, -1, workload.head_dim) for tensor in (q, k, v)]
    run, workspace_bytes = _launch(workload, {"window": (mask.half, mask.half), "causal": False}, *views)

    def on_view():
        results = run()
        if workload.backward:
            return tuple(tensor.view(shape) for tensor, shape in zip(results, shapes))
        return results[0].view(shapes[0])

    return Launch(on_view, workspace_bytes=workspace_bytes)


PROVIDERS = [Provider("FA3", fa3, makes_gradients=True, keeps_caches=False),
             Provider("FA3 on the view", fa3_view, makes_gradients=True, keeps_caches=False)]
