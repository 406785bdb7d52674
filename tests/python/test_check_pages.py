"""heddle.configure(check_pages=True): calls of heddle.serve on a GPU say which length or page is wrong, as those in host memory always do.
As if on a GPU through the recording driver: kernels are compiled and found, and nothing is launched."""
import ctypes
import os

import heddle
import pytest
from heddle import serve
from heddle.words import causal, tensor, union, window

torch = pytest.importorskip("torch")
from heddle import _call, _engine, _torch  # noqa: E402

pytestmark = pytest.mark.compiler
HEADS, KV_HEADS, DIM, PAGE, PAGES = 4, 2, 64, 16, 12


def integers(*numbers):
    return torch.tensor(numbers, dtype=torch.int32)


class Batch:
    """Two sequences, in pages of 140 keys and of 17."""

    def __init__(self):
        self.q = torch.randn(2, 1, HEADS, DIM).bfloat16()
        self.k, self.v = torch.randn(2, PAGES, PAGE, KV_HEADS, DIM).bfloat16()
        self.table = torch.tensor([[5, 2, 7, 3, 11, 0, 6, 8, 9], [1, 4, *[99] * 7]], dtype=torch.int32)  # 99: behind the keys, where entries may be anything
        self.lengths = integers(140, 17)
        self.offsets, self.entries, self.last = integers(0, 3, 5), integers(5, 2, 7, 1, 4), integers(8, 1)
        self.rows = integers(0, 40, 57)

    def paged(self, pattern="causal", **options):
        return serve.paged_attention(self.q, self.k, self.v, self.table, self.lengths, pattern, **options)

    def indexed(self):
        return serve.indexed_attention(self.q, self.k, self.v, self.offsets, self.entries, self.last, "causal")

    def ragged(self):
        k, v = (each.reshape(1, -1, KV_HEADS, DIM)[:, :57] for each in (self.k, self.v))
        return serve.ragged_attention(self.q, k, v, self.rows, "causal")


class Frozen:
    def __init__(self, launches):
        self.launch = launches.append

    def close(self):
        pass


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return tmp_path_factory.mktemp("db") / "kernels.db"


def described(driver):
    """How many GPUs the driver says there are, and their architecture, as fakeCudaSetDevices and fakeCudaSetArch take them."""
    def number(function, *which):
        found = ctypes.c_int()
        assert function(ctypes.byref(found), *which) == 0
        return found.value
    major, minor = (number(driver.cuDeviceGetAttribute, which, 0) for which in (75, 76))  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
    return number(driver.cuDeviceGetCount), 10 * major + minor


@pytest.fixture
def hopper():
    """For as long as a test one GPU more, of compute capability 9.0; its number. Engines of before are kept, and with them devices as they were described, so
    it is one that no engine knows, and those that the test has made are closed behind it."""
    if "HEDDLE_CUDA_DRIVER_LIBRARY" not in os.environ:
        pytest.skip("HEDDLE_CUDA_DRIVER_LIBRARY is not set")
    driver = ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER_LIBRARY"])
    assert driver.cuInit(0) == 0
    devices, arch = described(driver)
    heddle.configure()
    before = len(_engine._retired)
    driver.fakeCudaSetDevices(devices + 1)
    driver.fakeCudaSetArch(90)
    yield devices
    heddle.configure()
    for engine in _engine._retired[before:]:
        engine.close()
    del _engine._retired[before:]
    driver.fakeCudaSetArch(arch)
    driver.fakeCudaSetDevices(devices)


@pytest.fixture
def on_gpu(hopper, monkeypatch, database):
    """Makes tensors of host memory stand for those of this GPU; what calls copy to the host is not among them."""
    plain, there = _torch.view, set()
    monkeypatch.setattr(_torch, "view", lambda each, name: plain(each, name)._replace(device=hopper if each.untyped_storage().data_ptr() in there else None))
    monkeypatch.setattr(_torch, "current_stream", lambda index: 0)
    monkeypatch.setattr(_torch.Launches, "run", lambda ready: moved.launches.append(ready))
    monkeypatch.setattr(_call, "Frozen", lambda *_: Frozen(moved.launches))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)

    def moved(batch, *others):
        there.update(each.untyped_storage().data_ptr() for each in (*vars(batch).values(), *others))
        try:
            batch.paged()
        except heddle.UnavailableError as error:
            pytest.skip(str(error))
        moved.launches.clear()
        return batch
    moved.launches = []
    heddle.configure(database=database, first="best")
    yield moved


def checked(database):
    heddle.configure(database=database, first="best", check_pages=True)


# How a call goes wrong, and what is said of it.
WRONG = {
    "a page": (Batch.paged, "table", (0, 2), PAGES, "page_table: .*12"),
    "a page below 0": (Batch.paged, "table", (1, 1), -1, "page_table: .*-1"),
    "a length": (Batch.paged, "lengths", 0, 145, "seqused_k: .*145"),
    "an entry": (Batch.indexed, "entries", 4, PAGES, "kv_indices: .*12"),
    "a last page": (Batch.indexed, "last", 1, PAGE + 1, "kv_last_page_len: .*17"),
    "an offset": (Batch.ragged, "rows", 1, 58, "cu_seqlens_k: .*58"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_before_the_launch(on_gpu, database, name):
    call, field, place, value, said = WRONG[name]
    batch = on_gpu(Batch())
    getattr(batch, field)[place] = value
    call(batch)  # the caller's word
    assert len(on_gpu.launches) == 1
    checked(database)
    with pytest.raises(heddle.InvalidArgumentError, match=said):
        call(batch)
    assert len(on_gpu.launches) == 1
    getattr(batch, field)[place] = getattr(Batch(), field)[place]
    call(batch)
    assert len(on_gpu.launches) == 2


@pytest.mark.parametrize("name", WRONG)
def test_in_host_memory_it_is_always_said(name):
    call, field, place, value, said = WRONG[name]
    batch = Batch()
    call(batch)
    getattr(batch, field)[place] = value
    with pytest.raises(heddle.InvalidArgumentError, match=said):
        call(batch)


def test_pages_that_a_pattern_does_not_read_may_be_anything(on_gpu, database):
    batch, sinks, scale = Batch(), torch.ones(HEADS), torch.ones(2, KV_HEADS)
    batch.k, batch.v = (each.to(torch.float8_e4m3fn) for each in (batch.k, batch.v))
    on_gpu(batch, sinks, scale)
    batch.table[0, 0] = -1
    checked(database)
    near = heddle.pattern(union(causal & window(left=5), sink=tensor("sinks", "?xf32")))
    batch.paged(near, sinks=sinks, descale=(scale, None), return_lse=True)
    assert len(on_gpu.launches) == 1
    batch.lengths[0] = 20
    with pytest.raises(heddle.InvalidArgumentError, match="page_table: .*-1"):
        batch.paged(near, sinks=sinks, descale=(scale, None), return_lse=True)


def test_nodes_of_graphs_are_checked(on_gpu, database):
    batch = on_gpu(Batch())
    checked(database)
    compiled = torch.compile(lambda q, k, v, table, lengths: serve.paged_attention(q, k, v, table, lengths, "causal"), backend="eager", fullgraph=True)
    given = batch.q, batch.k, batch.v, batch.table, batch.lengths
    compiled(*given)
    batch.table[1, 0] = 77
    with pytest.raises(heddle.InvalidArgumentError, match="page_table: .*77"):
        compiled(*given)
    assert len(on_gpu.launches) == 1


def test_prepared_calls_check_each_launch(on_gpu, database):
    batch = on_gpu(Batch())
    checked(database)
    call = serve.prepare(batch.q, batch.k, batch.v, "causal", page_table=batch.table, seqused_k=batch.lengths)
    call()
    batch.table[0, 1] = 1000
    with pytest.raises(heddle.InvalidArgumentError, match="page_table: .*1000"):
        call()
    assert len(on_gpu.launches) == 1


def test_streams_that_are_captured_cannot_wait(on_gpu, database, monkeypatch):
    batch = on_gpu(Batch())
    checked(database)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(heddle.UnsupportedError, match="check calls outside of the capture"):
        batch.paged()
