"""Sequences of which a call has a part, in host memory: heddle.serve on numpy arrays, merged here, and heddle.distributed over ranks that are threads or
processes; and what a kernel of parts is asked for, through the recording driver."""
import ctypes
import itertools
import os
import subprocess
import sys
import threading

import heddle
import pytest
from heddle import _generic, _pages, serve
from heddle.words import causal, cols, dilate, lse, rows, window

np = pytest.importorskip("numpy")
import device_arrays  # noqa: E402

pytestmark = pytest.mark.compiler

KEYS, PAGE, HEADS, KV_HEADS, DIM = (150, 33, 1, 0, 64), 4, 4, 2, 32
CU = np.array([0, 3, 4, 5, 6, 15], np.int32)  # sequence 3 has a query and no key
PATTERNS = {"causal": "causal", "window and first keys": causal & (window(left=40) | cols(4)), "dilated": lse(dilate(causal, by=3, at=0), window(left=9)),
            "rows from the end": causal | rows(0, 2), "alibi": "alibi"}
ORDERS = {1: (0,), 2: (1, 0), 3: (2, 0, 1), 4: (0, 1, 2, 3)}  # which part of a sequence is whose


class Ranks:
    """Caches of ranks, each with a part of every sequence, maybe none; and one that has all."""

    def __init__(self, ranks, page=PAGE, seed=3):
        random = np.random.default_rng(seed)
        self.q = random.standard_normal((1, CU[-1], HEADS, DIM)).astype(np.float32)
        self.wholes = np.array(KEYS, np.int32)
        needed = [-(-keys // page) for keys in KEYS]
        self.k, self.v = (random.standard_normal((sum(needed), page, KV_HEADS, DIM)).astype(np.float32) for _ in range(2))
        pages = random.permutation(len(self.k)).astype(np.int32)
        own = [pages[end - count:end] for count, end in zip(needed, itertools.accumulate(needed))]
        self.table = np.stack([np.pad(each, (0, max(needed) - len(each)), constant_values=-1) for each in own])
        self.parts = []
        cuts = [[0, *np.sort(random.integers(0, keys // page + 1, ranks - 1)) * page, keys] for keys in KEYS]
        for number in ORDERS[ranks]:
            firsts = np.array([each[number] for each in cuts], np.int32)
            lengths = np.array([each[number + 1] for each in cuts], np.int32) - firsts
            table = np.stack([np.pad(row[first // page:], (0, first // page), constant_values=-1) for row, first in zip(self.table, firsts)])
            self.parts.append((table, lengths, firsts))

    def whole(self, pattern, **options):
        return serve.paged_attention(self.q, self.k, self.v, self.table, self.wholes, pattern, cu_seqlens_q=CU, return_lse=True, **options)

    def part(self, number, pattern, **options):
        table, lengths, firsts = self.parts[number]
        return serve.paged_attention(self.q, self.k, self.v, table, lengths, pattern, cu_seqlens_q=CU, k_origins=firsts, whole_k=self.wholes, return_lse=True,
                                     **options)


def merged(parts):
    outs, lses = (np.stack(each).astype(np.float64) for each in zip(*parts))
    most = lses.max(0)
    share = np.exp(lses - np.where(np.isneginf(most), 0, most))
    weights = share.sum(0)
    with np.errstate(divide="ignore"):
        logs = np.where(weights > 0, most + np.log(weights), -np.inf)
    return (outs * share.transpose(0, 1, 3, 2)[..., None]).sum(0) / np.where(weights > 0, weights, 1).transpose(0, 2, 1)[..., None], logs


@pytest.fixture(params=itertools.product(ORDERS, PATTERNS), ids=lambda each: f"{each[0]}-{each[1]}")
def whole(request):
    """Ranks, a pattern, and what one call of it gives."""
    ranks, name = request.param
    case, pattern = Ranks(ranks), PATTERNS[name]
    pattern = pattern if isinstance(pattern, str) else heddle.pattern(pattern)
    return case, pattern, *case.whole(pattern)


def test_parts_are_one_call(whole):
    case, pattern, out, logs = whole
    found, of_parts = merged([case.part(number, pattern) for number in range(len(case.parts))])
    np.testing.assert_allclose(found, out, atol=2e-6, rtol=1e-5)
    np.testing.assert_allclose(of_parts, logs, atol=4e-6, rtol=1e-5)
    assert not out[:, 5].any() and np.isneginf(logs[:, :, 5]).all()


def test_parts_in_rows_and_in_tables_behind_each_other():
    case = Ranks(2)
    table, lengths, firsts = case.parts[0]
    expected = case.part(0, "causal")
    pages = [row[:-(-length // PAGE)] for row, length in zip(table, lengths)]
    options = dict(cu_seqlens_q=CU, k_origins=firsts, whole_k=case.wholes, return_lse=True)
    indptr = np.concatenate([[0], np.cumsum([len(each) for each in pages])]).astype(np.int32)
    last = np.array([length - (len(each) - 1) * PAGE if len(each) else 0 for each, length in zip(pages, lengths)], np.int32)
    found = serve.indexed_attention(case.q, case.k, case.v, indptr, np.concatenate(pages), last, "causal", **options)
    k, v = (np.concatenate([cache[each].reshape(-1, KV_HEADS, DIM)[:length] for each, length in zip(pages, lengths)])[None] for cache in (case.k, case.v))
    cu = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    for each in (found, serve.ragged_attention(case.q, k, v, cu, "causal", **options)):
        assert np.array_equal(each[0], expected[0]) and np.array_equal(each[1], expected[1])


def test_one_part_is_the_whole_bit_by_bit_and_either_number_may_be_left_out():
    case = Ranks(1)
    out, logs = case.whole("longformer", half=20, globals=2)
    for options in (dict(k_origins=np.zeros(5, np.int32)), dict(whole_k=case.wholes)):
        found, of_part = case.whole("longformer", half=20, globals=2, **options)
        assert np.array_equal(found, out) and np.array_equal(of_part, logs)


def test_what_is_wrong_is_named():
    case = Ranks(1)
    zeros = np.zeros(5, np.int32)

    def refused(match, error=heddle.InvalidArgumentError, pattern="causal", **options):
        with pytest.raises(error, match=match):
            case.whole(pattern, **options)
    refused("k_origins: sequence 0: expected 0 to 1073741674 before 150 keys, as positions lie below 2\\^30, got -1", k_origins=zeros - 1)
    refused("k_origins: sequence 0: expected 0 to 1073741674 before 150 keys, .*, got 1073741824", k_origins=zeros + 2**30)
    refused("whole_k: sequence 1: expected 33, where its part ends, to 2\\^30, got 32", whole_k=np.array([150, 32, 1, 0, 64], np.int32))
    refused(r"k_origins: expected row-major i32 of \[5\] \(sequences\), got i64", k_origins=zeros.astype(np.int64))
    refused(r"whole_k: expected row-major i32 of \[5\] \(sequences\), got i32 of \[4\]", whole_k=zeros[:4])
    refused("shared_k: expected None beside k_origins and whole_k", k_origins=zeros, shared_k=zeros)
    refused(r"pattern causal: whole_keys: each sequence says it \(whole_k\)", whole_k=case.wholes, whole_keys=150)
    refused("draft tokens", error=heddle.UnsupportedError, pattern="tree_decode", whole_k=case.wholes, ancestors=np.zeros(4, np.int64))


@pytest.mark.skipif("HEDDLE_CUDA_DRIVER_LIBRARY" not in os.environ, reason="HEDDLE_CUDA_DRIVER_LIBRARY is not set")
def test_kernels_of_parts_are_found_and_take_such_calls(tmp_path):
    driver = ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER_LIBRARY"])
    driver.fakeCudaSetArch(80)
    heddle.configure(database=tmp_path / "kernels.db", first="best")
    case = Ranks(2)
    q, k, v = (device_arrays.bf16(each) for each in (case.q, case.k, case.v))
    table, lengths, firsts, wholes, cu = (device_arrays.DeviceArray(device_arrays.aligned(each.shape, np.int32), "int32")
                                          for each in (*case.parts[0], case.wholes, CU))
    out = device_arrays.Space.empty(case.q.shape, "float32", 0)

    def kernel(**options):
        """That a call would launch, whose arguments it takes."""
        spec = _pages.PagesSpec(q, k, v, table, lengths, "causal", cu, **options).settled()
        return _generic.Bound(spec).kernel.content_key
    try:
        keys = [kernel(), kernel(out=out), kernel(out=out, k_origins=firsts, whole_k=wholes), kernel(whole_k=wholes)]
        assert len(set(keys)) == 4 and kernel(out=out, k_origins=firsts) == keys[2]
        with pytest.raises(heddle.InvalidArgumentError, match="tables: expected 0 beside k_origins, got 2"):
            table, lengths = (device_arrays.DeviceArray(device_arrays.aligned((2, *each.bits.shape), np.int32), "int32") for each in (table, lengths))
            kernel(k_origins=firsts)
    except heddle.UnavailableError as error:
        pytest.skip(str(error))
    finally:
        heddle.configure()


def over_ranks(case, pattern, **options):
    """What every rank gets."""
    torch = pytest.importorskip("torch")
    from heddle import distributed
    groups, results = distributed.Group.local(len(case.parts), 20), [None] * len(case.parts)
    q, k, v = (torch.from_numpy(each) for each in (case.q, case.k, case.v))
    cu = torch.from_numpy(CU)

    def run(rank):
        table, lengths, firsts = (torch.from_numpy(np.ascontiguousarray(each)) for each in case.parts[rank])
        own = dict(k_origins=firsts, whole_k=torch.from_numpy(case.wholes), cu_seqlens_q=cu, return_lse=True)
        own.update((name, value[rank] if isinstance(value, list) else value) for name, value in options.items())
        try:
            results[rank] = distributed.paged_attention(q, k, v, table, lengths, pattern, groups[rank], **own)
        except heddle.Error as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(case.parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_ranks_compute_one_call_with_the_same_bits(whole):
    case, pattern, out, logs = whole
    results = over_ranks(case, pattern)
    for found, of_parts in results:
        np.testing.assert_allclose(found.numpy(), out, atol=2e-6, rtol=1e-5)
        np.testing.assert_allclose(of_parts.numpy(), logs, atol=4e-6, rtol=1e-5)
        assert np.array_equal(found.numpy(), results[0][0].numpy()) and np.array_equal(of_parts.numpy(), results[0][1].numpy())


def test_parts_that_are_no_whole_and_ranks_that_disagree():
    torch = pytest.importorskip("torch")
    case = Ranks(2)
    firsts, lengths = (np.stack([part[number] for part in case.parts]) for number in (2, 1))
    overlapping = [torch.from_numpy(np.where(np.arange(5) == 0, np.minimum(first, 8), first).astype(np.int32)) for first in firsts]
    assert all(length[0] > 8 for length in lengths)
    for error in over_ranks(case, "causal", k_origins=overlapping):
        assert isinstance(error, heddle.InvalidArgumentError) and "k_origins: sequence 0: expected each of its 150 keys in the part of one rank" in str(error)
    longer = [torch.from_numpy(case.wholes + extra) for extra in (0, 1)]
    for error in over_ranks(case, "causal", whole_k=longer):
        assert isinstance(error, heddle.InvalidArgumentError) and "whole_k: sequence 0: expected one number on all ranks, got [150, 151]" in str(error)
    for error in over_ranks(case, "causal", scale=[0.5, 0.25]):
        assert isinstance(error, heddle.InvalidArgumentError) and "come with something else" in str(error)
    others = CU.copy()
    others[1:-1] += 1
    for error in over_ranks(case, "causal", cu_seqlens_q=[torch.from_numpy(each) for each in (CU, others)]):
        assert isinstance(error, heddle.InvalidArgumentError) and "cu_seqlens_q: sequence 0: expected as many queries on all ranks, got " in str(error)
    for name, value in dict(k_origins=None, whole_k=torch.zeros(3, 2, dtype=torch.int32), cu_seqlens_q=torch.zeros(4, dtype=torch.int32)).items():
        for error in over_ranks(case, "causal", **{name: value}):
            assert isinstance(error, heddle.InvalidArgumentError) and f"paged_attention: {name}: expected torch.int32 [" in str(error)
    for error in over_ranks(case, "sink"):
        assert isinstance(error, heddle.UnsupportedError) and "sink" in str(error)


def test_parts_in_graphs_of_torch_compile_and_results_in_fp32():
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    case = Ranks(2)
    table, lengths, firsts = (torch.from_numpy(np.ascontiguousarray(each)) for each in case.parts[0])
    q, k, v, wholes, cu = (torch.from_numpy(each) for each in (case.q, case.k, case.v, case.wholes, CU))

    def call(firsts, wholes):
        return serve.paged_attention(q, k, v, table, lengths, "causal", cu_seqlens_q=cu, k_origins=firsts, whole_k=wholes, return_lse=True)
    compiled = torch.compile(call, backend="eager", fullgraph=True)
    for longer in (wholes, wholes + 7):
        for found, expected in zip(compiled(firsts, longer), call(firsts, longer)):
            assert torch.equal(found, expected)
    low = [each.bfloat16() for each in (q, k, v)]
    options = dict(cu_seqlens_q=cu, k_origins=firsts, whole_k=wholes)
    out = serve.paged_attention(*low, table, lengths, "causal", out=torch.full_like(q, torch.nan), **options)
    rounded = serve.paged_attention(*low, table, lengths, "causal", **options)
    assert rounded.dtype == torch.bfloat16 and torch.equal(out.bfloat16(), rounded) and not torch.equal(out, rounded.float())


def test_ranks_that_are_processes(root, tmp_path):
    """Over gloo."""
    pytest.importorskip("torch")
    places = [os.path.join(root, "runtime", "Python"), os.environ.get("PYTHONPATH", "")]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(places), WORLD_SIZE="2", HEDDLE_MEET=f"file://{tmp_path}/meet", CUDA_VISIBLE_DEVICES="")
    program = os.path.join(root, "tests", "python", "device", "test_cache_parts.py")
    both = [subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True, env=dict(environment, RANK=str(rank), LOCAL_RANK=str(rank)))
            for rank in range(2)]
    said = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert said[0].count("ok, over 2 ranks") == 4 and not said[1]
