"""Caches in pages with random contents, and what calls over them should give, in fp64."""
import torch


class Pages:
    """Keys of sequences in pages in random order, one tensor for K and V. Keys behind the lengths are NaN."""

    def __init__(self, place, keys, kv_heads=2, dim=64, page_size=16, heads_first=False, room=2, seed=1):
        self.keys, self.page_size = list(keys), page_size
        random = torch.Generator().manual_seed(seed)
        needed = [-(-length // page_size) for length in self.keys]
        pages, most = sum(needed) + 1, max(needed) + room
        order = torch.randperm(pages, generator=random)
        self.table = torch.full((len(self.keys), most), -1, dtype=torch.int32)
        first = 0
        for row, count in zip(self.table, needed):
            row[:count] = order[first:first + count]
            first += count
        shape = (pages, 2, kv_heads, page_size, dim) if heads_first else (pages, 2, page_size, kv_heads, dim)
        cache = torch.randn(shape, generator=random).to(place.dtype)
        both = cache.transpose(2, 3) if heads_first else cache
        for row, length in zip(self.table, self.keys):
            if length % page_size:
                both[int(row[length // page_size]), :, length % page_size:] = float("nan")
        cache = cache.to(place.device)
        both = cache.transpose(2, 3) if heads_first else cache
        self.k, self.v = both[:, 0], both[:, 1]
        self.lengths = torch.tensor(self.keys, dtype=torch.int32, device=place.device)
        self.table = self.table.to(place.device)

    def gathered(self, cache, sequence):
        """[keys, kv_heads, dim]"""
        length, size = self.keys[sequence], self.page_size
        pages = self.table[sequence, :-(-length // size)].long()
        return cache[pages].flatten(0, 1)[:length] if length else cache[:0].flatten(0, 1)

    def arguments(self):
        return self.k, self.v, self.table, self.lengths


def reference(q, k, v, keeps, sink=None):
    """q [rows, heads, dim], the last positions of k and v [keys, kv_heads, dim]; keeps(query, key) of positions. out and lse."""
    rows, heads, dim = q.shape
    keys = k.shape[0]
    queries = torch.arange(keys - rows, keys, device=q.device)[:, None]
    kept = keeps(queries, torch.arange(keys, device=q.device)[None]).expand(rows, keys)
    k, v = (each.double().repeat_interleave(heads // each.shape[1], 1) for each in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.double(), k) * dim ** -0.5
    scores = scores.masked_fill(~kept, float("-inf"))
    lse = torch.logsumexp(scores, -1) if keys else torch.full((heads, rows), float("-inf"), dtype=torch.float64, device=q.device)
    if sink is not None:
        lse = torch.logaddexp(lse, sink.double()[:, None].expand_as(lse))
    weights = torch.exp(scores - lse.clamp(min=-1e300)[..., None])
    return torch.einsum("hqk,khd->qhd", weights, v), lse


def worst_error(out, lse, pages, rows, q, keeps, cu=None, sink=None):
    """Of all sequences, beside what rounding to the type of out and the weights may change; lse and rows without keys are asserted."""
    worst = 0.0
    for sequence, count in enumerate(rows):
        first = 0 if cu is None else int(cu[sequence])
        batch = sequence if cu is None else 0
        own = slice(first, first + count)
        expected, logs = reference(q[batch, own], pages.gathered(pages.k, sequence), pages.gathered(pages.v, sequence), keeps, sink)
        found = out[batch, own].double()
        assert torch.isfinite(found).all(), f"sequence {sequence}: out"
        got = lse[batch, :, own].double()
        assert torch.equal(torch.isneginf(got), torch.isneginf(logs)), f"sequence {sequence}: rows that keep nothing"
        finite = torch.isfinite(logs)
        assert not finite.any() or (got - logs)[finite].abs().max() < 1e-3, f"sequence {sequence}: lse"
        if count:
            worst = max(worst, ((found - expected).abs() / (expected.abs() + 0.3)).max().item())
    return worst


def worst_of_all(out, lse, pages, q, keeps):
    """worst_error of sequences with as many queries each, as a tensor that nobody waits for: infinite where rows keep nothing and are not 0 and
    -inf, are not finite, or lse is 1e-3 off. Lengths are those of the device."""
    table = pages.table.long().clamp(min=0)
    k, v = (cache[table].flatten(1, 2).double().nan_to_num(0).repeat_interleave(q.shape[2] // cache.shape[2], 2) for cache in (pages.k, pages.v))
    keys = torch.arange(k.shape[1], device=q.device)
    lengths = pages.lengths.long()[:, None, None]
    queries = lengths - q.shape[1] + torch.arange(q.shape[1], device=q.device)[:, None]
    kept = (keeps(queries, keys) & (keys < lengths))[:, None]
    scores = torch.einsum("bqhd,bkhd->bhqk", q.double(), k) * q.shape[3] ** -0.5
    scores = scores.masked_fill(~kept, float("-inf"))
    logs = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - logs.clamp(min=-1e300)[..., None])
    expected, found = torch.einsum("bhqk,bkhd->bqhd", weights, v), out.double()
    error = ((found - expected).abs() / (expected.abs() + 0.3)).nan_to_num(float("inf")).amax()
    off = torch.where(torch.isneginf(logs) & torch.isneginf(lse), 0, lse.double() - logs).abs().nan_to_num(float("inf")).amax()
    return torch.where(off < 1e-3, error, float("inf"))
