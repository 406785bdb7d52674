"""Masks by their definitions, with kept pairs in closed form.

No torch here. `keep` is written with operators that integers and tensors share, so that the same text is checked by
brute force, used for the fp64 reference and handed to FlexAttention. A mask whose branches may share keys also has
`copies`, how often a kept pair counts.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Full:
    def keep(self, head, heads, n, q, k):
        return (q >= 0) & (k >= 0)

    def pairs(self, heads, n):
        return heads * n * n


@dataclass(frozen=True)
class Causal:
    def keep(self, head, heads, n, q, k):
        return k <= q

    def pairs(self, heads, n):
        return heads * n * (n + 1) // 2


def band_pairs(n, left, right):
    """Pairs of 0..n-1 with -right <= q - k <= left."""
    left, right = min(left, n - 1), min(right, n - 1)
    return n * (left + right + 1) - left * (left + 1) // 2 - right * (right + 1) // 2


@dataclass(frozen=True)
class Window:
    left: int
    right: int

    def keep(self, head, heads, n, q, k):
        return (q - k <= self.left) & (k - q <= self.right)

    def pairs(self, heads, n):
        return heads * band_pairs(n, self.left, self.right)


@dataclass(frozen=True)
class DilatedWindow:
    """`half` steps of `rate` to each side, in the query's own residue class."""
    rate: int
    half: int

    def keep(self, head, heads, n, q, k):
        reach = self.rate * self.half
        return (q - k <= reach) & (k - q <= reach) & ((q - k) % self.rate == 0)

    def pairs(self, heads, n):
        rows = [(n - residue + self.rate - 1) // self.rate for residue in range(self.rate)]
        return heads * sum(band_pairs(count, self.half, self.half) for count in rows if count > 0)


@dataclass(frozen=True)
class Groups:
    """Group i of `groups` head groups: segments of `base << i`, rate `1 << i`, positions with pos % rate == i % rate."""
    base: int
    groups: int
    per_head = True

    def group(self, head, heads):
        assert heads % self.groups == 0, "every group has the same number of heads"
        return head // (heads // self.groups)

    def keep(self, head, heads, n, q, k):
        group = self.group(head, heads)
        segment, rate = self.base << group, 1 << group
        offset = group % rate
        return (q // segment == k // segment) & (q % rate == offset) & (k % rate == offset)

    def pairs(self, heads, n):
        total = 0
        for group in range(self.groups):
            segment, rate = self.base << group, 1 << group
            for start in range(0, n, segment):
                length = min(segment, n - start)
                rows = (length - group % rate + rate - 1) // rate
                total += max(rows, 0) ** 2
        return heads // self.groups * total


@dataclass(frozen=True)
class Longformer:
    half: int
    globals: int

    def keep(self, head, heads, n, q, k):
        return ((q - k <= self.half) & (k - q <= self.half)) | (k < self.globals) | (q < self.globals)

    def pairs(self, heads, n):
        """The global rows and columns, and the band of the rows and columns behind them."""
        globals_ = min(self.globals, n)
        return heads * (2 * n * globals_ - globals_ ** 2 + (band_pairs(n - globals_, self.half, self.half) if n > globals_ else 0))


@dataclass(frozen=True)
class Columns:
    """The `first` and the `last` keys."""
    first: int
    last: int

    def keep(self, head, heads, n, q, k):
        return (k < self.first) | (k >= n - self.last)

    def pairs(self, heads, n):
        return heads * n * min(n, self.first + self.last)


@dataclass(frozen=True)
class Streaming:
    """The first keys and the last `left` ones, causal."""
    first: int
    left: int

    def keep(self, head, heads, n, q, k):
        return (k <= q) & ((q - k <= self.left) | (k < self.first))

    def pairs(self, heads, n):
        behind = max(n - self.left - 1, 0)  # rows with keys before their window
        first = min(self.first, behind)
        return heads * (band_pairs(n, self.left, 0) + first * (first + 1) // 2 + (behind - first) * first)


@dataclass(frozen=True)
class Prefix:
    length: int

    def keep(self, head, heads, n, q, k):
        return (k <= q) | (k < self.length)

    def pairs(self, heads, n):
        length = min(self.length, n)
        return heads * (n * (n + 1) // 2 + length * (length - 1) // 2)


@dataclass(frozen=True)
class Segment:
    """Segments of `length` positions; in each, queries and keys at a residue modulo `rate` see each other."""
    length: int
    rate: int = 1
    causal: bool = False

    def keep(self, offset, q, k):
        kept = (q // self.length == k // self.length) & (q % self.length % self.rate == offset) & (k % self.length % self.rate == offset)
        return kept & (k <= q) if self.causal else kept

    def pairs(self, offset, n):
        total = 0
        for start in range(0, n, self.length):
            rows = max((min(self.length, n - start) - offset + self.rate - 1) // self.rate, 0)
            total += rows * (rows + 1) // 2 if self.causal else rows ** 2
        return total


def segments(lengths, rates, causal=False):
    return tuple(Segment(length, rate, causal) for length, rate in zip(lengths, rates))


@dataclass(frozen=True)
class Partition:
    """Equal groups of heads, each with segments of its own; group i has offset i % rate."""
    segments: tuple
    per_head = True

    def keep(self, head, heads, n, q, k):
        assert heads % len(self.segments) == 0, "every group has the same number of heads"
        group = head // (heads // len(self.segments))
        kept = False
        for i, segment in enumerate(self.segments):
            kept = kept | ((group == i) & segment.keep(i % segment.rate, q, k))
        return kept

    def pairs(self, heads, n):
        return heads // len(self.segments) * sum(s.pairs(i % s.rate, n) for i, s in enumerate(self.segments))


@dataclass(frozen=True)
class Mixture:
    """LongNet: all segments for every head, a key in two of them counts twice; head h has offset h // ceil(heads / rate)."""
    segments: tuple
    per_head = True

    def _each(self, head, heads, q, k):
        for segment in self.segments:
            yield segment.keep(head // -(-heads // segment.rate), q, k)

    def keep(self, head, heads, n, q, k):
        kept = False
        for branch in self._each(head, heads, q, k):
            kept = kept | branch
        return kept

    def copies(self, head, heads, n, q, k):
        return sum(1 * branch for branch in self._each(head, heads, q, k))

    def pairs(self, heads, n):
        return sum(s.pairs(head // -(-heads // s.rate), n) for head in range(heads) for s in self.segments)


@dataclass(frozen=True)
class Hierarchical:
    """The last `finest` keys; behind them, at distances from finest 2^(l-1) to finest 2^l - 1, every 2^l-th key."""
    finest: int
    levels: int

    def keep(self, head, heads, n, q, k):
        kept = (k <= q) & (q - k < self.finest)
        for level in range(1, self.levels + 1):
            kept = kept | ((q - k >= self.finest << level - 1) & (q - k < self.finest << level) & (k % (1 << level) == 0))
        return kept

    def pairs(self, heads, n):
        total = band_pairs(n, self.finest - 1, 0)
        for level in range(1, self.levels + 1):
            rate, near, far = 1 << level, self.finest << level - 1, self.finest << level
            for key in range(0, n, rate):
                total += max(min(n, key + far) - min(n, key + near), 0)
        return heads * total


@dataclass(frozen=True)
class SparseStrided:
    """Half of the heads see the last `stride` keys, the others every key at a multiple of it."""
    stride: int
    per_head = True

    def keep(self, head, heads, n, q, k):
        near = head < heads - heads // 2
        return (k <= q) & ((near & (q - k < self.stride)) | ((head >= heads - heads // 2) & ((q - k) % self.stride == 0)))

    def pairs(self, heads, n):
        rows = [(n - residue + self.stride - 1) // self.stride for residue in range(self.stride)]
        far = sum(count * (count + 1) // 2 for count in rows)
        return (heads - heads // 2) * band_pairs(n, self.stride - 1, 0) + heads // 2 * far


@dataclass(frozen=True)
class SparseFixed:
    """Half of the heads see their own block, the others the last `summary` tokens of every block; causal."""
    block: int
    summary: int
    per_head = True

    def keep(self, head, heads, n, q, k):
        own = (head < heads - heads // 2) & (q // self.block == k // self.block)
        return (k <= q) & (own | ((head >= heads - heads // 2) & (k % self.block >= self.block - self.summary)))

    def pairs(self, heads, n):
        far = sum(n - key for key in range(n) if key % self.block >= self.block - self.summary)
        return (heads - heads // 2) * Segment(self.block, 1, True).pairs(0, n) + heads // 2 * far


@dataclass(frozen=True)
class WindowStrided:
    """The last keys, and of all before the last of every `rate`; causal."""
    left: int
    rate: int

    def keep(self, head, heads, n, q, k):
        return (k <= q) & ((q - k <= self.left) | (k % self.rate == self.rate - 1))

    def pairs(self, heads, n):
        far = sum(max(n - key - self.left - 1, 0) for key in range(self.rate - 1, n, self.rate))
        return heads * (band_pairs(n, self.left, 0) + far)
