"""Drafts of several trees in one call, beside single tokens and pieces of prompts: results against fp64, of every kind of call over a
cache, and in a CUDA graph whose trees and numbers of drafts change."""
import pytest

torch = pytest.importorskip("torch")

from heddle import serve  # noqa: E402
from pages import Pages, worst_error  # noqa: E402
from test_serving import LIMITS, offsets, queries, replayed  # noqa: E402

pytestmark = pytest.mark.compiler

ROWS = (7, 1, 20, 0, 9, 64, 150)        # a tree, a token, a prompt, nothing, a piece and drafts, a large tree, a long piece and drafts
KEYS = (100, 3000, 20, 40, 700, 1000, 1411)
DRAFTS = (7, 0, 0, 0, 4, 64, 60)
TOKENS = 64


class Trees:
    """Of each sequence: `sees` [tokens, tokens], what each draft sees, by random parents, and the same as bits."""

    def __init__(self, place, sequences, tokens=TOKENS):
        self.random = torch.Generator().manual_seed(9)
        self.bits = torch.zeros(sequences, tokens, dtype=torch.int64, device=place.device)
        self.drafts = torch.zeros(sequences, dtype=torch.int32, device=place.device)
        self.grow()

    def grow(self):
        sequences, tokens = self.bits.shape
        sees = torch.zeros(sequences, tokens, tokens, dtype=torch.bool)
        for tree in sees:
            for token in range(tokens):
                parent = int(torch.randint(-1, token, (1,), generator=self.random)) if token else -1
                tree[token] = tree[parent] if parent >= 0 else False
                tree[token, token] = True
        self.sees = sees.to(self.bits.device)
        self.bits.copy_((sees.long() << torch.arange(tokens)).sum(-1))  # bit 63 is the sign

    def arguments(self):
        return dict(ancestors=self.bits, drafts=self.drafts)

    def check(self, place, out, lse, pages, rows, q, cu=None):
        for sequence, (count, keys, drafts) in enumerate(zip(rows, pages.keys, self.drafts.tolist())):
            first, sees = keys - drafts, self.sees[sequence]
            last = max(drafts - 1, 0)

            def keeps(query, key):
                token, seen = query - first, key - first
                own = sees[token.clamp(0, last), seen.clamp(0, last)]
                return torch.where(token < 0, key <= query, (seen < 0) | own)
            one = Pages.__new__(Pages)
            one.__dict__.update(pages.__dict__)
            one.keys, one.table = [keys], pages.table[sequence:sequence + 1]
            begin, batch = (int(cu[sequence]), 0) if cu is not None else (0, sequence)
            own = slice(begin, begin + count)
            error = worst_error(out[batch:batch + 1, own], lse[batch:batch + 1, :, own], one, [count], q[batch:batch + 1, own], keeps)
            assert error <= LIMITS[place.dtype], f"sequence {sequence}: {error}"


@pytest.mark.parametrize("kv_heads, dim, kind", [(2, 64, {}), (8, 128, {}), (2, 128, dict(batch_invariant=True)), (2, 64, "shared")])
def test_a_tree_of_each_sequence_beside_tokens_and_prompts(place, kv_heads, dim, kind):
    pages, trees, cu = Pages(place, KEYS, kv_heads, dim), Trees(place, len(KEYS)), offsets(place, ROWS)
    q = queries(place, ROWS, dim=dim, cu=cu)
    options = dict(shared_k=torch.zeros(len(KEYS), dtype=torch.int32, device=place.device)) if kind == "shared" else kind
    for drafts in (DRAFTS, (0,) * 7, (3, 1, 20, 0, 9, 33, 1)):
        trees.drafts.copy_(torch.tensor(drafts))
        out, lse = serve.paged_attention(q, *pages.arguments(), "trees", cu_seqlens_q=cu, return_lse=True, **options, **trees.arguments())
        trees.check(place, out, lse, pages, ROWS, q, cu)


def test_few_units(place):
    """As clusters compute them: 2 queries of 4 heads on each kv head, one and three sequences."""
    for keys, drafts in (((3000,), (2,)), ((9000 if place.on_gpu else 2000, 33, 2), (2, 0, 1))):
        pages, trees, rows = Pages(place, keys, 2, 128, page_size=64), Trees(place, len(keys), 2), [2] * len(keys)
        q = queries(place, rows, dim=128)
        trees.drafts.copy_(torch.tensor(drafts))
        for invariant in (False, True):
            out, lse = serve.paged_attention(q, *pages.arguments(), "trees", return_lse=True, batch_invariant=invariant, **trees.arguments())
            trees.check(place, out, lse, pages, rows, q)


def test_keys_that_sequences_share(place):
    keys, rows = (700, 650, 660), (3, 1, 4)
    pages, trees, cu = Pages(place, keys, 2, 64), Trees(place, 3), offsets(place, rows)
    pages.table[1:, :40] = pages.table[0, :40]
    shared = torch.tensor([0, 640, 640], dtype=torch.int32, device=place.device)
    trees.drafts.copy_(torch.tensor([3, 0, 2]))
    q = queries(place, rows, cu=cu)
    out, lse = serve.paged_attention(q, *pages.arguments(), "trees", cu_seqlens_q=cu, shared_k=shared, return_lse=True, **trees.arguments())
    trees.check(place, out, lse, pages, rows, q, cu)


def test_a_prepared_call_reads_other_trees_and_numbers(place):
    rows = (7, 1, 20, 12)
    pages, trees, cu = Pages(place, (300, 90, 20, 41), 2), Trees(place, 4), offsets(place, rows)
    q = queries(place, rows, cu=cu)
    k, v, table, lengths = pages.arguments()
    call = serve.prepare(q, k, v, "trees", page_table=table, seqused_k=lengths, cu_seqlens_q=cu, **trees.arguments())
    launch = replayed(call, q)
    for drafts in ((7, 0, 0, 5), (0, 1, 20, 0), (3, 0, 7, 12)):
        trees.grow()
        trees.drafts.copy_(torch.tensor(drafts))
        call.out.fill_(float("nan"))
        launch()
        trees.check(place, call.out, call.lse, pages, rows, q, cu)


@pytest.mark.gpu
def test_numbers_that_no_sequence_has_are_cut(place):
    """Where only the launch could see them: nothing faults, and results are those of as many drafts as there are ancestors, or of none."""
    rows = (7, 1, 9)
    pages, trees, cu = Pages(place, (300, 90, 41), 2), Trees(place, 3, 8), offsets(place, rows)
    q = queries(place, rows, cu=cu)
    results = []
    for drafts in ((2**31 - 1, -5, 1000), (8, 0, 8)):
        trees.drafts.copy_(torch.tensor(drafts))
        results.append(serve.paged_attention(q, *pages.arguments(), "trees", cu_seqlens_q=cu, return_lse=True, **trees.arguments()))
    assert all(torch.equal(*pair) for pair in zip(*results))
