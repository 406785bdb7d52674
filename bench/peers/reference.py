"""Sampled rows in fp64, straight from the definition: the kept keys of each row come from the workload's mask."""
import functools
import math
import random

import torch

from peers.launch import results
from peers.operands import Drawn

TOLERANCE = 1e-2  # of a row's norm: bf16 probabilities and results
COMPOSED_TOLERANCE = 2e-2  # where a peer mixes rounded results
LSE_TOLERANCE = 2e-3


DTYPES = {"I32": torch.int32, "I64": torch.int64, "F32": torch.float32, "BF16": torch.bfloat16}


@functools.lru_cache(maxsize=4)
def tensor_of(operand, device):
    """A tensor of a pattern (operands.py), the same for all who ask."""
    if isinstance(operand, Drawn):
        return _drawn(operand, device)
    return torch.tensor(operand.values, dtype=DTYPES[operand.dtype], device=device).view(operand.shape)


def _drawn(operand, device):
    generator = torch.Generator(device=device).manual_seed(1)
    whole = torch.empty(operand.shape, dtype=DTYPES[operand.dtype], device=device)
    for part in whole.view(-1).split(1 << 26):
        part.copy_(torch.randn(part.shape, generator=generator, device=device))
    return whole


def sample_rows(workload, count=96, seed=7):
    """(batch, head, row): the ends, the surroundings of tile borders, and random rows; every head occurs."""
    rng = random.Random(seed)
    n = workload.rows
    ends = [0, 1, 63, 64, 127, 128, 191, 192, 319, 320, n // 2 - 1, n // 2, n - 129, n - 128, n - 2, n - 1]
    rows = [row for row in ends if 0 <= row < n]
    rows += [rng.randrange(n) for _ in range(max(count, 2 * workload.heads) - len(rows))]
    order = list(range(workload.heads))
    rng.shuffle(order)
    return [(rng.randrange(workload.batch), order[i % workload.heads], row) for i, row in enumerate(rows)]


def keeper(workload, device):
    """(head, q, k) -> whether the pair is kept, of tensors; also what FlexAttention calls a mask_mod, without the batch."""
    if not hasattr(workload.mask, "table"):
        return workload.keep
    table = torch.tensor(workload.mask.table(workload.heads, workload.seqlen), device=device)
    return lambda head, q, k: workload.mask.look_up(table, head, q, k)


def score_tensor(workload, device):
    """The tensor that changes scores or is a sink; None if there is none."""
    is_read = workload.score in ("relative", "bias", "sink")
    return tensor_of(*workload.operands.values(), device) if is_read else None


def score_of(workload, device):
    """What the pattern makes of scaled scores, with the logarithm of a pair's copies: (score, head, q, k) -> score. Also
    what FlexAttention calls a score_mod."""
    cap, reach = dict(workload.sizes).get("cap"), dict(workload.sizes).get("reach")
    added = score_tensor(workload, device)

    def change(score, head, q, k):
        if workload.score == "alibi":
            assert workload.heads & (workload.heads - 1) == 0, "the slopes of a power of two"
            score = score - 2.0 ** (-8.0 * (head + 1) / workload.heads) * (q - k).abs()
        if workload.score == "softcap":
            score = cap * torch.tanh(score / cap)
        if workload.score == "relative":
            score = score + added[head, (q - k + reach).clamp(0, 2 * reach)]
        if workload.score == "bias":
            score = score + added[0, head, q, k]
        if workload.has_copies:
            score = score + workload.copies(head, q, k).to(score.dtype).log()
        return score

    return change


class Reference:
    def __init__(self, workload, q, k, v):
        self.rows = sample_rows(workload)
        self.workload = workload
        share = workload.heads // workload.kv
        keys = torch.arange(workload.seqlen, device=q.device)
        keep, change, sinks = keeper(workload, q.device), score_of(workload, q.device), score_tensor(workload, q.device)
        outs, lses = [], []
        for batch, head, row in self.rows:
            kept = keep(head, torch.full_like(keys, row), keys).nonzero().squeeze(1)
            if not len(kept):
                outs.append(torch.zeros(v.shape[-1], dtype=torch.float64, device=q.device))
                lses.append(torch.tensor(-math.inf, dtype=torch.float64, device=q.device))
                continue
            scores = k[batch, kept, head // share].double() @ q[batch, row, head].double() / math.sqrt(q.shape[-1])
            scores = change(scores, head, torch.full_like(kept, row), kept)
            if workload.score == "sink":
                scores = torch.cat((scores, sinks[head:head + 1].double()))
            outs.append(scores.softmax(0)[:len(kept)] @ v[batch, kept, head // share].double())
            lses.append(scores.logsumexp(0))
        self.out, self.lse = torch.stack(outs), torch.stack(lses)
        self.index = tuple(torch.tensor(column, device=q.device) for column in zip(*self.rows))

    def check_call(self, returned, is_exact):
        """`check` of what a launch returned."""
        return self.check(*results(returned), TOLERANCE if is_exact else COMPOSED_TOLERANCE)

    def check(self, out, lse=None, tolerance=TOLERANCE):
        """Errors of out [b, n, h, d] and lse [b, h, n]: the largest over the rows, relative to the row's norm. A row
        without keys counts with its norm: it must be 0 exactly."""
        batch, head, row = self.index
        rows = out[batch, row, head].double()
        norm = self.out.norm(dim=1)
        error = (rows - self.out).norm(dim=1) / torch.where(norm > 0, norm, 1e-30)
        result = {"rows": len(self.rows), "error": number_of(error.max()), "nan": bool(_has_nan(out))}
        ok = not result["nan"] and result["error"] <= tolerance
        if lse is not None:
            found = lse[batch, head, row].double()
            empty = torch.isneginf(self.lse)
            difference = torch.where(empty, 0, found - self.lse).abs()
            difference = torch.where(empty & ~torch.isneginf(found), math.inf, difference)
            result["lse_error"] = number_of(difference.max())
            ok = ok and result["lse_error"] <= LSE_TOLERANCE
        return dict(result, ok=ok)


def _has_nan(tensor):
    """In pieces: a mask of the whole of a million tokens is not needed."""
    return any(bool(part.isnan().any()) for part in tensor.flatten().split(1 << 28))


def number_of(value):
    """NaN counts as infinitely wrong, so that a comparison refuses it."""
    value = float(value)
    return math.inf if math.isnan(value) else value
