"""Calls that continue earlier ones, and the number of processors, on numpy arrays against the definition over all keys."""
import heddle
import pytest
from heddle import _library
from heddle.words import causal, cols, full, lse, union, window

np = pytest.importorskip("numpy")
import reference  # noqa: E402

pytestmark = pytest.mark.compiler


def draw(batch=2, n=37, keys=None, h=4, kv=2, d=8, value=None, seed=0):
    generator = np.random.default_rng(seed)
    keys = n if keys is None else keys
    return [generator.standard_normal(shape).astype(np.float32) for shape in ((batch, n, h, d), (batch, keys, kv, d), (batch, keys, kv, value or d))]


def in_pieces(q, k, v, pattern, cuts, **arguments):
    """One call for the keys between each two cuts, each continuing the one before."""
    carry = None
    for begin, end in zip([0, *cuts], [*cuts, k.shape[1]]):
        carry = heddle.attention(q, k[:, begin:end], v[:, begin:end], pattern, k_origin=begin, carry=carry, return_lse=True, **arguments)
    return carry


def check(q, k, v, pattern, copies, cuts, **arguments):
    out, logs = in_pieces(q, k, v, pattern, cuts)
    expected, expected_logs = reference.attention(q, k, v, copies, **arguments)
    np.testing.assert_allclose(out, expected, atol=2e-5, rtol=0)
    np.testing.assert_allclose(logs, expected_logs, atol=2e-5, rtol=0)


@pytest.mark.parametrize("cuts", [[18], [0], [37], [1, 2, 30]])
def test_attention_over_pieces_of_the_keys_is_attention_over_all(cuts):
    q, k = reference.positions(37)
    check(*draw(), causal & window(left=20) | cols(3), (k <= q) & (q - k <= 20) | (k < 3), cuts)
    check(*draw(value=24), full, np.ones((37, 37)), cuts)


def test_mixtures_add_up():
    q, k = reference.positions(37)
    check(*draw(), lse(causal, window(left=4)), (k <= q).astype(int) + ((k <= q) & (q - k <= 4)), [11, 20])


def test_rows_that_keep_nothing_in_one_piece_or_in_all():
    q, k = reference.positions(37)
    check(*draw(), full.dilate(3, at=1), (q % 3 == 1) & (k % 3 == 1), [19])
    check(*draw(), window(left=2), (k <= q) & (q - k <= 2), [19])


def test_offsets_of_documents_go_on_beyond_a_piece():
    q, k = reference.positions(37)
    offsets = np.array([0, 9, 9, 30, 37], np.int32)
    document = np.searchsorted(offsets, np.arange(37), side="right")
    tensors = draw(batch=1)
    expected = reference.attention(*tensors, (document[q] == document[k]) & (k <= q))
    for found, wanted in zip(in_pieces(*tensors, "document", [7, 19], cu=offsets), expected):
        np.testing.assert_allclose(found, wanted, atol=2e-5, rtol=0)


def test_a_sink_counts_once():
    q, k = reference.positions(37)
    check(*draw(), union(causal, sink=0.5), k <= q, [7, 19], sink=0.5)


def test_a_ring():
    """Each owner of queries sees the keys of all, in the order in which they come around."""
    given = heddle.pattern(causal, q_origin="given")
    q, k, v = draw(n=40)
    expected, _ = reference.attention(q, k, v, reference.positions(40)[1] <= reference.positions(40)[0])
    for owner in range(4):
        carry = None
        for step in range(4):
            begin = (owner - step) % 4 * 10
            carry = heddle.attention(q[:, owner * 10:owner * 10 + 10], k[:, begin:begin + 10], v[:, begin:begin + 10], given, q_origin=owner * 10,
                                     k_origin=begin, carry=carry, return_lse=True)
        np.testing.assert_allclose(carry[0], expected[:, owner * 10:owner * 10 + 10], atol=2e-5, rtol=0)


def test_prepared_calls_read_their_carry_again():
    q, k, v = draw()
    carry = in_pieces(q, k[:, :18], v[:, :18], "causal", [])
    call = heddle.prepare(q, k[:, 18:], v[:, 18:], "causal", k_origin=18, carry=carry)
    whole = heddle.attention(q, k, v, "causal")
    np.testing.assert_allclose(call(), whole, atol=2e-5, rtol=0)
    carry[0][...], carry[1][...] = 0, -np.inf
    alone = heddle.attention(q, k[:, 18:], v[:, 18:], "causal", k_origin=18)
    assert (call() == alone).all() and abs(alone - whole).max() > 0.1


@pytest.mark.parametrize("change, message", [
    (lambda out, logs: out, "carry: expected (out, lse) of an earlier call, got ndarray"),
    (lambda out, logs: (out, logs, out), "carry: expected (out, lse) of an earlier call, got tuple"),
    (lambda out, logs: (out, None), "carry: lse: expected a tensor"),
    (lambda out, logs: (out.astype(np.float16), logs), "carry: out: expected row-major fp32 of [2, 37, 4, 8] (batch, seqlen_q, heads, value_dim); "
                                                       "have the earlier call write it into an out= of fp32, got fp16 of [2, 37, 4, 8]"),
    (lambda out, logs: (out[:, :30], logs), "carry: out: expected row-major fp32 of [2, 37, 4, 8]"),
    (lambda out, logs: (out.swapaxes(1, 2).copy().swapaxes(1, 2), logs), "carry: out: expected row-major fp32"),
    (lambda out, logs: (out, logs.swapaxes(1, 2)), "carry: lse: expected row-major fp32 of [2, 4, 37] (batch, heads, seqlen_q), got fp32 of [2, 37, 4]"),
])
def test_a_carry_that_does_not_fit_is_named(change, message):
    tensors = draw()
    carry = change(*heddle.attention(*tensors, "causal", return_lse=True))
    for call in (heddle.attention, heddle.prepare):
        with pytest.raises(heddle.InvalidArgumentError) as raised:
            call(*tensors, "causal", carry=carry)
        assert message in str(raised.value)


def test_a_carry_is_not_continued_in_place():
    tensors = draw()
    out, logs = heddle.attention(*tensors, "causal", return_lse=True)
    for name, results in (("out", dict(out=out)), ("lse", dict(lse=logs))):
        with pytest.raises(heddle.InvalidArgumentError) as raised:
            heddle.attention(*tensors, "causal", carry=(out, logs), **results)
        assert f"{name}: expected memory apart from carry_{name}, which is still read when it is written, got the same address" in str(raised.value)


@pytest.fixture
def threads():
    yield lambda number: heddle.configure(threads=number)
    heddle.configure()


def test_the_number_of_processors_changes_no_bit(threads):
    q, k, v = draw(n=700, h=8, d=64)
    results = []
    for number in (1, 5):
        threads(number)
        results.append(heddle.attention(q, k, v, full))
    assert (results[0] == results[1]).all()


def test_the_number_reaches_every_kind_of_call(threads, monkeypatch):
    asked = []
    library = _library.library()
    real = library.call
    monkeypatch.setattr(library, "call", lambda name, *arguments: (asked.append(arguments[3]) if name == "heddle_cpu_run" else None,
                                                                   real(name, *arguments))[1])
    call = heddle.prepare(*draw(), causal)
    for number in (3, 0):
        threads(number)
        heddle.attention(*draw(), causal)
        call()
    assert asked == [3, 3, 0, 0]


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "2"])
def test_a_number_of_processors_that_is_none(wrong):
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.configure(threads=wrong)
    assert str(raised.value) == f"configure: threads: expected a whole number of 0 (all processors) or more, got {wrong!r}"
