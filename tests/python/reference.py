"""Attention by its definition, in float64 with numpy, from how often each pair is kept: written without heddle."""
import numpy as np


def attention(q, k, v, copies, scale=None, scores=None, sink=None):
    """q, k, v [batch, rows, heads, dim]; copies [heads, rows, keys] or [rows, keys], 0 where a pair is not kept. out and lse."""
    q, k, v = (each.astype(np.float64) for each in (q, k, v))
    batch, rows, heads, dim = q.shape
    copies = np.broadcast_to(copies, (heads, rows, k.shape[1])).astype(np.float64)
    out, lse = np.zeros((batch, rows, heads, v.shape[3])), np.full((batch, heads, rows), -np.inf)
    for b in range(batch):
        for h in range(heads):
            shared = h // (heads // k.shape[2])
            s = (q[b, :, h] @ k[b, :, shared].T) * (dim ** -0.5 if scale is None else scale)
            s = s if scores is None else scores(s, h)
            for i in range(rows):
                kept = np.flatnonzero(copies[h, i])
                terms = np.append(s[i, kept], [] if sink is None else [sink])
                if len(terms) == 0:
                    continue
                largest = terms.max()
                weights = np.exp(terms - largest) * np.append(copies[h, i, kept], [] if sink is None else [1.0])
                lse[b, h, i] = largest + np.log(weights.sum())
                out[b, i, h] = weights[:len(kept)] @ v[b, kept, shared] / weights.sum()
    return out, lse


def positions(rows, keys=None, q_origin=0):
    """Columns of query positions and rows of key positions."""
    return np.arange(rows)[:, None] + q_origin, np.arange(rows if keys is None else keys)[None, :]


def segments(q, k, length, rate, offset, causal):
    """One branch of dilated attention: same segment, both in class `offset` of positions within it."""
    inside = (q // length == k // length) & (q % length % rate == offset) & (k % length % rate == offset)
    return inside & (k <= q) if causal else inside


def mixture(heads, rows, lengths, rates, causal):
    """LongNet: every head has every branch; head h keeps class h / ceil(heads / rate)."""
    q, k = positions(rows)
    return np.stack([sum(segments(q, k, w, r, h // -(-heads // r), causal).astype(int) for w, r in zip(lengths, rates)) for h in range(heads)])


def partition(heads, rows, lengths, rates, causal):
    """Groups of heads with one branch each; the first heads mod groups have one head more. Group i keeps class i mod rate."""
    q, k = positions(rows)
    least, more = divmod(heads, len(lengths))
    groups = [i for i in range(len(lengths)) for _ in range(least + (i < more))]
    return np.stack([segments(q, k, lengths[i], rates[i], i % rates[i], causal) for i in groups])
