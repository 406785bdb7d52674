"""Gradients of q, k and v: what autograd makes of a forward launch, and what they should be. The forward call itself is not timed; what its
backward pass computes is (delta, every launch, copies and clears)."""
import functools
import math
from dataclasses import replace

import torch
from torch._functorch import config as functorch

from peers.launch import Launch, results
from peers.reference import keeper, number_of, score_of, score_tensor

ROWS = 1024  # of scores at a time, all keys of them
TOLERANCE = 1e-2  # of the norm of a head's gradient: bf16 probabilities, dS and results
COMPOSED_TOLERANCE = 2e-2  # where a peer mixes rounded results


@functools.lru_cache(maxsize=1)
def _drawn(elements, device):
    generator = torch.Generator(device=device).manual_seed(2)
    whole = torch.empty(elements, dtype=torch.bfloat16, device=device)
    for part in whole.split(1 << 26):
        part.copy_(torch.randn(part.shape, generator=generator, device=device))
    return whole


def of_out(q):
    """The gradient of out, the same numbers for all providers of a workload."""
    return _drawn(q.numel(), q.device).view(q.shape)


def through_autograd(make, workload, q, k, v):
    """A launch of the backward pass that autograd has for the forward launch of `make`; None where that does not apply."""
    if hasattr(functorch, "donated_buffer"):
        functorch.donated_buffer = False  # a compiled backward pass is called many times
    leaves = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
    forward = make(replace(workload, backward=False), *leaves)
    if forward is None:
        return None
    with forward.context():
        out = results(forward.run())[0]
    if not out.requires_grad:
        raise NotImplementedError("its result has no gradient")
    d_out = of_out(q)
    return Launch(lambda: torch.autograd.grad(out, leaves, d_out, retain_graph=True), context=forward.context, set_up=forward.set_up,
                  workspace_bytes=forward.workspace_bytes, info=forward.info)


class GradientReference:
    """d_q, d_k and d_v of the first and the last head of keys in fp32, by the definition; the last is of the last batch element."""

    def __init__(self, workload, q, k, v):
        self.heads = list(dict.fromkeys(((0, 0), (workload.batch - 1, workload.kv - 1))))
        self.workload, self.share = workload, workload.heads // workload.kv
        self.keep, self.change, self.sinks = keeper(workload, q.device), score_of(workload, q.device), score_tensor(workload, q.device)
        d_out = of_out(q)
        self.wanted = [self._of_head(q, k, v, d_out, *place) for place in self.heads]

    def _queries(self, kv_head):
        return range(kv_head * self.share, (kv_head + 1) * self.share)

    def _of_head(self, q, k, v, d_out, batch, kv_head):
        key, value = (tensor[batch, :, kv_head].float().requires_grad_() for tensor in (k, v))
        d_k, d_v, d_q = torch.zeros_like(key), torch.zeros_like(value), []
        for head in self._queries(kv_head):
            for first in range(0, self.workload.rows, ROWS):
                rows = slice(first, first + ROWS)
                query = q[batch, rows, head].float().requires_grad_()
                out = self._attend(head, first, query, key, value)
                parts = torch.autograd.grad(out, (query, key, value), d_out[batch, rows, head].float())
                d_q.append(parts[0])
                d_k += parts[1]
                d_v += parts[2]
        return torch.cat(d_q).view(self.share, -1, q.shape[-1]).transpose(0, 1), d_k, d_v

    def _attend(self, head, first, query, key, value):
        rows = torch.arange(first, first + len(query), device=query.device)[:, None]
        keys = torch.arange(len(key), device=query.device)
        kept = self.keep(torch.full_like(rows, head), rows, keys).expand(len(query), len(key))
        scores = self.change(query @ key.T / math.sqrt(query.shape[-1]), head, rows, keys).float()
        keeps_any = kept.any(1, keepdim=True)
        scores = scores.masked_fill(~kept, -torch.inf).masked_fill(~keeps_any, 0)
        if self.workload.score == "sink":
            sink = self.sinks[head].float().expand(len(query), 1)
            return torch.cat((scores, sink), 1).softmax(1)[:, :-1] * keeps_any @ value
        return scores.softmax(1) * keeps_any @ value

    def check_call(self, returned, is_exact):
        """The largest error of the three, relative to the norm of the head's gradient."""
        if len(returned) != 3:
            raise ValueError(f"expected gradients of q, k and v, got {len(returned)} results")
        errors = []
        for (batch, kv_head), wanted in zip(self.heads, self.wanted):
            found = (returned[0][batch, :, self._queries(kv_head)], *(tensor[batch, :, kv_head] for tensor in returned[1:]))
            errors += [number_of((a.float() - b).norm() / b.norm().clamp_min(1e-30)) for a, b in zip(found, wanted)]
        has_nan = any(bool(tensor.isnan().any()) for tensor in returned)
        tolerance = TOLERANCE if is_exact else COMPOSED_TOLERANCE
        return {"rows": self.share * self.workload.rows * len(self.heads), "error": max(errors), "nan": has_nan,
                "ok": not has_nan and max(errors) <= tolerance}
