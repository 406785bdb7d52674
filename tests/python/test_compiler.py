"""Kernels of the compiler for tensors on a GPU, through the recording driver, which takes launches and runs nothing."""
import ast
import ctypes
import os
import subprocess
import sys
import threading
import warnings

import heddle
import pytest
from heddle import _call, _engine
from heddle.words import causal, documents, tensor, window

np = pytest.importorskip("numpy")
import device_arrays  # noqa: E402

pytestmark = [pytest.mark.compiler,
              pytest.mark.skipif("HEDDLE_CUDA_DRIVER_LIBRARY" not in os.environ, reason="HEDDLE_CUDA_DRIVER_LIBRARY is not set")]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return tmp_path_factory.mktemp("db") / "kernels.db"


@pytest.fixture(autouse=True)
def compiler(database, driver):
    """For a GPU whose kernels are the portable ones: the driver takes blocks of at most 384 threads."""
    driver.fakeCudaSetArch(80)
    heddle.configure(database=database, first="best")
    try:
        heddle.kernel(*draw(), "causal")
    except heddle.UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def driver():
    return ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER_LIBRARY"])


def draw(n=37, heads=4, kv=2, batch=2, d=64):
    return [device_arrays.bf16(np.zeros((batch, n, each, d))) for each in (heads, kv, kv)]


def test_one_kernel_serves_all_lengths_and_values(driver):
    loads = None
    for n in (257, 500, 4096): # calls of fewer queries have a default of their own
        for left in (0, 3, 1023):
            heddle.attention(*draw(n), "sliding_window", left=left)
            loads = loads or driver.fakeCudaCalls(b"cuModuleLoadDataEx")
    assert driver.fakeCudaCalls(b"cuModuleLoadDataEx") == loads
    assert heddle.kernel(*draw(600), window(left=7)).content_key == heddle.kernel(*draw(900), "sliding_window").content_key


def test_calls_launch_and_questions_are_kept(driver):
    tensors, launches = draw(), driver.fakeCudaCalls(b"cuLaunchKernel")
    for _ in range(3):
        heddle.attention(*tensors, "causal")
    assert driver.fakeCudaCalls(b"cuLaunchKernel") == launches + 3
    assert len(_engine.engine()._found) == 1
    assert {found.kernel.content_key for found in _engine.engine()._found.values()} == {heddle.kernel(*tensors, "causal").content_key}


def test_tensors_of_a_pattern_go_with_the_call():
    packed = heddle.pattern(documents(causal, tensor("cu", "?xi32")))
    bits = device_arrays.aligned((3,), np.int32)
    bits[:] = 0, 9, 37
    heddle.attention(*draw(batch=1), packed, cu=device_arrays.DeviceArray(bits, "int32"))
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(*draw(batch=1), packed, cu=bits)
    assert "pattern pattern: cu: expected a tensor in GPU 0 as q, got one in host memory" in str(raised.value)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(*draw(batch=1), packed)
    assert "pattern pattern: cu: expected a tensor (memref<?xi32>), none is given" in str(raised.value)


def test_fp32_results_have_a_kernel_of_their_own():
    tensors = draw()
    heddle.attention(*tensors, "causal", out=device_arrays.Space.empty((2, 37, 4, 64), "float32", 0))
    heddle.attention(*tensors, "causal")
    assert len({found.kernel.content_key for found in _engine.engine()._found.values()}) == 2


def test_fp32_has_kernels_by_the_precision_of_products():
    tensors = [device_arrays.Space.empty((2, 37, 4, 64), "float32", 0) for _ in range(3)]
    heddle.attention(*tensors, "causal")
    heddle.attention(*tensors, "causal", precision="tf32")
    kernels = [heddle.kernel(*tensors, "causal", backward=backward, precision=precision)
               for backward in (False, True) for precision in ("exact", "tf32")]
    assert len({each.content_key for each in kernels}) == 4
    assert kernels[0].content_key == heddle.kernel(*tensors, "causal").content_key
    for number, precision in enumerate(("exact", "tf32")):
        call = heddle.prepare(*tensors, "causal", precision=precision)
        assert call.kernel.content_key == kernels[number].content_key
        call.close()


@pytest.mark.parametrize("precision, message", [
    ("tf32", "precision: 'tf32' is for fp32; q is bf16"),
    ("fast", "precision: 'fast' is for e4m3; q is bf16"),
    ("fp32", "precision: expected 'exact', 'tf32' or 'fast', got 'fp32'"),
    (True, "precision: expected 'exact', 'tf32' or 'fast', got True")])
def test_precisions_that_there_are_not(precision, message):
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(*draw(), "causal", precision=precision)
    assert message in str(raised.value)


class Launch(ctypes.Structure):
    """Of tests/unit/fake_cuda/FakeCuda.h."""
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared_bytes", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("context", ctypes.c_void_p), ("entry", ctypes.c_char_p), ("function", ctypes.c_void_p), ("clears_before", ctypes.c_int),
                ("param_bytes", ctypes.c_size_t), ("unaligned", ctypes.c_ubyte * 8192)]


def pointers_of_last_launch(driver):
    """q, k, v, out, lse, carry_out, carry_lse: a parameter block begins with them (docs/architecture.md). What lies behind the block is recorded
    too, so nothing may be searched in there."""
    driver.fakeCudaLastLaunch.restype = ctypes.POINTER(Launch)
    launch = ctypes.addressof(driver.fakeCudaLastLaunch().contents)
    return list((ctypes.c_uint64 * 7).from_address(launch + -(-Launch.unaligned.offset // 64) * 64))


def addresses_of(arrays):
    return [each.bits.ctypes.data for each in arrays]


def test_a_carry_goes_with_the_call(driver):
    tensors = draw()
    carry = heddle.attention(*tensors, "causal", out=device_arrays.Space.empty((2, 37, 4, 64), "float32", 0), return_lse=True)
    assert pointers_of_last_launch(driver) == [*addresses_of(tensors), *addresses_of(carry), 0, 0]
    results = heddle.attention(*tensors, "causal", k_origin=37, carry=carry, return_lse=True)
    assert pointers_of_last_launch(driver) == [*addresses_of(tensors), *addresses_of(results), *addresses_of(carry)]
    call = heddle.prepare(*tensors, "causal", k_origin=37, carry=carry)
    call()
    assert pointers_of_last_launch(driver) == [*addresses_of(tensors), *addresses_of((call.out, call.lse)), *addresses_of(carry)]
    results = heddle.attention(*tensors, "causal", return_lse=True)
    assert pointers_of_last_launch(driver) == [*addresses_of(tensors), *addresses_of(results), 0, 0]


def test_keys_begin_anywhere_in_a_block():
    q, k, v = draw()
    for pattern in ("block_window", "random_blocks"):
        for origin in (0, 64, 70, -3, 65):  # 64 and 70 have their highest bits in common
            heddle.attention(q, k, v, pattern, k_origin=origin)


def test_nothing_serves_other_head_dims():
    with pytest.raises(heddle.Error) as raised:
        heddle.attention(*draw(d=12), "causal")
    assert "12" in str(raised.value)


def test_stored_kernels_only(tmp_path):
    heddle.configure(database=tmp_path / "empty.db", first="stored")
    with pytest.raises(heddle.NotFoundError):
        heddle.attention(*draw(), "causal")


SOON = """
import heddle, sys, time
sys.path.insert(0, "tests/python")
import device_arrays, numpy
tensors = [device_arrays.bf16(numpy.zeros((1, 8, 1, 64)))] * 3
heddle.configure(database=sys.argv[1], first="soon")
first = heddle.kernel(*tensors, "causal")
end = time.monotonic() + 600
while heddle.kernel(*tensors, "causal").content_key == first.content_key and time.monotonic() < end:
    time.sleep(0.05)
print(first.config.splitlines()[0], heddle.kernel(*tensors, "causal").config.splitlines()[0])
"""


def test_the_portable_default_serves_until_a_better_one_is_there(root, tmp_path):
    environment = dict(os.environ, PYTHONPATH=os.path.join(root, "runtime", "Python"), HEDDLE_FAKE_CUDA_ARCH="90")
    done = subprocess.run([sys.executable, "-c", SOON, tmp_path / "soon.db"], env=environment, cwd=root, capture_output=True, text=True)
    assert done.stdout == "skeleton=portable_forward skeleton=sm90_forward\n", done.stderr


def test_a_better_kernel_is_used_when_calls_ask_again(monkeypatch):
    tensors = draw()
    found = _engine.engine().find(_question(tensors))
    before = found.kernel
    monkeypatch.setattr(_engine.engine(), "ask", lambda question: "another")
    found.refresh()
    assert found.kernel == "another" and before is not found.kernel

    def broken(question):
        raise heddle.IoError("the disk is gone")

    monkeypatch.setattr(_engine.engine(), "ask", broken)
    found.refresh()
    assert found.kernel == "another"
    _engine.engine()._found.clear()


def test_no_call_is_answered_for_another_one(monkeypatch):
    """Whoever asks first."""
    engine = _engine.engine()
    monkeypatch.setattr(engine, "_found", {})
    monkeypatch.setattr(engine, "ask", lambda question: (question.sizes, question.values))
    for n in (79, 64, 65, 128, 127, 300, 256, 257, 79):
        for left in (1000, 1023):
            question = _question(draw(n, 1, 1, 1), "sliding_window", left=left)
            assert engine.find(question).kernel == (question.sizes, question.values) and question.sizes["seqlen_q"] == n and question.values["left"] == left


FIRST = """
import heddle, sys
sys.path.insert(0, "tests/python")
import device_arrays, numpy
from heddle import _call, _direct, _engine
heddle.configure(read_only=True, first="best")

made = {"bf16": lambda n: device_arrays.bf16(numpy.zeros((1, n, 1, 128))),
        "e4m3": lambda n: device_arrays.Space.empty((1, n, 1, 128), "float8_e4m3fn", 0)}[sys.argv[1]]

def find(n):
    spec = _call.CallSpec(*[made(n)] * 3, heddle.library("causal"))
    return _engine.engine().find(_direct.call_of(spec).question()).kernel.content_key

found = []
few, many = map(int, sys.argv[2:])
for order in ((many, few), (few, many)):
    _engine.engine()._found.clear()
    found.append({n: find(n) for n in order})
print([*found, {n: "turn_values=1" in heddle.kernel(*[made(n)] * 3, "causal").config for n in (few, many)}])
"""


@pytest.mark.parametrize("dtype, few, many, turned", [("bf16", 64, 79, False), ("e4m3", 2048, 8192, True)])
def test_who_asks_first_does_not_choose_the_default_of_others(root, tmp_path, dtype, few, many, turned):
    """Defaults change at 64 queries, of which 79 has the three highest bits; at 8192 of e4m3 whose values are turned over once."""
    environment = dict(os.environ, PYTHONPATH=os.path.join(root, "runtime", "Python"), HEDDLE_FAKE_CUDA_ARCH="90", HEDDLE_DB=str(tmp_path / "none.db"))
    done = subprocess.run([sys.executable, "-c", FIRST, dtype, str(few), str(many)], env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, others, are_turned = ast.literal_eval(done.stdout)
    assert found == others and found[few] != found[many]
    assert are_turned == {few: False, many: turned}


WITHOUT_LSE = """
import contextlib, heddle, sys
sys.path.insert(0, "tests/python")
import device_arrays, numpy
from heddle import _engine
heddle.configure(read_only=True, first="best")
out = device_arrays.bf16(numpy.zeros((1, 70, 2, 64)))
empty = lambda dtype, *shape: device_arrays.Space.empty(shape, dtype, 0)
low = [empty("float8_e4m3fn", 1, 70, 2, 64) for _ in range(3)]
fast, exact = (heddle.kernel(*low, "causal", precision=precision).content_key for precision in ("fast", "exact"))
assert fast != exact and heddle.kernel(*low, "causal").content_key == fast
logs = [empty("float32", 1, 2, 70) for _ in range(2)]
carry = empty("float32", 1, 70, 2, 64), logs[1]
for options, wanted, gives in (({}, fast, False), ({"precision": "fast"}, fast, True), ({"precision": "exact"}, exact, True), ({"lse": logs[0]}, exact, True),
                               ({"carry": carry}, exact, True)):
    prepared = heddle.prepare(*low, "causal", out=out, **options)
    assert prepared.kernel.content_key == wanted and (prepared.lse is not None) == gives, options
    prepared.close()
for options, wanted in (({}, fast), ({"return_lse": True}, exact), ({"lse": logs[0]}, exact), ({"carry": carry}, exact)):
    _engine.engine()._found.clear()
    with contextlib.suppress(heddle.InternalError):  # of the launch: the stand-in has no memory to clear
        heddle.attention(*low, "causal", out=out, **options)
    assert [found.kernel.content_key for found in _engine.engine()._found.values()] == [wanted], options
"""


def test_weights_of_e4m3_are_fast_where_nobody_asks_for_lse(root, tmp_path):
    environment = dict(os.environ, PYTHONPATH=os.path.join(root, "runtime", "Python"), HEDDLE_FAKE_CUDA_ARCH="90", HEDDLE_DB=str(tmp_path / "none.db"))
    done = subprocess.run([sys.executable, "-c", WITHOUT_LSE], env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_calls_take_a_better_kernel_when_it_is_due(monkeypatch):
    tensors = draw()
    heddle.attention(*tensors, "causal")
    found = _engine.engine().find(_question(tensors))
    better, asked = found.kernel, []
    monkeypatch.setattr(_engine.engine(), "ask", lambda question: asked.append(question) or better)
    found.next_check = float("inf")  # not due, however long this takes
    heddle.attention(*tensors, "causal")
    assert not asked
    _engine.engine().expire()
    heddle.attention(*tensors, "causal")
    heddle.attention(*tensors, "causal")
    assert len(asked) == 1


@pytest.fixture
def stream(driver):
    """Of GPU 0."""
    heddle.attention(*draw(), "causal")
    context, made = ctypes.c_void_p(), ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxPushCurrent_v2(context)
    assert driver.cuStreamCreate(ctypes.byref(made), 1) == 0
    driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    return made


def test_nothing_is_asked_while_the_stream_is_captured(driver, stream, monkeypatch):
    tensors, graph, asked = draw(), ctypes.c_void_p(), []
    engine, kernel = _engine.engine(), heddle.kernel(*tensors, "causal")
    engine.expire()
    monkeypatch.setattr(engine, "ask", lambda question: asked.append(question) or kernel)
    assert driver.cuStreamBeginCapture_v2(stream, 0) == 0
    heddle.attention(*tensors, "causal", stream=stream.value)
    heddle.prepare(*tensors, "causal", stream=stream.value)
    assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0 and not asked
    heddle.attention(*tensors, "causal", stream=stream.value)
    assert len(asked) == 1


class Entered:
    """A device or a stream of CuPy: a context in which tensors are made."""
    now: list = []

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        Entered.now.append(self.name)

    def __exit__(self, *error):
        assert Entered.now.pop() == self.name


class CupyLike:
    """A module that makes tensors on the current device for the current stream, and can say which both are."""
    float32, made = "float32", []

    class cuda:
        @staticmethod
        def ExternalStream(address):
            warnings.warn("ExternalStream is deprecated", DeprecationWarning)
            return Entered(address)

    @staticmethod
    def empty(shape, dtype):
        CupyLike.made.append((shape, list(Entered.now)))
        number = next((each for each in reversed(Entered.now) if each in ("GPU 0", "GPU 1")), "GPU 0")
        return CupyArray(device_arrays.aligned(shape, device_arrays.TYPES[dtype][2]), dtype, int(number[-1]))


class CupyArray(device_arrays.DeviceArray):
    __module__ = "cupy_like"

    def __init__(self, bits, dtype, number):
        super().__init__(bits, dtype, Entered(f"GPU {number}"))
        self.number = number

    def __dlpack_device__(self):
        return device_arrays.CUDA, self.number

    def __dlpack__(self, stream=None):
        self.device, device = self.number, self.device
        try:
            return super().__dlpack__(stream)
        finally:
            self.device = device

    @property
    def __array_namespace__(self):
        raise AttributeError("CuPy's arrays have none")


@pytest.mark.filterwarnings("error")
def test_workspaces_are_made_on_the_gpu_and_for_the_stream_of_the_call(stream, monkeypatch):
    monkeypatch.setattr(CupyLike, "ndarray", CupyArray, raising=False)
    monkeypatch.setitem(sys.modules, "cupy_like", CupyLike)
    monkeypatch.setattr(_call.Call, "workspace_bytes", lambda call, kernel: 4096)
    monkeypatch.setattr(CupyLike, "made", [])
    tensors = [CupyArray(each.bits, each.dtype, 1) for each in draw()]
    call = heddle.prepare(*tensors, "causal", stream=stream.value)
    assert call.out.number == 1
    assert [made for _, made in CupyLike.made] == [["GPU 1"], ["GPU 1"], ["GPU 1", stream.value, "GPU 1"]]


def test_a_workspace_of_another_gpu_is_refused(monkeypatch):
    monkeypatch.setattr(_call.Call, "workspace_bytes", lambda call, kernel: 4096)
    monkeypatch.setattr(device_arrays.DeviceArray, "__array_namespace__", lambda self: device_arrays.SpaceOfGpu0)
    q, k, v = (device_arrays.DeviceArray(each.bits, each.dtype, 1) for each in draw())
    results = dict(out=device_arrays.Space.empty(q.bits.shape, "bfloat16", 1), lse=device_arrays.Space.empty((2, 4, 37), "float32", 1))
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention(q, k, v, "causal", **results)
    assert str(raised.value) == "attention arguments: workspace: expected a tensor in GPU 1 as q, got one in GPU 0"


def _question(tensors, pattern="causal", **arguments):
    from heddle import _direct, patterns
    return _direct.call_of(_call.CallSpec(*tensors, patterns.resolved(pattern), arguments=arguments)).question()


def test_threads_compile_once(tmp_path):
    heddle.configure(database=tmp_path / "threads.db", first="best")
    keys = []
    threads = [threading.Thread(target=lambda: keys.append(heddle.kernel(*draw(), causal & window(left=9)).content_key)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 6 and len(set(keys)) == 1


def test_searches_report_what_is_wrong(tmp_path):
    heddle.configure(database=tmp_path / "tune.db", read_only=True)
    with pytest.raises(heddle.Error):
        heddle.tune("causal", *draw(), budget=1)
    with pytest.raises(heddle.UnsupportedError) as raised:
        heddle.tune("causal", *[np.zeros((1, 4, 1, 8), np.float32)] * 3)
    assert "kernels are for tensors on a GPU" in str(raised.value)


def test_a_search_without_a_winner_says_so(tmp_path):
    """The driver computes nothing, so no candidate is right."""
    heddle.configure(database=tmp_path / "tune.db", program="")
    task = heddle.tune("causal", *draw(), budget=1, wait=False)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        task.wait(float("nan"))
    assert "seconds: expected a number" in str(raised.value)
    with pytest.raises(heddle.UnavailableError) as raised:
        task.wait()
    assert "no configuration gave a correct, measured kernel" in str(raised.value)
    task = heddle.tune("causal", *draw(), budget=3600, wait=False)
    assert not task.wait(0.0)
    task.cancel()
    with pytest.raises(heddle.UnavailableError) as raised:
        task.wait(600)
    assert "cancelled" in str(raised.value)


def test_importing_needs_nothing(root):
    """Neither numpy nor PyTorch is imported, and no GPU is opened."""
    code = "import sys, heddle; heddle.library('causal'); print([name for name in ('numpy', 'torch') if name in sys.modules])"
    environment = dict(os.environ, PYTHONPATH=os.path.join(root, "runtime", "Python"), HEDDLE_CUDA_DRIVER_LIBRARY="/nowhere")
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout == "[]\n"


def test_without_a_driver(root, tmp_path):
    code = ("import heddle, numpy, sys; sys.path.insert(0, 'tests/python'); import device_arrays as d\n"
            "try: heddle.attention(*[d.bf16(numpy.zeros((1, 4, 1, 64)))] * 3, 'causal')\n"
            "except heddle.UnavailableError as error: print('said', error)")
    environment = dict(os.environ, PYTHONPATH=os.path.join(root, "runtime", "Python"), HEDDLE_CUDA_DRIVER_LIBRARY="/nowhere/libcuda.so",
                       HEDDLE_DB=str(tmp_path / "kernels.db"))
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True)
    assert "said" in done.stdout and "cannot open" in done.stdout, done.stderr


def test_compilations_and_kept_pairs_are_counted(tmp_path):
    heddle.configure(database=tmp_path / "new.db", first="best")
    before = heddle.stats()
    prepared = heddle.prepare(*draw(70), window(left=5))
    prepared.count_pairs()
    prepared()
    after = heddle.stats()
    assert after["compilations"] - before["compilations"] == 1 and after["compilation_seconds"] > before["compilation_seconds"]
    assert after["found"]["none"] > before["found"]["none"]
    assert after["pairs"] - before["pairs"] == 2 * 4 * (70 * 6 - 15)  # batch 2, 4 heads; the first rows have fewer keys
