"""Masks that a pattern reads from tensors, with these tensors: the same data for heddle (`operands`, written by operands.py)
and for its peers (`table`, as in block_masks.py). No torch here. `q` and `k` are rows of the tensors of a call."""
import functools
from dataclasses import dataclass
from typing import Optional

from peers.block_masks import BlockTable, entry
from peers.masks import band_pairs
from peers.operands import Operand


@dataclass(frozen=True)
class Documents:
    """Documents behind one another, causal inside each, the last `left` keys and the query's own if `left` is given. The
    queries of a document are the last of its keys."""
    keys: tuple  # where documents begin among the keys, and where the last one ends
    queries: tuple  # the same among the queries
    left: Optional[int] = None

    @functools.lru_cache
    def table(self, heads, n):
        """Document and position in it of every query, then of every key."""
        def places(offsets, positions_before):
            documents = range(len(offsets) - 1)
            return ([s for s in documents for _ in range(offsets[s], offsets[s + 1])],
                    [positions_before[s] + i for s in documents for i in range(offsets[s + 1] - offsets[s])])
        seen_before = [self.length(self.keys, s) - self.length(self.queries, s) for s in range(len(self.keys) - 1)]
        width = max(self.keys[-1], self.queries[-1])
        rows = places(self.queries, seen_before) + places(self.keys, [0] * len(seen_before))
        return [row + [0] * (width - len(row)) for row in rows]

    def rows(self, n):
        """Queries of a call with n keys."""
        return self.queries[-1]

    @staticmethod
    def length(offsets, s):
        return offsets[s + 1] - offsets[s]

    def keep(self, head, heads, n, q, k):
        return self.look_up(self.table(heads, n), head, q, k)

    def look_up(self, table, head, q, k):
        ahead = entry(table, 1, q) - entry(table, 3, k)
        kept = (entry(table, 0, q) == entry(table, 2, k)) & (ahead >= 0)
        return kept if self.left is None else kept & (ahead <= self.left)

    def pairs(self, heads, n):
        total = 0
        for s in range(len(self.keys) - 1):
            keys, queries = self.length(self.keys, s), self.length(self.queries, s)
            left = keys if self.left is None else self.left
            total += band_pairs(keys, left, 0) - (band_pairs(keys - queries, left, 0) if keys > queries else 0)
        return heads * total

    def operands(self, heads, n):
        def offsets(values):
            return Operand("I32", (len(values),), values)
        if self.left is None:
            assert self.keys == self.queries, "one tensor serves both"
            return {"cu": offsets(self.keys)}
        used = tuple(self.length(self.keys, s) for s in range(len(self.keys) - 1))
        return {"cu_q": offsets(self.queries), "cu_k": offsets(self.keys), "used_k": offsets(used)}


def document_offsets(n):
    """Eight documents of 1/64 to 1/4 of n tokens, which begin at no border of tiles."""
    sixty_fourths = (0, 1, 5, 7, 15, 31, 33, 49)
    return tuple(n * part // 64 + 20 * i for i, part in enumerate(sixty_fourths)) + (n,)


def packed_documents(n):
    return Documents(document_offsets(n), document_offsets(n))


def chunked_documents(n, left):
    """A quarter of each document are queries."""
    return Documents(document_offsets(n), tuple(offset // 4 for offset in document_offsets(n)), left)


@dataclass(frozen=True)
class DraftTree:
    """The last queries and keys are draft tokens, of which each sees its ancestors and itself; all see what is before them."""
    parents: tuple  # of each draft token, -1: none
    queries: int
    keys: int

    @functools.lru_cache
    def table(self, heads, n):
        rows = []
        for token, parent in enumerate(self.parents):
            row = list(rows[parent]) if parent >= 0 else [False] * len(self.parents)
            row[token] = True
            rows.append(row)
        return rows

    def keep(self, head, heads, n, q, k):
        return self.look_up(self.table(heads, n), head, q, k)

    def look_up(self, table, head, q, k):
        i, j = q - (self.queries - len(self.parents)), k - (self.keys - len(self.parents))
        is_draft = (i >= 0) & (j >= 0)
        return (j < 0) | (is_draft & entry(table, is_draft * i, is_draft * j))

    def pairs(self, heads, n):
        return heads * (self.queries * (self.keys - len(self.parents)) + sum(map(sum, self.table(heads, n))))

    def rows(self, n):
        return self.queries

    def operands(self, heads, n):
        words = (sum(1 << j for j, seen in enumerate(row) if seen) for row in self.table(heads, n))
        return {"ancestors": Operand("I64", (len(self.parents),), tuple(word - (1 << 64) * (word >> 63) for word in words))}


@dataclass(frozen=True)
class DraftTrees(DraftTree):
    """The tree of the only element of a batch; queries before it are causal."""

    def look_up(self, table, head, q, k):
        i, j = q - (self.queries - len(self.parents)), k - (self.keys - len(self.parents))
        is_draft = (i >= 0) & (j >= 0)
        return ((j < 0) & ((i >= 0) | (j <= i))) | (is_draft & entry(table, is_draft * i, is_draft * j))

    def pairs(self, heads, n):
        drafts = len(self.parents)
        before = self.queries - drafts
        causal = before * (self.keys - self.queries) + before * (before + 1) // 2
        return heads * (causal + drafts * (self.keys - drafts) + sum(map(sum, self.table(heads, n))))

    def operands(self, heads, n):
        ancestors = super().operands(heads, n)["ancestors"]
        return {"ancestors": Operand("I64", (1, *ancestors.shape), ancestors.values), "drafts": Operand("I32", (1,), (len(self.parents),))}


def binary_tree(tokens):
    return tuple((token - 1) // 2 for token in range(tokens))  # of token 0: -1


@dataclass(frozen=True)
class BlockLists(BlockTable):
    """For every head and block of queries `count` blocks of keys, one of each of as many equal shares; with `causal` of the
    earlier ones, and the own block too."""
    count: int
    block: int = 128
    causal: bool = False
    per_head = True

    def listed(self, head, i, n):
        blocks = i if self.causal else -(-n // self.block)
        shares = min(self.count, blocks)
        ends = [share * blocks // shares for share in range(shares + 1)] if shares else []
        return [first + (5 * head + 3 * i + 7 * share) % (end - first) for share, (first, end) in enumerate(zip(ends, ends[1:]))]

    @functools.lru_cache
    def table(self, heads, n):
        blocks = -(-n // self.block)
        table = [[[False] * blocks for _ in range(blocks)] for _ in range(heads)]
        for head, rows in enumerate(table):
            for i, row in enumerate(rows):
                for j in self.listed(head, i, n) + [i] * self.causal:
                    row[j] = True
        return table

    def look_up(self, table, head, q, k):
        kept = entry(table, head, q // self.block, k // self.block)
        return kept & (k <= q) if self.causal else kept

    def pairs(self, heads, n):
        return sum(self.pairs_of(n, i, [j for j, kept in enumerate(row) if kept]) for rows in self.table(heads, n) for i, row in enumerate(rows))

    def operands(self, heads, n):
        offsets, indices = [], []
        for head in range(heads):
            offsets.append(len(indices))
            for i in range(-(-n // self.block)):
                indices += self.listed(head, i, n)
                offsets.append(len(indices))
        return {"offsets": Operand("I32", (1, heads, len(offsets) // heads), tuple(offsets)),
                "indices": Operand("I32", (len(indices),), tuple(indices))}
