"""heddle.serve: tensors of a pattern beside ragged queries, and tables that are not there."""
import pytest

np = pytest.importorskip("numpy")

import heddle  # noqa: E402
from heddle import serve  # noqa: E402

if not heddle.has_compiler():
    pytest.skip("these calls run on processors, by the compiler", allow_module_level=True)

HEADS, KV_HEADS, DIM, PAGE, SEQUENCES, KEYS = 4, 2, 16, 16, 3, 600


def paged():
    """q of one token of each sequence, caches, a table and lengths."""
    random, pages = np.random.default_rng(5), -(-KEYS // PAGE)
    caches = random.standard_normal((2, SEQUENCES * pages, PAGE, KV_HEADS, DIM), dtype=np.float32)
    table = random.permutation(SEQUENCES * pages).astype(np.int32).reshape(SEQUENCES, pages)
    q = random.standard_normal((SEQUENCES, 1, HEADS, DIM), dtype=np.float32)
    return q, *caches, table, np.full(SEQUENCES, KEYS, np.int32)


def test_tensors_of_a_pattern_beside_ragged_queries_are_of_the_sequences():
    q, k, v, table, lengths = paged()
    offsets = np.zeros((SEQUENCES, HEADS, 6), np.int32)  # of blocks of 128 keys each sequence keeps one of its own
    blocks = np.arange(SEQUENCES, dtype=np.int32).repeat(HEADS)
    offsets[..., 5] = np.arange(1, SEQUENCES * HEADS + 1).reshape(SEQUENCES, HEADS)
    offsets[..., :5] = np.arange(SEQUENCES * HEADS).reshape(SEQUENCES, HEADS, 1)
    expected = serve.paged_attention(q, k, v, table, lengths, "block_csr", offsets=offsets, indices=blocks)
    ragged = dict(cu_seqlens_q=np.arange(SEQUENCES + 1, dtype=np.int32), indices=blocks)
    rows = q.reshape(1, SEQUENCES, HEADS, DIM)
    got = serve.paged_attention(rows, k, v, table, lengths, "block_csr", offsets=offsets, **ragged)
    assert np.array_equal(got.reshape(expected.shape), expected)
    with pytest.raises(heddle.InvalidArgumentError, match="offsets: size of dimension 0: expected 3, got 1"):
        serve.paged_attention(rows, k, v, table, lengths, "block_csr", offsets=offsets[:1].copy(), **ragged)


def test_a_table_that_is_not_there_is_named():
    q, k, v, table, lengths = paged()
    with pytest.raises(heddle.InvalidArgumentError, match="batch_invariant: expected True or False, got 'no'"):
        serve.paged_attention(q, k, v, table, lengths, "causal", batch_invariant="no")
    with pytest.raises(heddle.InvalidArgumentError, match="paged_attention: page_table: expected a tensor of int32, got None"):
        serve.paged_attention(q, k, v, None, lengths, "causal")
    with pytest.raises(heddle.InvalidArgumentError, match="ragged_attention: cu_seqlens_k: expected a tensor of int32, got None"):
        serve.ragged_attention(q, k[:1], v[:1], None, "causal", seqused_k=lengths)
