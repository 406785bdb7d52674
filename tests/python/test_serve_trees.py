"""Drafts of several trees in one call of heddle.serve in host memory, beside single tokens and pieces of prompts, against numpy."""
import heddle
import pytest
from heddle import serve

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.compiler

HEADS, KV_HEADS, DIM, PAGE = 4, 2, 32, 16
ROWS = (7, 1, 20, 0, 9)      # a tree, a token, a piece of a prompt, nothing, a piece and 4 drafts behind it
KEYS = (40, 33, 20, 0, 70)
DRAFTS = (7, 0, 0, 0, 4)
TOKENS = 8                   # of a row of ancestors: more than any sequence has


class Batch:
    def __init__(self):
        random = np.random.default_rng(7)
        pages = [-(-keys // PAGE) for keys in KEYS]
        order = random.permutation(sum(pages)).astype(np.int32)
        self.k, self.v = (random.standard_normal((len(order), PAGE, KV_HEADS, DIM)).astype(np.float32) for _ in range(2))
        self.table = np.full((len(KEYS), max(pages)), -1, np.int32)
        for row, count in zip(self.table, pages):
            row[:count], order = order[:count], order[count:]
        self.q = random.standard_normal((1, sum(ROWS), HEADS, DIM)).astype(np.float32)
        self.cu = np.cumsum([0, *ROWS]).astype(np.int32)
        self.lengths, self.drafts = np.array(KEYS, np.int32), np.array(DRAFTS, np.int32)
        self.sees = np.zeros((len(ROWS), TOKENS, TOKENS), bool)  # of the drafts of a sequence, as its parents say
        for tree in self.sees:
            for token in range(TOKENS):
                parent = int(random.integers(-1, token))
                tree[token] = tree[parent] if parent >= 0 else False
                tree[token, token] = True
        self.ancestors = (self.sees * (1 << np.arange(TOKENS))).sum(-1).astype(np.int64)

    def call(self, pattern=None, **changes):
        given = dict(cu_seqlens_q=self.cu, ancestors=self.ancestors, drafts=self.drafts, return_lse=True)
        return serve.paged_attention(self.q, self.k, self.v, self.table, self.lengths, pattern or trees_pattern(), **{**given, **changes})

    def kept(self, sequence, drafts):
        """[rows, keys] of a sequence."""
        rows, keys = ROWS[sequence], KEYS[sequence]
        kept = np.tril(np.ones((rows, keys), bool), keys - rows)
        if drafts:
            kept[rows - drafts:, keys - drafts:] = self.sees[sequence, :drafts, :drafts]
        return kept

    def expected(self, sequence, drafts):
        own = self.table[sequence, :-(-KEYS[sequence] // PAGE)]
        k, v = (np.repeat(each[own].reshape(-1, KV_HEADS, DIM)[:KEYS[sequence]], HEADS // KV_HEADS, 1).astype(np.float64) for each in (self.k, self.v))
        q = self.q[0, self.cu[sequence]:self.cu[sequence + 1]].astype(np.float64)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(DIM)
        scores[:, ~self.kept(sequence, drafts)] = -np.inf
        top = scores.max(-1, keepdims=True)
        weights = np.exp(scores - top)
        sums = weights.sum(-1, keepdims=True)
        return np.einsum("hqk,khd->qhd", weights / sums, v), (top + np.log(sums))[..., 0]

    def check(self, out, lse, drafts=DRAFTS):
        for sequence, rows in enumerate(ROWS):
            if rows:
                own = slice(self.cu[sequence], self.cu[sequence + 1])
                wanted, logs = self.expected(sequence, drafts[sequence])
                assert np.abs(out[0, own] - wanted).max() < 2e-6 and np.abs(lse[0, :, own] - logs).max() < 5e-6, sequence


def trees_pattern():
    from heddle.words import tensor, tree
    return heddle.pattern(tree(tensor("ancestors", "?x?xi64"), tensor("drafts", "?xi32")), q_origin="end")


def test_a_tree_a_token_a_prompt_and_nothing():
    batch = Batch()
    batch.check(*batch.call())
    batch.check(*batch.call("trees"))
    batch.check(*batch.call(batch_invariant=True))


def test_numbers_of_drafts_are_of_each_sequence():
    batch = Batch()
    for drafts in ((0,) * 5, (3, 1, 8, 0, 0), (7, 1, 5, 0, 8)):
        batch.check(*batch.call(drafts=np.array(drafts, np.int32)), drafts)
    none = batch.call(drafts=np.zeros(5, np.int32))
    causal = serve.paged_attention(batch.q, batch.k, batch.v, batch.table, batch.lengths, "causal", cu_seqlens_q=batch.cu, return_lse=True)
    assert all(np.array_equal(*pair) for pair in zip(none, causal))


def test_every_sequence_has_a_tree_where_no_numbers_are():
    from heddle.words import tensor, tree
    batch = Batch()
    pattern = heddle.pattern(tree(tensor("ancestors", "?x?xi64")), q_origin="end")
    q, lengths = np.ascontiguousarray(batch.q[:, :14].reshape(2, 7, HEADS, DIM)), batch.lengths[[0, 4]]
    ancestors = np.ascontiguousarray(batch.ancestors[[0, 4], :5])
    out, lse = serve.paged_attention(q, batch.k, batch.v, np.ascontiguousarray(batch.table[[0, 4]]), lengths, pattern, return_lse=True, ancestors=ancestors)
    one = heddle.pattern(tree(tensor("ancestors", "1x?xi64"), tensor("drafts", "1xi32")), q_origin="end")
    for sequence in range(2):
        row = slice(sequence, sequence + 1)
        same = serve.paged_attention(q[row], batch.k, batch.v, np.ascontiguousarray(batch.table[[0, 4]][row]), lengths[row], one, return_lse=True,
                                     ancestors=ancestors[row], drafts=np.array([5], np.int32))
        assert np.array_equal(out[row], same[0]) and np.array_equal(lse[row], same[1])


@pytest.mark.parametrize("drafts, message", [
    ((8, 0, 0, 0, 4), r"tensor 'drafts': expected entry 0 to be 0 to 7, no more draft tokens than have ancestors and than there are queries or keys, got 8"),
    ((7, 2, 0, 0, 4), r"expected entry 1 to be 0 to 1, .*got 2"),
    ((7, 0, 9, 0, 4), r"expected entry 2 to be 0 to 8, .*got 9"),
    ((7, 0, -1, 0, 4), r"expected entry 2 to be 0 to 8, .*got -1"),
])
def test_numbers_that_a_sequence_cannot_have_are_refused(drafts, message):
    with pytest.raises(heddle.InvalidArgumentError, match=message):
        Batch().call(drafts=np.array(drafts, np.int32))


def test_tensors_of_another_batch_are_refused():
    batch = Batch()
    with pytest.raises(heddle.InvalidArgumentError, match="ancestors"):
        batch.call(ancestors=np.ascontiguousarray(batch.ancestors[:4]))
    with pytest.raises(heddle.InvalidArgumentError, match="tensor 'drafts': expected 5 entries, one for each batch element, got 4"):
        batch.call(drafts=batch.drafts[:4])
    with pytest.raises(heddle.InvalidArgumentError, match="expected 1 to 64 draft tokens, got 65"):
        batch.call(ancestors=np.ones((5, 65), np.int64))
