"""The runtime alone: kernels of a packed file, found by name, on tensors that speak DLPack, through the recording driver, which runs
them on this machine's processors. HEDDLE_HOST_PACKAGE names the file."""
import ctypes
import os
import shutil
import subprocess
import sys

import heddle
import pytest

np = pytest.importorskip("numpy")
import device_arrays  # noqa: E402
import reference  # noqa: E402

PACKAGE = os.environ.get("HEDDLE_HOST_PACKAGE", "")
pytestmark = [pytest.mark.skipif(not PACKAGE, reason="HEDDLE_HOST_PACKAGE is not set"),
              pytest.mark.skipif(heddle.has_compiler(), reason="names of the packed file are for the runtime alone")]


@pytest.fixture(autouse=True)
def package():
    heddle.configure(database=PACKAGE, immutable=True)


@pytest.fixture
def driver():
    return ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER_LIBRARY"])


def launches(driver):
    return driver.fakeCudaCalls(b"cuLaunchKernel") + driver.fakeCudaCalls(b"cuGraphLaunch")


def draw(n=37, heads=4, kv=2, batch=2, device=0):
    generator = np.random.default_rng(3)
    return [device_arrays.bf16(generator.standard_normal((batch, n, each, 64)), device) for each in (heads, kv, kv)]


def expected(tensors, left=None):
    n = tensors[0].bits.shape[1]
    q, k = reference.positions(n)
    return reference.attention(*map(device_arrays.to_float, tensors), (k <= q) if left is None else (k <= q) & (q - k <= left))


def test_a_kernel_of_a_packed_file_by_name():
    tensors = draw()
    out, lse = heddle.attention(*tensors, "sliding_window", left=5, return_lse=True, stream=0)
    wanted, logs = expected(tensors, 5)
    np.testing.assert_allclose(device_arrays.to_float(out), wanted, atol=2e-2)
    np.testing.assert_allclose(device_arrays.to_float(lse), logs, atol=1e-3)


@pytest.mark.parametrize("n", [0, 1, 64, 200])
def test_lengths(n):
    tensors = draw(n)
    out = heddle.attention(*tensors, "causal")
    np.testing.assert_allclose(device_arrays.to_float(out), expected(tensors)[0], atol=2e-2)


def test_results_of_owners_without_devices(monkeypatch):
    monkeypatch.setattr(device_arrays.DeviceArray, "__array_namespace__", lambda self: device_arrays.SpaceOfGpu0)
    tensors = draw()
    np.testing.assert_allclose(device_arrays.to_float(heddle.attention(*tensors, "causal")), expected(tensors)[0], atol=2e-2)
    monkeypatch.delattr(device_arrays.DeviceArray, "__array_namespace__")
    with pytest.raises(heddle.UnsupportedError) as raised:
        heddle.attention(*tensors, "causal")
    assert str(raised.value) == "out: DeviceArray says no way to make tensors that may be written; give out= and lse="


def test_the_stream_is_named_to_the_owner_of_a_tensor():
    tensors = draw()
    heddle.attention(*tensors, "causal")
    assert tensors[0].streams == [1]  # DLPack's name of the default stream


def test_what_is_known_of_a_kernel():
    found = heddle.kernel(*draw(), "causal")
    assert found.generator == "host" and found.match == "untuned default" and found.arch == "sm_90"
    assert found is heddle.kernel(*draw(50), "causal") and repr(found).startswith("<heddle.Kernel sm_90, untuned default")


def test_prepared_calls_launch_once_each(driver):
    tensors = draw()
    call = heddle.prepare(*tensors, "sliding_window", left=3)
    before, graphs = launches(driver), driver.fakeCudaCalls(b"cuGraphLaunch")
    assert before == launches(driver) and call() is call.out and launches(driver) == before + 1
    assert driver.fakeCudaCalls(b"cuGraphLaunch") == graphs + 1
    np.testing.assert_allclose(device_arrays.to_float(call.out), expected(tensors, 3)[0], atol=2e-2)


def test_prepared_calls_are_graphs_unless_they_shall_not(driver):
    tensors = draw()
    calls = [heddle.prepare(*tensors, "causal")]
    heddle.configure(database=PACKAGE, immutable=True, graphs=False)
    calls.append(heddle.prepare(*tensors, "causal"))
    graphs = driver.fakeCudaLiveGraphs()
    for call, is_graph in zip(calls, (1, 0)):
        before = driver.fakeCudaCalls(b"cuGraphLaunch")
        call()
        assert driver.fakeCudaCalls(b"cuGraphLaunch") == before + is_graph
        call.close()
    assert driver.fakeCudaLiveGraphs() == graphs - 1


def carry_of(tensors, keys):
    """fp32 results of the keys before `keys`, as if on the GPU."""
    q, k, v = map(device_arrays.to_float, tensors)
    rows, columns = reference.positions(q.shape[1], keys)
    carry = []
    for each in reference.attention(q, k[:, :keys], v[:, :keys], columns <= rows):
        bits = device_arrays.aligned(each.shape, np.float32)
        bits[...] = each
        carry.append(device_arrays.DeviceArray(bits, "float32"))
    return carry


def later_keys(tensors, keys):
    return [device_arrays.DeviceArray(each.bits[:, keys:], "bfloat16") for each in tensors[1:]]


def test_a_carry_is_continued():
    tensors = draw()
    carry, later = carry_of(tensors, 16), later_keys(tensors, 16)
    wanted, logs = expected(tensors)
    out, lse = heddle.attention(tensors[0], *later, "causal", k_origin=16, carry=carry, return_lse=True)
    call = heddle.prepare(tensors[0], *later, "causal", k_origin=16, carry=carry)
    for each in (out, call()):
        np.testing.assert_allclose(device_arrays.to_float(each), wanted, atol=2e-2)
    np.testing.assert_allclose(device_arrays.to_float(lse), logs, atol=1e-3)


def test_a_carry_that_does_not_fit_is_named(driver):
    tensors = draw()
    (out, lse), before = carry_of(tensors, 16), launches(driver)
    elsewhere = device_arrays.DeviceArray(out.bits, "float32", 1)
    for carry, message in (((draw()[0], lse), "carry: out: expected row-major fp32 of [2, 37, 4, 64] (batch, seqlen_q, heads, value_dim); "
                                              "have the earlier call write it into an out= of fp32, got bf16 of [2, 37, 4, 64]"),
                           ((elsewhere, lse), "carry: out: expected a tensor in GPU 0 as q, got one in GPU 1"),
                           ((out, lse.bits), "carry: lse: expected a tensor in GPU 0 as q, got one in host memory")):
        with pytest.raises(heddle.InvalidArgumentError) as raised:
            heddle.attention(*tensors, "causal", carry=carry)
        assert message in str(raised.value)
    assert launches(driver) == before


def test_named_patterns_need_no_text():
    tensors = draw()
    near = heddle.named("sliding_window", "%left: i32")
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(*tensors, near)
    assert str(raised.value) == "pattern sliding_window: left: expected a value, it has no default"
    out = heddle.attention(*tensors, near(left=5))
    np.testing.assert_allclose(device_arrays.to_float(out), expected(tensors, 5)[0], atol=2e-2)


def strided(tensor, step):
    """The same shape in memory with every stride but the last `step` elements longer."""
    wide = device_arrays.aligned((*tensor.bits.shape[:3], 64 + step), np.uint16)
    wide[..., :64] = tensor.bits
    return device_arrays.DeviceArray(wide[..., :64], "bfloat16")


def test_views_with_strides_are_read_where_they_are():
    q, k, v = draw()
    out = heddle.attention(strided(q, 8), k, v, "causal")
    np.testing.assert_allclose(device_arrays.to_float(out), expected((q, k, v))[0], atol=2e-2)


def bad(change):
    tensors = draw()
    change(tensors)
    return tensors


def replace(index, make):
    def change(tensors):
        tensors[index] = make(tensors[index])
    return change


def moved(tensor, elements):
    """At an address that is no multiple of 16 bytes."""
    raw = device_arrays.aligned((tensor.bits.size + 64,), np.uint16)[elements:elements + tensor.bits.size]
    return device_arrays.DeviceArray(raw.reshape(tensor.bits.shape), "bfloat16")


@pytest.mark.parametrize("change, kind, message", [
    (replace(0, lambda t: device_arrays.DeviceArray(t.bits[0], t.dtype)), heddle.InvalidArgumentError,
     "attention arguments: q: expected 4 dimensions (batch, row, head, dim), got 3"),
    (replace(1, lambda t: device_arrays.DeviceArray(t.bits[:1], t.dtype)), heddle.InvalidArgumentError,
     "attention arguments: k: size of batch: expected 2, got 1"),
    (replace(2, lambda t: device_arrays.DeviceArray(t.bits[:, :9], t.dtype)), heddle.InvalidArgumentError,
     "attention arguments: v: size of row: expected 37, got 9"),
    (replace(0, lambda t: device_arrays.DeviceArray(t.bits[:, :, :3], t.dtype)), heddle.InvalidArgumentError,
     "attention arguments: k: size of head: expected a divisor of the 3 query heads, got 2"),
    (replace(1, lambda t: device_arrays.DeviceArray(t.bits.astype(np.float16), "float16")), heddle.InvalidArgumentError,
     "attention arguments: k: dtype: expected bf16 as q, got fp16"),
    (replace(1, lambda t: device_arrays.DeviceArray(t.bits, t.dtype, 1)), heddle.InvalidArgumentError,
     "attention arguments: k: expected a tensor in GPU 0 as q, got one in GPU 1"),
    (replace(2, lambda t: device_arrays.to_float(t)), heddle.InvalidArgumentError, "attention arguments: v: dtype: expected bf16 as q, got fp32"),
    (replace(0, lambda t: device_arrays.DeviceArray(t.bits.astype(np.int32), "int32")), heddle.InvalidArgumentError,
     "attention arguments: q: dtype: expected bf16, fp16, fp32 or e4m3, got i32"),
    (replace(0, lambda t: strided(t, 3)), heddle.InvalidArgumentError,
     "attention arguments: q: stride of batch: expected a multiple of 16 bytes, got 19832 bytes (9916 elements)"),
    (replace(0, lambda t: moved(t, 3)), heddle.InvalidArgumentError,
     "attention arguments: q: address: expected device memory at a multiple of 16 bytes, got remainder 6"),
    (replace(1, lambda t: object()), heddle.InvalidArgumentError, "k: expected a tensor (PyTorch, numpy, or anything with DLPack), got object"),
])
def test_bad_tensors_are_named_and_nothing_is_launched(driver, change, kind, message):
    before = launches(driver)
    with pytest.raises(kind) as raised:
        heddle.attention(*bad(change), "causal")
    assert message in str(raised.value) and launches(driver) == before


def test_the_last_dimension_must_be_contiguous(driver):
    q, k, v = draw()
    wide = device_arrays.aligned((*q.bits.shape[:3], 128), np.uint16)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(device_arrays.DeviceArray(wide[..., ::2], "bfloat16"), k, v, "causal")
    assert "q: stride of dim: expected 1, got 2; make the tensor contiguous in dim" in str(raised.value)


@pytest.mark.parametrize("given, kind, message", [
    (dict(pattern="sliding_window", left=-1), heddle.InvalidArgumentError, "pattern sliding_window: left: expected 0 to 2147483647, got -1"),
    (dict(pattern="sliding_window", right=1), heddle.InvalidArgumentError, "pattern sliding_window: it has no argument 'right'; it has left"),
    (dict(pattern="causal", q_origin=3), heddle.InvalidArgumentError, "q_origin: pattern causal takes none"),
    (dict(pattern="causal", scale=-1.0), heddle.InvalidArgumentError, "scale: expected a finite number above 0"),
    (dict(pattern="causal", scale="1"), heddle.InvalidArgumentError, "scale: expected a finite number above 0"),
    (dict(pattern="full"), heddle.NotFoundError, "full"),
    (dict(pattern="nothing"), heddle.NotFoundError, "library: there is no pattern 'nothing'"),
    (dict(pattern=3), heddle.InvalidArgumentError, "expected a mask, union(...), lse(...) or MLIR text, got 3"),
    (dict(pattern="causal", stream=12345), heddle.Error, "launch"),
])
def test_bad_values(driver, given, kind, message):
    before = launches(driver)
    with pytest.raises(kind) as raised:
        heddle.attention(*draw(), **given)
    assert message in str(raised.value)
    assert launches(driver) == before or "stream" in given


def test_results_of_the_caller_are_checked():
    q, k, v = draw()
    right = device_arrays.Space.empty((2, 37, 4, 64), "bfloat16", 0)
    assert heddle.attention(q, k, v, "causal", out=right) is right
    for out, message in ((device_arrays.Space.empty((2, 37, 4, 32), "bfloat16", 0), "out: size of dim: expected 64, got 32"),
                         (device_arrays.Space.empty((2, 37, 4, 64), "float16", 0), "out: dtype: expected bf16 or fp32, got fp16"),
                         (device_arrays.Space.empty((2, 37, 4, 64), "bfloat16", 1), "out: expected a tensor in GPU 0 as q, got one in GPU 1")):
        with pytest.raises(heddle.InvalidArgumentError) as raised:
            heddle.attention(q, k, v, "causal", out=out)
        assert message in str(raised.value)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(q, k, v, "causal", lse=device_arrays.Space.empty((2, 37, 4), "float32", 0))
    assert "lse: expected row-major fp32 of [2, 4, 37] (batch, heads, seqlen_q), got fp32 of [2, 37, 4]" in str(raised.value)


def test_other_head_dims_and_gpus_are_not_found():
    wide = [device_arrays.bf16(np.zeros((1, 8, 2, 128))) for _ in range(3)]
    with pytest.raises(heddle.NotFoundError) as raised:
        heddle.attention(*wide, "causal")
    assert "128" in str(raised.value)


def test_what_needs_the_compiler_says_so():
    for call in (lambda: heddle.library("causal").digest, lambda: heddle.tune("causal", *draw()),
                 lambda: heddle.attention(*[np.zeros((1, 4, 1, 8), np.float32)] * 3, "causal")):
        with pytest.raises(heddle.UnavailableError) as raised:
            call()
        assert "needs the compiler, and libheddle_runtime.so" in str(raised.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(heddle.NotFoundError):
        heddle.configure(database=tmp_path / "none.heddle")
        heddle.attention(*draw(), "causal")
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(heddle.CorruptError):
        heddle.configure(database=tmp_path / "text")
        heddle.attention(*draw(), "causal")


def test_a_file_that_is_taken_away_while_it_is_open(tmp_path):
    copy = tmp_path / "copy.heddle"
    shutil.copy(PACKAGE, copy)
    heddle.configure(database=copy, immutable=True)
    tensors = draw()
    heddle.attention(*tensors, "causal")
    copy.write_bytes(b"")
    copy.unlink()
    for n in (37, 90):
        tensors = draw(n)
        np.testing.assert_allclose(device_arrays.to_float(heddle.attention(*tensors, "causal")), expected(tensors)[0], atol=2e-2)


def test_kernels_of_another_gpu_are_not_found(root):
    code = ("import sys, heddle, numpy; sys.path.insert(0, 'tests/python'); import device_arrays as d\n"
            "heddle.configure(database=sys.argv[1], immutable=True)\n"
            "try: heddle.attention(*[d.bf16(numpy.zeros((1, 4, 1, 64)))] * 3, 'causal')\n"
            "except heddle.NotFoundError as error: print(error)")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), HEDDLE_FAKE_CUDA_ARCH="80")
    done = subprocess.run([sys.executable, "-c", code, PACKAGE], cwd=root, env=environment, capture_output=True, text=True)
    assert "sm_80" in done.stdout, done.stderr


@pytest.mark.parametrize("path, message", [("/nowhere/libheddle.so", "/nowhere/libheddle.so: no such file"), ("libheddle_none.so.9", "libheddle_none.so.9: cannot open")])
def test_a_library_that_is_not_there(path, message):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), HEDDLE_LIBRARY=path)
    done = subprocess.run([sys.executable, "-c", "import heddle; heddle.version()"], env=environment, capture_output=True, text=True)
    assert f"heddle.errors.UnavailableError: no heddle library: {message}" in done.stderr and "set HEDDLE_LIBRARY to the file" in done.stderr


def test_settings():
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.configure(first="later")
    assert "first: expected 'soon', 'best' or 'stored', got 'later'" in str(raised.value)
    heddle.configure()
    saved = {name: os.environ.pop(name) for name in ("HEDDLE_DB", "HEDDLE_SHIPPED_DB") if name in os.environ}
    try:
        with pytest.raises(heddle.UnavailableError) as raised:
            heddle.attention(*draw(), "causal")
        assert "there is no database: heddle.configure(database=FILE), or set HEDDLE_DB" in str(raised.value)
        os.environ["HEDDLE_DB"] = PACKAGE
        heddle.configure(immutable=True)
        assert heddle.kernel(*draw(), "causal").generator == "host"
    finally:
        os.environ.pop("HEDDLE_DB", None)
        os.environ.update(saved)
