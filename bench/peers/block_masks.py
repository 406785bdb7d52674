"""Masks of whole blocks by their definitions. No torch here; `keep` as in masks.py.

A mask without a formula has `table`, nested lists that say what is kept, and `look_up`, what a pair finds there: in these lists,
or in a tensor made of them once.
"""
import functools
from dataclasses import dataclass


def entry(table, *index):
    """Of nested lists or of a tensor."""
    if not isinstance(table, list):
        return table[index]
    for number in index:
        table = table[number]
    return table


class Blocks:
    """Masks of whole blocks: `keep_blocks` says which blocks of keys a block of queries sees."""

    def keep(self, head, heads, n, q, k):
        return self.keep_blocks(q // self.block, k // self.block)

    def pairs(self, heads, n):
        size = [min(self.block, n - start) for start in range(0, n, self.block)]
        return heads * sum(rows * keys for i, rows in enumerate(size) for j, keys in enumerate(size) if self.keep_blocks(i, j))


@dataclass(frozen=True)
class BlockWindow(Blocks):
    radius: int
    block: int = 128

    def keep_blocks(self, i, j):
        return (i - j <= self.radius) & (j - i <= self.radius)


@dataclass(frozen=True)
class BlockDistances(Blocks):
    """Blocks at the listed distances, to both sides."""
    distances: tuple
    block: int = 128

    def keep_blocks(self, i, j):
        kept = False
        for distance in self.distances:
            kept = kept | (i - j == distance) | (j - i == distance)
        return kept


@dataclass(frozen=True)
class BlockGlobal(Blocks):
    globals: int
    radius: int = 2
    block: int = 128

    def keep_blocks(self, i, j):
        return (i < self.globals) | (j < self.globals) | ((i - j <= self.radius) & (j - i <= self.radius))


@dataclass(frozen=True)
class BlockLevels(Blocks):
    block: int = 64

    def keep_blocks(self, i, j):
        near, wide = (i - j <= 2) & (j - i <= 2), (i - j <= 8) & (j - i <= 8)
        return near | (wide & (i % 4 == 0)) | (i % 16 == 0)


@dataclass(frozen=True)
class BlockStrided(Blocks):
    rate: int = 4
    block: int = 128

    def keep_blocks(self, i, j):
        return (j % self.rate == 0) | (i - j == 1) | (j - i == 1)


@dataclass(frozen=True)
class BlockThinned:
    """Blocks 0 and 2 apart; the second half of the heads sees odd positions only."""
    block: int = 128
    per_head = True

    def keep(self, head, heads, n, q, k):
        i, j = q // self.block, k // self.block
        near = (i == j) | (i - j == 2) | (j - i == 2)
        return near & ((head < heads - heads // 2) | ((q % 2 == 1) & (k % 2 == 1)))

    def pairs(self, heads, n):
        blocks = BlockDistances((0, 2), self.block)
        rows = [min(self.block, n - start) // 2 for start in range(0, n, self.block)]
        odd = sum(rows[i] * rows[j] for i in range(len(rows)) for j in range(len(rows)) if blocks.keep_blocks(i, j))
        return (heads - heads // 2) * blocks.pairs(1, n) + heads // 2 * odd


@dataclass(frozen=True)
class BlockDilatedHeads(Blocks):
    """Equal groups of heads, each with a rate: blocks at most `reach` steps of it away, to both sides."""
    reach: int
    rates: tuple = (1, 2, 4, 8)
    block: int = 128
    per_head = True

    def keep(self, head, heads, n, q, k):
        assert heads % len(self.rates) == 0, "every group has the same number of heads"
        group, i, j = head // (heads // len(self.rates)), q // self.block, k // self.block
        kept = False
        for number, rate in enumerate(self.rates):
            near = (i - j <= self.reach * rate) & (j - i <= self.reach * rate)
            kept = kept | ((group == number) & near & ((i - j) % rate == 0))
        return kept

    def pairs(self, heads, n):
        distances = (tuple(rate * step for step in range(self.reach + 1)) for rate in self.rates)
        return heads // len(self.rates) * sum(BlockDistances(each, self.block).pairs(1, n) for each in distances)


def random_permutation(seed, t, size):
    """pi_t of docs/language.md, "Random cells", for all heads alike, as a function of the cell."""
    word, golden, root2, root3 = 0xffffffff, 0x9e3779b9, 0x6a09e667, 0xbb67ae85

    def mix(x):
        x = (x ^ (x >> 16)) * root2 & word
        x = (x ^ (x >> 15)) * root3 & word
        return x ^ (x >> 16)

    key = mix((mix(seed) + golden * t) & word)

    def scramble(x, r):
        w = (x ^ ((key + golden * r) & word)) * root2 & word
        return ((w ^ (w >> 15)) * root3 & word) >> 16

    bits = max(2, (size - 1).bit_length())
    low_bits = (bits + 1) // 2
    low_mask, high_mask = (1 << low_bits) - 1, (1 << bits - low_bits) - 1

    def permute(x):
        while True:
            low, high = x & low_mask, x >> low_bits
            for r in (0, 2, 4):
                low ^= scramble(high, r) & low_mask
                high ^= scramble(low, r + 1) & high_mask
            x = high << low_bits | low
            if x < size:
                return x

    return permute


class BlockTable:
    """Masks of whole blocks without a formula: `table` has a row for each block of queries, True where it sees a block of
    keys. With `causal`, later keys of a block are left out."""
    causal = False

    def keep(self, head, heads, n, q, k):
        return self.look_up(self.table(heads, n), head, q, k)

    def look_up(self, table, head, q, k):
        kept = entry(table, q // self.block, k // self.block)
        return kept & (k <= q) if self.causal else kept

    def pairs(self, heads, n):
        table = self.table(heads, n)
        return heads * sum(self.pairs_of(n, i, [j for j, kept in enumerate(row) if kept]) for i, row in enumerate(table))

    def pairs_of(self, n, i, keys):
        """Of block i of queries and the listed blocks of keys."""
        size = [min(self.block, n - block * self.block) for block in range(-(-n // self.block))]
        if not self.causal:
            return size[i] * sum(size[j] for j in keys)
        return sum(size[i] * size[j] if j < i else size[i] * (size[i] + 1) // 2 for j in keys if j <= i)


@dataclass(frozen=True)
class RandomBlocks(BlockTable):
    """`count` random blocks, those within `radius`, and `globals` first rows and columns."""
    count: int
    radius: int = 0
    globals: int = 0
    block: int = 128
    seed: int = 0
    causal: bool = False

    @functools.lru_cache
    def table(self, heads, n):
        blocks = -(-n // self.block)
        rows = [[i < self.globals or j < self.globals or abs(i - j) <= self.radius for j in range(blocks)] for i in range(blocks)]
        for t in range(min(self.count, blocks)):
            permute = random_permutation(self.seed, t, blocks)
            for i in range(blocks):
                rows[i][permute(i)] = True
        return rows
