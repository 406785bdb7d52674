"""heddle.attention on numpy arrays against the definition: masks, sizes that do not divide, empty rows, strides, scores, tensors."""
import heddle
import pytest
from heddle.words import (causal, cols, csr, documents, full, heads, lse, predicate, random, rows, score_map, size, softcap, static, stride, tensor,
                          union, window)

np = pytest.importorskip("numpy")
import reference  # noqa: E402

pytestmark = pytest.mark.compiler


def draw(batch=1, n=37, keys=None, h=4, kv=None, d=8, value=None, dtype="float32", seed=0):
    generator = np.random.default_rng(seed)
    keys, kv = n if keys is None else keys, h if kv is None else kv
    shapes = (batch, n, h, d), (batch, keys, kv, d), (batch, keys, kv, value or d)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]


def check(q, k, v, pattern, copies, tolerance=2e-5, scale=None, scores=None, sink=None, **arguments):
    out, logs = heddle.attention(q, k, v, pattern, return_lse=True, scale=scale, **arguments)
    expected, expected_logs = reference.attention(q, k, v, copies, scale, scores, sink)
    assert out.dtype == q.dtype and logs.dtype == np.float32
    np.testing.assert_allclose(out, expected, atol=tolerance, rtol=0)
    np.testing.assert_allclose(logs, expected_logs, atol=max(tolerance, 1e-5), rtol=0)
    return out


@pytest.mark.parametrize("n", [0, 1, 2, 7, 64, 129])
def test_lengths(n):
    q, k = reference.positions(n)
    check(*draw(n=n), causal & window(left=5) | cols(3), (k <= q) & (q - k <= 5) | (k < 3))


@pytest.mark.parametrize("n", [5, 16, 23, 40])
@pytest.mark.parametrize("is_causal", [False, True])
def test_dilated_with_segments_that_do_not_divide(n, is_causal):
    base = causal if is_causal else full
    lengths, rates = (4, 8, 20), (1, 2, 3)
    mixed = lse(*(base.dilate(r, rule="block").segment(w) for w, r in zip(lengths, rates)))
    check(*draw(n=n), heddle.pattern(mixed), reference.mixture(4, n, lengths, rates, is_causal))
    split = heads(*(base.dilate(r, rule="group").segment(w) for w, r in zip(lengths, rates)))
    check(*draw(n=n, h=5), split, reference.partition(5, n, lengths, rates, is_causal))


def test_rows_that_keep_nothing_are_zero():
    out, logs = heddle.attention(*draw(n=9), full.dilate(3, at=1), return_lse=True)
    empty = np.arange(9) % 3 != 1
    assert (out[:, empty] == 0).all() and np.isneginf(logs[:, :, empty]).all() and np.isfinite(logs[:, :, ~empty]).all()


def golden(n):
    t, h, c = np.arange(n)[:, None, None], np.arange(2)[None, :, None], np.arange(2)[None, None, :]
    return [each[None].astype(np.float32) for each in (np.sin(1 + t + 3 * h + 5 * c), np.cos(2 + 2 * t + h + 3 * c), np.sin(0.5 * t + 2 * h + 7 * c))]


BRANCHES = (causal.segment(4), causal.dilate(2, rule="block").segment(8)), (full.segment(4), full.dilate(2, rule="block").segment(8))
# Sums and sums of squares over all outputs, from the project's table of golden numbers (two branches, n = 8 and 10).
GOLDEN = [
    (8, full, 0.649877735672, 4.568262552307), (8, causal, 9.301722002202, 8.436149982488),
    (8, heads(full.segment(4), full.dilate(2, rule="group").segment(8)), 2.599627809581, 6.608569731270),
    (8, heads(causal.segment(4), causal.dilate(2, rule="group").segment(8)), 5.684819296876, 6.229058427448),
    (8, lse(*BRANCHES[1]), 0.444507006163, 8.407315586182), (8, lse(*BRANCHES[0]), 3.732409248306, 10.883966493203),
    (8, union(*BRANCHES[1]), 0.359020563032, 8.285801484033), (8, union(*BRANCHES[0]), 4.148114375502, 11.015487631855),
    (8, window(static(1), static(1)).blocks(2), 0.489662458063, 9.686076211076),
    (8, window(static(1), static(1)).blocks(2) & causal, 4.744611610254, 11.803695696792),
    (10, lse(*BRANCHES[1]), -2.185849414877, 12.312685833796), (10, lse(*BRANCHES[0]), 0.777241742852, 14.672780845577),
]


@pytest.mark.parametrize("n, pattern, total, squares", GOLDEN)
def test_golden_numbers(n, pattern, total, squares):
    out = heddle.attention(*golden(n), pattern).astype(np.float64)
    assert abs(out.sum() - total) < 1e-5 and abs((out * out).sum() - squares) < 2e-5


def test_groups_of_heads_share_keys_and_values_may_be_longer():
    q, k = reference.positions(21)
    check(*draw(batch=2, n=21, h=6, kv=2, value=24), causal, k <= q)
    check(*draw(batch=2, n=21, h=6, kv=1), causal, k <= q, scale=0.3)


def test_fewer_queries_than_keys():
    q, k = reference.positions(5, 19, q_origin=14)
    check(*draw(n=5, keys=19), heddle.pattern(window(left=6), q_origin="end"), (k <= q) & (q - k <= 6))
    q, k = reference.positions(5, 19, q_origin=3)
    check(*draw(n=5, keys=19), heddle.pattern(causal, q_origin="given"), k <= q, q_origin=3)


def test_sizes_of_a_call_win_over_the_pattern_and_its_defaults():
    q, k = reference.positions(37)
    bound = heddle.library("sliding_window", left=3)
    check(*draw(), bound, (k <= q) & (q - k <= 3))
    check(*draw(), bound, (k <= q) & (q - k <= 9), left=9)
    check(*draw(), "sliding_window", (k <= q), left=np.int64(1000))


@pytest.mark.parametrize("dtype, tolerance", [("float16", 2e-3), ("float32", 2e-5)])
def test_dtypes(dtype, tolerance):
    q, k = reference.positions(37)
    check(*draw(dtype=dtype), causal, k <= q, tolerance)


def test_transposed_views_are_read_where_they_are():
    q, k, v = (np.ascontiguousarray(each.swapaxes(1, 2)).swapaxes(1, 2) for each in draw(batch=2))
    assert not q.flags.c_contiguous
    rows_, keys = reference.positions(37)
    check(q, k, v, causal, keys <= rows_)
    wide = np.zeros((2, 37, 4, 16), np.float32)
    wide[..., :8] = q
    check(wide[..., :8], k, v, causal, keys <= rows_)


def test_results_of_the_caller_are_written():
    q, k, v = draw()
    out, logs = np.full_like(q, np.nan), np.full((1, 4, 37), np.nan, np.float32)
    assert heddle.attention(q, k, v, causal, out=out, lse=logs) is out
    expected, expected_logs = heddle.attention(q, k, v, causal, return_lse=True)
    assert (out == expected).all() and (logs == expected_logs).all()


def test_prepared_calls_read_their_tensors_again():
    q, k, v = draw()
    call = heddle.prepare(q, k, v, "sliding_window", left=4)
    first = call().copy()
    assert call.kernel is None and (first == heddle.attention(q, k, v, "sliding_window", left=4)).all()
    q *= 2
    assert (call() == heddle.attention(q, k, v, "sliding_window", left=4)).all() and (call.out != first).any()
    call.close()
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        call()
    assert str(raised.value) == "this prepared call is closed"


def test_scores():
    q, k = reference.positions(37)
    check(*draw(), union(causal, scores=softcap(1.5)), k <= q, scores=lambda s, h: 1.5 * np.tanh(s / 1.5))
    check(*draw(), union(causal, scores=score_map(lambda s, b, h, q, k: s - (q - k) * 0.25 * (h + 1))), k <= q,
          scores=lambda s, h: s - (q - k) * 0.25 * (h + 1))
    check(*draw(), union(causal, sink=0.5), k <= q, sink=0.5)


def test_predicates_from_python():
    q, k = reference.positions(37)
    check(*draw(), predicate(lambda b, h, q, k: ((q - k) % 3 == 0) & (q >= k) | (q // 5 == k // 5)), ((q - k) % 3 == 0) & (k <= q) | (q // 5 == k // 5))


def test_tensors_of_a_pattern():
    cu = np.array([0, 9, 9, 30, 37], np.int32)
    q, k = reference.positions(37)
    document = np.searchsorted(cu, np.arange(37), side="right")
    packed = heddle.pattern(documents(causal, tensor("cu", "?xi32")))
    check(*draw(), packed, (document[:, None] == document[None, :]) & (k <= q), cu=cu)
    bias = np.random.default_rng(1).standard_normal((1, 4, 37, 37)).astype(np.float32)
    given = heddle.pattern(union(causal, scores=heddle.words.bias(tensor("bias", "1x?x?x?xf32"))))
    check(*draw(), given, k <= q, scores=lambda s, h: s + bias[0, h], bias=bias)
    table = np.random.default_rng(1).standard_normal((4, 11)).astype(np.float32)
    relative = heddle.pattern(union(full, scores=heddle.words.relative(tensor("table", "?x?xf32"), 5)))
    check(*draw(), relative, np.ones((37, 37)), scores=lambda s, h: s + table[h][np.clip(q - k + 5, 0, 10)], table=table)
    sinks = np.array([0.1, 0.2, 0.3, -np.inf], np.float32)
    out, logs = heddle.attention(*draw(), "sink", return_lse=True, sinks=sinks)
    expected = reference.attention(*draw(), k <= q)
    np.testing.assert_allclose(logs[0, 3], expected[1][0, 3], atol=1e-5)
    np.testing.assert_allclose(logs[0, 1], np.logaddexp(expected[1][0, 1], 0.2), atol=1e-5)


def test_lists_of_blocks():
    lists = [[0], [0, 1], [2], [1, 3], [4]]
    offsets = np.cumsum([0] + [len(each) for each in lists]).astype(np.int32).reshape(1, 1, -1)
    indices = np.concatenate(lists).astype(np.int32)
    pattern = heddle.pattern(csr(tensor("offsets", "?x?x?xi32"), tensor("indices", "?xi32")).blocks(8))
    copies = np.zeros((37, 37))
    for row, each in enumerate(lists):
        for block in each:
            copies[8 * row:8 * row + 8, 8 * block:8 * block + 8] = 1
    offsets = np.ascontiguousarray(np.broadcast_to(offsets, (1, 4, 6)))
    check(*draw(), pattern, copies, offsets=offsets, indices=indices)


def test_random_and_strided_blocks_agree_with_explain():
    pattern = heddle.pattern((random(2, 7) | stride("k", 4, at=0) | rows(1)).blocks(4))
    q, k, v = draw(n=32)
    uniform = heddle.attention(np.zeros_like(q), k, np.ones_like(v), pattern, return_lse=True)[1]
    assert round(float(np.exp(uniform).sum())) == pattern.explain(32, heads=4)["kept_pairs"]


def test_named_sizes_are_shared():
    w = size("w", 4)
    q, k = reference.positions(37)
    check(*draw(), window(w, w), abs(q - k) <= 2, w=2)


def test_the_last_dimension_must_be_contiguous():
    q, k, v = draw(d=16)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(q[..., ::2], k[..., ::2], v, causal)
    assert str(raised.value) == "attention arguments: q: stride of dim: expected 1, got 2; make the tensor contiguous in dim"
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(q, k, v[..., ::-1], causal)
    assert "v: stride of dim: expected 1, got -1" in str(raised.value)


def test_read_only_arrays_are_read():
    q, k, v = draw()
    for each in (q, k, v):
        each.flags.writeable = False
    heddle.attention(q, k, v, causal)


def test_results_must_be_writeable():
    q, k, v = draw()
    out = np.zeros_like(q)
    out.flags.writeable = False
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(q, k, v, causal, out=out)
    assert "out: expected an array that may be written" in str(raised.value)


class Interface:
    """An array that says no more of itself than numpy's protocol asks for."""

    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__


class Exporter:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        raise BufferError("read-only")

    def __dlpack_device__(self):
        return 1, 0


def test_arrays_of_the_protocol_alone():
    q, k, v = (np.random.default_rng(3).standard_normal((1, 2, 5, 8)).astype(np.float32).transpose(0, 2, 1, 3) for _ in range(3))
    out = heddle.attention(Interface(q), Interface(k), Interface(v), "causal")
    assert out.dtype == np.float32 and np.array_equal(out, heddle.attention(q, k, v, "causal"))
    with pytest.raises(heddle.InvalidArgumentError, match="out: expected a tensor that its owner exports: read-only"):
        heddle.attention(q, k, v, "causal", out=Exporter(q))


def test_products_in_host_memory_are_exact():
    q, k, v = draw()
    assert np.array_equal(heddle.attention(q, k, v, causal, precision="tf32"), heddle.attention(q, k, v, causal))
    with pytest.raises(heddle.InvalidArgumentError, match="precision: 'tf32' is for fp32; q is fp16"):
        heddle.attention(*(each.astype(np.float16) for each in (q, k, v)), causal, precision="tf32")
    with pytest.raises(heddle.InvalidArgumentError, match="precision: expected 'exact', 'tf32' or 'fast', got 'high'"):
        heddle.attention(q, k, v, causal, precision="high")
