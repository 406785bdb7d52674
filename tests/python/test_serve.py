"""heddle.serve in host memory: numpy arrays, against a dense call on the keys of each sequence, and what is refused."""
import functools

import heddle
import pytest
from heddle import serve

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.compiler


class Cache:
    def __init__(self, keys=(40, 0, 17), kv_heads=2, dim=32, page_size=16, heads_first=False):
        random = np.random.default_rng(3)
        needed = [-(-length // page_size) for length in keys]
        order = random.permutation(sum(needed) + 2).astype(np.int32)
        shape = (len(order), kv_heads, page_size, dim) if heads_first else (len(order), page_size, kv_heads, dim)
        self.k, self.v = (random.standard_normal(shape).astype(np.float32) for _ in range(2))
        if heads_first:
            self.k, self.v = self.k.transpose(0, 2, 1, 3), self.v.transpose(0, 2, 1, 3)
        self.table = np.full((len(keys), max(needed) + 1), -1, np.int32)
        for row, count in zip(self.table, needed):
            row[:count], order = order[:count], order[count:]
        self.lengths = np.array(keys, np.int32)

    def gathered(self, sequence):
        pages = self.table[sequence, :-(-self.lengths[sequence] // self.k.shape[1])]
        return [each[pages].reshape(1, -1, *each.shape[2:])[:, :self.lengths[sequence]] for each in (self.k, self.v)]

    def arguments(self):
        return self.k, self.v, self.table, self.lengths


def queries(*shape):
    return np.random.default_rng(5).standard_normal((*shape, 4, 32)).astype(np.float32)


def dense(cache, sequence, q, pattern, **arguments):
    """With positions of queries as a call on pages has them."""
    text = heddle.pattern(pattern, q_origin="end") if not isinstance(pattern, str) else pattern
    return heddle.attention(q, *cache.gathered(sequence), text, return_lse=True, **arguments)


@pytest.mark.parametrize("heads_first", (False, True))
def test_a_token_of_each_sequence(heads_first):
    from heddle.words import window
    cache, q = Cache(heads_first=heads_first), queries(3, 1)
    out, lse = serve.paged_attention(q, *cache.arguments(), window(left=8, right=0), return_lse=True)
    for sequence in range(3):
        expected, logs = dense(cache, sequence, q[sequence:sequence + 1], window(left=8, right=0))
        assert np.array_equal(out[sequence], expected[0]) and np.array_equal(lse[sequence], logs[0])
    assert not out[1].any() and np.isneginf(lse[1]).all()


def test_ragged_queries():
    from heddle.words import causal
    cache, cu = Cache(), np.array([0, 5, 5, 6], np.int32)
    q = queries(1, 6)
    out, lse = serve.paged_attention(q, *cache.arguments(), causal, cu_seqlens_q=cu, return_lse=True)
    assert lse.shape == (1, 4, 6)
    for sequence in (0, 2):
        own = slice(cu[sequence], cu[sequence + 1])
        expected, logs = dense(cache, sequence, q[:, own], causal)
        assert np.array_equal(out[:, own], expected) and np.array_equal(lse[:, :, own], logs)


@pytest.mark.parametrize("rows, offsets, expected", (((3, 7), None, (3, 7)), ((1, 8), [0, 5, 5, 8], (3, 3)), ((1, 9), [0, 9], (1, 9))))
def test_kernels_are_asked_for_by_sequences_and_the_queries_that_each_has(rows, offsets, expected):
    from heddle import _pages
    cache = Cache() if expected[0] == 3 else Cache(keys=(40,))
    spec = _pages.PagesSpec(queries(*rows), *cache.arguments(), "causal", None if offsets is None else np.array(offsets, np.int32))
    sizes = _pages._bound(_pages._checked(spec, "prepare")).call.question().sizes
    assert (sizes["batch"], sizes["seqlen_q"]) == expected


def test_results_that_the_caller_brings_and_a_scale():
    cache, q = Cache(), queries(3, 1)
    out, lse = np.full_like(q, np.nan), np.full((3, 4, 1), np.nan, np.float32)
    same = serve.paged_attention(q, *cache.arguments(), "full", scale=0.5, out=out, lse=lse)
    assert same is out and np.isfinite(out).all()
    assert np.array_equal(out[0], dense(cache, 0, q[:1], "full", scale=0.5)[0][0])


def layouts_of(cache):
    """Keys, arguments of serve.prepare, and the call that is the same, by name."""
    k, v, rows = in_rows(cache)
    tables = behind_each_other(cache)
    names = ("kv_indptr", "kv_indices", "kv_last_page_len")
    return {
        "pages": ((cache.k, cache.v), dict(page_table=cache.table, seqused_k=cache.lengths), lambda q, **o: serve.paged_attention(q, *cache.arguments(), "causal", **o)),
        "indices": ((cache.k, cache.v), dict(zip(names, tables)), lambda q, **o: serve.indexed_attention(q, cache.k, cache.v, *tables, "causal", **o)),
        "rows": ((k, v), dict(cu_seqlens_k=rows), lambda q, **o: serve.ragged_attention(q, k, v, rows, "causal", **o)),
    }


@pytest.mark.parametrize("layout", ("pages", "indices", "rows"))
@pytest.mark.parametrize("batch_invariant", (False, True))
def test_prepared_calls_read_their_tensors_again(layout, batch_invariant):
    cache, q = Cache(keys=(40, 33, 17)), queries(3, 1)
    keys, tables, same = layouts_of(cache)[layout]
    call = serve.prepare(q, *keys, "causal", **tables, batch_invariant=batch_invariant)
    assert isinstance(call, heddle.Prepared) and call() is call.out
    for _ in range(2):
        call()
        expected, logs = same(q, return_lse=True, batch_invariant=batch_invariant)
        assert np.array_equal(call.out, expected) and np.array_equal(call.lse, logs)
        q *= -0.5
    before = call.out.copy()
    if layout == "pages":
        cache.lengths[:] = 30, 20, 10
        call()
        assert np.array_equal(call.out, same(q)) and not np.array_equal(call.out, before)
    call.close()
    with pytest.raises(heddle.InvalidArgumentError, match="this prepared call is closed"):
        call()


def test_prepared_calls_of_torch_tensors():
    torch = pytest.importorskip("torch")
    cache, q = Cache(), queries(3, 1)
    tensors = [torch.from_numpy(each) for each in cache.arguments()]
    out = torch.empty(3, 1, 4, 32)
    call = serve.prepare(torch.from_numpy(q), *tensors[:2], "causal", page_table=tensors[2], seqused_k=tensors[3], out=out)
    assert call() is out and np.array_equal(out.numpy(), serve.paged_attention(q, *cache.arguments(), "causal"))


def test_what_is_wrong_with_prepared_calls_is_named():
    cache, q = Cache(), queries(3, 1)
    with pytest.raises(heddle.InvalidArgumentError, match="prepare: expected one of page_table, kv_indptr, cu_seqlens_k, which say where keys lie; got none"):
        serve.prepare(q, cache.k, cache.v, "causal", seqused_k=cache.lengths)
    with pytest.raises(heddle.InvalidArgumentError, match="got page_table and cu_seqlens_k"):
        serve.prepare(q, cache.k, cache.v, "causal", page_table=cache.table, cu_seqlens_k=cache.lengths)
    with pytest.raises(heddle.InvalidArgumentError, match="seqused_k"):
        serve.prepare(q, cache.k, cache.v, "causal", page_table=cache.table)
    with pytest.raises(heddle.InvalidArgumentError, match="kv_indices"):
        serve.prepare(q, cache.k, cache.v, "causal", kv_indptr=cache.lengths)
    with pytest.raises(heddle.InvalidArgumentError, match="page_table"):
        serve.prepare(q, cache.k, cache.v, "causal", page_table=cache.table.astype(np.int64), seqused_k=cache.lengths)


def test_torch_tensors_are_the_same_call():
    torch = pytest.importorskip("torch")
    cache, q = Cache(), queries(3, 1)
    expected, logs = serve.paged_attention(q, *cache.arguments(), "causal", return_lse=True)
    tensors = [torch.from_numpy(each) for each in cache.arguments()]
    for _ in range(2):  # the second one is kept for its sizes
        out, lse = serve.paged_attention(torch.from_numpy(q), *tensors, "causal", return_lse=True)
        assert np.array_equal(out.numpy(), expected) and np.array_equal(lse.numpy(), logs)
    with pytest.raises(heddle.UnsupportedError, match="have no gradients"):
        serve.paged_attention(torch.from_numpy(q).requires_grad_(), *tensors, "causal")


def lists_of(keys):
    """A cache whose pages are lists: keys of each sequence, for one kv head after the other."""
    cache = Cache([each for head in keys for each in head])
    lists = cache.table.reshape(len(keys), len(keys[0]), -1), cache.lengths.reshape(len(keys), len(keys[0]))
    return cache, (cache.k, cache.v, *lists)


def expected_of_lists(cache, q):
    from heddle.words import causal
    text = heddle.pattern(causal, q_origin="end")
    out, lse = np.empty_like(q), np.empty((len(q), 4, q.shape[1]), np.float32)
    for kv_head in range(2):
        heads = slice(2 * kv_head, 2 * kv_head + 2)
        for sequence in range(len(q)):
            k, v = (each[:, :, kv_head:kv_head + 1] for each in cache.gathered(kv_head * len(q) + sequence))
            from heddle.words import causal
            own = np.ascontiguousarray(q[sequence:sequence + 1, :, heads])
            out[sequence, :, heads], lse[sequence, heads] = (each[0] for each in heddle.attention(own, k, v, text, return_lse=True))
    return out, lse


def test_a_list_of_pages_for_each_kv_head():
    cache, arguments = lists_of(((40, 0, 17), (20, 64, 1)))
    q = queries(3, 1)
    out, lse = serve.paged_attention(q, *arguments, "causal", return_lse=True)
    expected, logs = expected_of_lists(cache, q)
    assert np.array_equal(out, expected) and np.array_equal(lse, logs)
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(each) for each in (q, *arguments)]
    assert np.array_equal(serve.paged_attention(*tensors, "causal").numpy(), expected)


def in_rows(cache):
    k, v = (np.concatenate([cache.gathered(s)[i] for s in range(3)], axis=1) for i in (0, 1))
    return k, v, np.cumsum([0, *cache.lengths]).astype(np.int32)


def test_keys_in_rows():
    from heddle.words import causal, window
    cache = Cache()
    k, v, cu_k = in_rows(cache)
    near = causal & window(left=9)
    cu = np.array([0, 5, 5, 6], np.int32)
    for q, options in ((queries(3, 1), {}), (queries(1, 6), dict(cu_seqlens_q=cu))):
        expected, logs = serve.paged_attention(q, *cache.arguments(), near, return_lse=True, **options)
        out, lse = serve.ragged_attention(q, k, v, cu_k, near, return_lse=True, **options)
        assert np.array_equal(out, expected) and np.array_equal(lse, logs)
    used = np.array([13, 0, 17], np.int32)
    expected = serve.paged_attention(queries(3, 1), cache.k, cache.v, cache.table, used, near)
    assert np.array_equal(serve.ragged_attention(queries(3, 1), k, v, cu_k, near, seqused_k=used), expected)


def behind_each_other(cache):
    """kv_indptr, kv_indices, kv_last_page_len of a cache, with an entry that no sequence has."""
    size = cache.k.shape[1]
    pages = -(-cache.lengths // size)
    entries = [cache.table[s, :count] for s, count in enumerate(pages)]
    last = np.where(pages > 0, cache.lengths - (pages - 1) * size, 0)
    return np.cumsum([0, *pages]).astype(np.int32), np.concatenate([*entries, [-7]]).astype(np.int32), last.astype(np.int32)


def test_tables_behind_each_other():
    from heddle.words import causal, window
    cache, near, cu = Cache(), causal & window(left=9), np.array([0, 5, 5, 6], np.int32)
    tables = behind_each_other(cache)
    for q, options in ((queries(3, 1), {}), (queries(1, 6), dict(cu_seqlens_q=cu))):
        expected, logs = serve.paged_attention(q, *cache.arguments(), near, return_lse=True, **options)
        out, lse = serve.indexed_attention(q, cache.k, cache.v, *tables, near, return_lse=True, **options)
        assert np.array_equal(out, expected) and np.array_equal(lse, logs)
    used = np.array([13, 0, 17], np.int32)
    expected = serve.paged_attention(queries(3, 1), cache.k, cache.v, cache.table, used, near)
    assert np.array_equal(serve.indexed_attention(queries(3, 1), cache.k, cache.v, *tables, near, seqused_k=used), expected)


def test_what_is_wrong_with_tables_behind_each_other_is_named():
    cache = Cache()
    names = ("kv_indptr", "kv_indices", "kv_last_page_len")

    def refused_tables(match, **changes):
        tables = {**dict(zip(names, behind_each_other(cache))), **changes}
        with pytest.raises(heddle.InvalidArgumentError, match=match):
            serve.indexed_attention(queries(3, 1), cache.k, cache.v, pattern="causal", **tables)
    refused_tables("kv_indptr: offset 2: expected 3 to 6, got 2", kv_indptr=np.array([0, 3, 2, 5], np.int32))
    refused_tables("kv_indptr: offset 3: expected 3 to 6, got 7", kv_indptr=np.array([0, 3, 3, 7], np.int32))
    refused_tables("sequences: expected 3, the batch of q, or 0, got 2", kv_indptr=np.array([0, 3, 5], np.int32), kv_last_page_len=np.array([8, 1], np.int32))
    refused_tables(r"kv_last_page_len: expected row-major i32 of \[3\] \(sequences\), got i32 of \[2\]", kv_last_page_len=np.array([8, 1], np.int32))
    refused_tables("kv_last_page_len: sequence 0: expected 1 to 16 keys of a page, got 17", kv_last_page_len=np.array([17, 0, 1], np.int32))
    refused_tables("kv_last_page_len: sequence 2: expected 1 to 16 keys of a page, got 0", kv_last_page_len=np.array([8, 0, 0], np.int32))
    refused_tables("kv_indices: sequence 2, page 1: expected 0 to 6, got 7", kv_indices=np.array([1, 2, 3, 4, 7, 0], np.int32))
    refused_tables("kv_indices: expected both kv_indptr and kv_indices and kv_last_page_len or neither, got null", kv_indices=None)
    refused_tables("seqused_k: sequence 2: expected 0 to 17 keys, as kv_indptr says, got 18", seqused_k=np.array([1, 0, 18], np.int32))


def sharing_cache():
    """Sequences 1 and 2 have the first 32 keys of sequence 0."""
    cache = Cache(keys=(60, 50, 40))
    cache.table[1:, :2] = cache.table[0, :2]
    return cache, np.array([0, 32, 32], np.int32)


def test_keys_that_sequences_share():
    cache, shared = sharing_cache()
    q = queries(3, 1)
    expected, logs = serve.paged_attention(q, *cache.arguments(), "causal", return_lse=True)
    tables = behind_each_other(cache)
    for out, lse in (serve.paged_attention(q, *cache.arguments(), "causal", shared_k=shared, return_lse=True),
                     serve.indexed_attention(q, cache.k, cache.v, *tables, "causal", shared_k=shared, return_lse=True)):
        assert np.array_equal(out, expected) and np.array_equal(lse, logs)
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(each) for each in (q, *cache.arguments())]
    assert np.array_equal(serve.paged_attention(*tensors, "causal", shared_k=torch.from_numpy(shared)).numpy(), expected)


def test_bits_that_do_not_depend_on_the_batch():
    cache = Cache(keys=(60, 50, 40))
    q, tables = queries(3, 1), behind_each_other(cache)
    expected, logs = serve.paged_attention(q, *cache.arguments(), "causal", return_lse=True)
    for out, lse in (serve.paged_attention(q, *cache.arguments(), "causal", batch_invariant=True, return_lse=True),
                     serve.indexed_attention(q, cache.k, cache.v, *tables, "causal", batch_invariant=True, return_lse=True)):
        assert np.array_equal(out, expected) and np.array_equal(lse, logs)
    alone = serve.paged_attention(q[1:2], cache.k, cache.v, cache.table[1:2], cache.lengths[1:2], "causal", batch_invariant=True)
    assert np.array_equal(alone, expected[1:2])
    with pytest.raises(heddle.InvalidArgumentError, match="shared_k: expected None beside batch_invariant=True"):
        serve.paged_attention(q, *cache.arguments(), "causal", shared_k=np.zeros(3, np.int32), batch_invariant=True)
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(each) for each in (q, *cache.arguments())]
    assert np.array_equal(serve.paged_attention(*tensors, "causal", batch_invariant=True).numpy(), expected)
    compiled = torch.compile(lambda *given: serve.paged_attention(*given, "causal", batch_invariant=True), backend="eager", fullgraph=True)
    assert np.array_equal(compiled(*tensors).numpy(), expected)


@pytest.mark.parametrize("near", (None, 100))
def test_bits_of_a_query_do_not_depend_on_how_its_sequence_comes(near):
    from heddle.words import causal, window
    cache, prompt = Cache(keys=(700,)), queries(1, 600)
    pattern = causal if near is None else causal & window(left=near)
    whole = serve.paged_attention(prompt, *cache.arguments(), pattern, batch_invariant=True)
    for count in (1, 8, 33):
        for end in (700, 650, 400, 150):  # the queries that stand before it
            own = slice(end - 100 - count, end - 100)
            part = serve.paged_attention(np.ascontiguousarray(prompt[:, own]), cache.k, cache.v, cache.table, np.array([end], np.int32), pattern, batch_invariant=True)
            assert np.array_equal(part, whole[:, own])


def test_what_sequences_cannot_share_is_named():
    cache, shared = sharing_cache()

    def refused_sharing(match, shared_k, **changes):
        given = dict(k_cache=cache.k, v_cache=cache.v, page_table=cache.table, seqused_k=cache.lengths)
        with pytest.raises(heddle.InvalidArgumentError, match=match):
            serve.paged_attention(queries(3, 1), **{**given, **changes}, pattern="causal", shared_k=shared_k)
    refused_sharing("shared_k: sequence 0: expected 0, as none is before it, got 4", np.array([4, 32, 32], np.int32))
    refused_sharing("shared_k: sequence 2: expected 0 to 40 keys, which it and the one before it have, got 41", np.array([0, 32, 41], np.int32))
    refused_sharing("shared_k: sequence 1, page 2: expected [0-9]+, that of the sequence before it, got [0-9]+", np.array([0, 33, 32], np.int32))
    refused_sharing(r"shared_k: expected row-major i32 of \[3\] \(sequences\), got i32 of \[2\]", shared[:2])
    lists, lengths = np.stack([cache.table] * 2), np.stack([cache.lengths] * 2)
    refused_sharing("tables: expected 0 beside shared_k, got 2", shared, page_table=lists, seqused_k=lengths)


def test_what_is_wrong_with_lists_and_rows_is_named():
    cache, (k, v, tables, lengths) = lists_of(((40, 0, 17), (20, 64, 1)))
    refused(r"seqused_k: expected row-major i32 of \[2, 3\] \(tables, sequences\), got i32 of \[3\]", k_cache=k, v_cache=v, page_table=tables, seqused_k=lengths[0])
    refused("tables: expected 0, 1 or 2, the heads of k, got 3", k_cache=k, v_cache=v, page_table=np.zeros((3, 3, 4), np.int32), seqused_k=np.zeros((3, 3), np.int32))
    refused("seqused_k: kv head 1, sequence 2: expected 0 to 80 keys, 5 pages of 16, got 81", k_cache=k, v_cache=v, page_table=tables,
            seqused_k=np.array([[1, 1, 1], [1, 1, 81]], np.int32))
    dense_k, dense_v, cu_k = in_rows(Cache())

    def refused_rows(match, k=dense_k, cu=cu_k, **options):
        with pytest.raises(heddle.InvalidArgumentError, match=match):
            serve.ragged_attention(queries(3, 1), k, dense_v[:, :k.shape[1]], cu, "causal", **options)
    refused_rows("cu_seqlens_k: offset 3: expected 57, got 56", cu=np.array([0, 40, 40, 56], np.int32))
    refused_rows(r"cu_seqlens_k: expected row-major i32 of \[4\] \(sequences\), got i64", cu=cu_k.astype(np.int64))
    refused_rows("sequences: expected 3, the batch of q, or 0, got 2", cu=np.array([0, 40, 57], np.int32))
    refused_rows("seqused_k: sequence 1: expected 0 to 0 keys, as cu_seqlens_k says, got 1", seqused_k=np.array([1, 1, 1], np.int32))


def refused(match, error=heddle.InvalidArgumentError, q=None, pattern="causal", **changes):
    cache = Cache()
    given = dict(k_cache=cache.k, v_cache=cache.v, page_table=cache.table, seqused_k=cache.lengths)
    with pytest.raises(error, match=match):
        serve.paged_attention(queries(3, 1) if q is None else q, **{**given, **changes}, pattern=pattern)


def test_what_is_wrong_is_named():
    cache = Cache()
    refused("seqused_k: sequence 1: expected 0 to 64 keys, 4 pages of 16, got 65", seqused_k=np.array([1, 65, 2], np.int32))
    refused("seqused_k: sequence 2: expected 0 to 64 keys, 4 pages of 16, got -1", seqused_k=np.array([1, 5, -1], np.int32))
    refused(r"seqused_k: expected row-major i32 of \[3\] \(sequences\), got i64", seqused_k=cache.lengths.astype(np.int64))
    refused(r"seqused_k: expected row-major i32 of \[3\]", seqused_k=cache.lengths[:2])
    refused(r"page_table: expected row-major i32 of \[3, 4\] \(sequences, max_pages\), got i32 of \[3, 4\] with strides", page_table=np.asfortranarray(cache.table))
    refused("page_table: sequence 0, page 2: expected 0 to 6, got -1", page_table=np.where(np.arange(4) == 2, -1, cache.table).astype(np.int32))
    refused("sequences: expected 2, the batch of q, or 0, got 3", q=queries(2, 1))
    refused("q: size of batch: expected 1 beside cu_seqlens_q, got 3", cu_seqlens_q=np.array([0, 1, 2, 3], np.int32))
    refused("cu_seqlens_q: offset 3: expected 3, got 2", q=queries(1, 3), cu_seqlens_q=np.array([0, 1, 2, 2], np.int32))
    refused("v: size of page: expected 7, got 6", v_cache=cache.v[:6])
    refused("v: size of row: expected 16, got 8", v_cache=cache.v[:, :8])
    refused("k: size of row: expected pages of 1 to 256 keys, got 300", k_cache=np.zeros((7, 300, 2, 32), np.float32), v_cache=np.zeros((7, 300, 2, 32), np.float32))
    refused("k: size of head: expected a divisor of the 4 query heads, got 3", k_cache=np.zeros((7, 16, 3, 32), np.float32),
            v_cache=np.zeros((7, 16, 3, 32), np.float32))
    bias = np.zeros((3, 4, 1, 64), np.float32)
    from heddle.words import causal, scaled, tensor, union
    pattern = heddle.pattern(union(causal, scores=scaled.bias(tensor("bias", "?x?x?x?xf32"))))
    with pytest.raises(heddle.UnsupportedError, match="argument 0 of the pattern has elements for each query"):
        serve.paged_attention(queries(3, 1), *cache.arguments(), pattern, bias=bias)


def test_a_node_of_a_graph_that_torch_compile_makes():
    torch = pytest.importorskip("torch")
    from heddle.words import causal, window
    torch._dynamo.reset()
    cache, q = Cache(), torch.from_numpy(queries(3, 1))
    tensors = [torch.from_numpy(each) for each in cache.arguments()]
    near = heddle.pattern(causal & window(left=5))

    def call(q, k, v, table, lengths):
        out, lse = serve.paged_attention(q, k, v, table, lengths, near, return_lse=True)
        return out * 2, lse

    compiled = torch.compile(call, backend="eager", fullgraph=True)
    for lengths in (tensors[3], tensors[3] // 2):  # which no graph looks at
        for found, expected in zip(compiled(q, *tensors[:3], lengths), call(q, *tensors[:3], lengths)):
            torch.testing.assert_close(found, expected)
    broken = torch.compile(lambda *given: serve.paged_attention(*given, causal) * 2, backend="eager")
    torch.testing.assert_close(broken(q, *tensors), serve.paged_attention(q, *tensors, causal) * 2)
    k, v, cu_k = (torch.from_numpy(each) for each in in_rows(cache))
    rows = torch.compile(lambda *given: serve.ragged_attention(*given, near, return_lse=True), backend="eager", fullgraph=True)
    for found, expected in zip(rows(q, k, v, cu_k), serve.paged_attention(q, *tensors, near, return_lse=True)):
        torch.testing.assert_close(found, expected)
    cache, shared = sharing_cache()
    k, v, *tables, shared = (torch.from_numpy(each) for each in (cache.k, cache.v, *behind_each_other(cache), shared))
    call = functools.partial(serve.indexed_attention, q, k, v, pattern=near)
    sharing = torch.compile(lambda indptr, indices, last, shared: call(indptr, indices, last, shared_k=shared), backend="eager", fullgraph=True)
    torch.testing.assert_close(sharing(*tables, shared), call(*tables))
