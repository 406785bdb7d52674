"""Sampled rows in fp64, straight from the definition: the kept keys of each row come from the workload's mask."""
import math
import random

import torch

TOLERANCE = 1e-2  # of a row's norm: bf16 probabilities and results
COMPOSED_TOLERANCE = 2e-2  # where a peer mixes rounded results
LSE_TOLERANCE = 2e-3


def tensor_of(operand, device):
    """A tensor of a pattern (operands.py)."""
    dtype = {"I32": torch.int32, "I64": torch.int64}[operand.dtype]
    return torch.tensor(operand.values, dtype=dtype, device=device).view(operand.shape)


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


def score_of(workload):
    """What the pattern makes of scaled scores, with the logarithm of a pair's copies: (score, head, q, k) -> score. Also
    what FlexAttention calls a score_mod."""
    cap = dict(workload.sizes).get("cap")

    def change(score, head, q, k):
        if workload.score == "alibi":
            assert workload.heads & (workload.heads - 1) == 0, "the slopes of a power of two"
            score = score - 2.0 ** (-8.0 * (head + 1) / workload.heads) * (q - k).abs()
        if workload.score == "softcap":
            score = cap * torch.tanh(score / cap)
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
        keep = keeper(workload, q.device)
        outs, lses = [], []
        for batch, head, row in self.rows:
            kept = keep(head, torch.full_like(keys, row), keys).nonzero().squeeze(1)
            if not len(kept):
                outs.append(torch.zeros(v.shape[-1], dtype=torch.float64, device=q.device))
                lses.append(torch.tensor(-math.inf, dtype=torch.float64, device=q.device))
                continue
            scores = k[batch, kept, head // share].double() @ q[batch, row, head].double() / math.sqrt(q.shape[-1])
            scores = score_of(workload)(scores, head, torch.full_like(kept, row), kept)
            outs.append(scores.softmax(0) @ v[batch, kept, head // share].double())
            lses.append(scores.logsumexp(0))
        self.out, self.lse = torch.stack(outs), torch.stack(lses)
        self.index = tuple(torch.tensor(column, device=q.device) for column in zip(*self.rows))

    def check(self, out, lse=None, tolerance=TOLERANCE):
        """Errors of out [b, n, h, d] and lse [b, h, n]: the largest over the rows, relative to the row's norm. A row
        without keys counts with its norm: it must be 0 exactly."""
        batch, head, row = self.index
        rows = out[batch, row, head].double()
        norm = self.out.norm(dim=1)
        error = (rows - self.out).norm(dim=1) / torch.where(norm > 0, norm, 1e-30)
        result = {"rows": len(self.rows), "error": _number(error.max()), "nan": bool(_has_nan(out))}
        ok = not result["nan"] and result["error"] <= tolerance
        if lse is not None:
            found = lse[batch, head, row].double()
            empty = torch.isneginf(self.lse)
            difference = torch.where(empty, 0, found - self.lse).abs()
            difference = torch.where(empty & ~torch.isneginf(found), math.inf, difference)
            result["lse_error"] = _number(difference.max())
            ok = ok and result["lse_error"] <= LSE_TOLERANCE
        return dict(result, ok=ok)


def _has_nan(tensor):
    """In pieces: a mask of the whole of a million tokens is not needed."""
    return any(bool(part.isnan().any()) for part in tensor.flatten().split(1 << 28))


def _number(value):
    """NaN counts as infinitely wrong, so that a comparison refuses it."""
    value = float(value)
    return math.inf if math.isnan(value) else value
