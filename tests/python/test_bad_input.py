"""What a call refuses beyond tensors and values (test_runtime.py): the same text as the C interface, nothing launched. Through the recording driver."""
import ctypes as C

import heddle
import pytest

np = pytest.importorskip("numpy")
import device_arrays  # noqa: E402
from heddle import _engine  # noqa: E402
from heddle import _structs as S  # noqa: E402
from heddle.words import full  # noqa: E402
from test_runtime import draw, driver, expected, launches, package, pytestmark  # noqa: E402, F401


def launched(driver):  # noqa: F811
    """Launches that the driver took; refused ones do not count."""
    count = C.c_int()
    driver.fakeCudaLaunches(C.byref(count))
    return count.value


@pytest.fixture
def refused(driver):  # noqa: F811
    """Calls, expects the exception and its text, and that nothing was launched."""
    def check(kind, message, call):
        before = launched(driver)
        with pytest.raises(kind) as raised:
            call()
        assert message in str(raised.value)
        assert launched(driver) == before
    return check


def context_of_gpu(driver, ordinal):  # noqa: F811
    context = C.c_void_p()
    assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(C.byref(context), ordinal) == 0
    return context


def test_a_stream_of_another_gpu(driver, refused):  # noqa: F811
    stream = C.c_void_p()
    driver.cuCtxPushCurrent_v2(context_of_gpu(driver, 1))
    assert driver.cuStreamCreate(C.byref(stream), 0) == 0
    driver.cuCtxPopCurrent_v2(C.byref(C.c_void_p()))
    message = "launch: stream: expected one of the context that the kernel is loaded into, on GPU 0, got one of another context on GPU 1"
    refused(heddle.InvalidArgumentError, message, lambda: heddle.attention(*draw(), "causal", stream=stream.value))
    call = heddle.prepare(*draw(), "causal", stream=stream.value)
    refused(heddle.InvalidArgumentError, message, call)


@pytest.mark.parametrize("stream", ["0", 1.5, -1, 2**64])
def test_streams_that_are_no_addresses(refused, stream):
    refused(heddle.InvalidArgumentError, f"stream: expected an address (an int; None for the default stream), got {stream!r}",
            lambda: heddle.attention(*draw(), "causal", stream=stream))


def test_use_after_close(refused):
    call = heddle.prepare(*draw(), "causal")
    call()
    call.close()
    call.close()
    refused(heddle.InvalidArgumentError, "this prepared call is closed", call)


def test_handles_that_were_closed(refused):
    library = _engine.engine().library
    device = library.opened("heddle_device_open", 0)
    library.close("device", device)
    query = S.sized(S.KernelQuery, dtype=S.BF16, pattern=b"causal", head_dim=64, value_dim=64)
    refused(heddle.InvalidArgumentError, "find kernel: device: this handle was closed",
            lambda: library.opened("heddle_kernel_find", _engine.engine().store, device, C.byref(query)))


class Null(device_arrays.DeviceArray):
    def __dlpack__(self, stream=None):
        capsule = super().__dlpack__(stream)
        self._held[0].data, self._held[0].byte_offset = None, 0
        return capsule


@pytest.mark.parametrize("name", ["q", "k", "v", "out"])
def test_null_tensors(refused, name):
    tensors = dict(zip("qkv", draw()))
    given = tensors["q" if name == "out" else name]
    tensors[name] = Null(given.bits, given.dtype)
    refused(heddle.InvalidArgumentError, f"attention arguments: {name}: address: expected device memory at a multiple of 16 bytes, got null",
            lambda: heddle.attention(**tensors, pattern="causal"))
    tensors[name] = None
    if name != "out":
        refused(heddle.InvalidArgumentError, f"{name}: expected a tensor (PyTorch, numpy, or anything with DLPack), got NoneType",
                lambda: heddle.attention(**tensors, pattern="causal"))


def test_tensors_of_the_host_and_strides_of_dim(refused):
    q, k, v = draw()
    refused(heddle.InvalidArgumentError, "attention arguments: lse: expected a tensor in GPU 0 as q, got one in host memory",
            lambda: heddle.attention(q, k, v, "causal", lse=np.zeros((2, 4, 37), np.float32)))
    half = [device_arrays.DeviceArray(np.zeros(each.bits.shape, np.float16), "float16") for each in (q, k)]
    refused(heddle.InvalidArgumentError, "attention arguments: v: expected a tensor in GPU 0 as q, got one in host memory",
            lambda: heddle.attention(*half, np.zeros(v.bits.shape, np.float16), "causal"))
    wide = device_arrays.aligned((*q.bits.shape[:3], 128), np.uint16)
    refused(heddle.InvalidArgumentError, "attention arguments: q: stride of dim: expected 1, got 2; make the tensor contiguous in dim",
            lambda: heddle.attention(device_arrays.DeviceArray(wide[..., ::2], "bfloat16"), k, v, "causal"))


def test_a_pattern_for_other_heads(refused):
    """Tensors with a number for each head say how many heads their pattern is for."""
    slopes = heddle.named("alibi", "%slopes: memref<?xf32>")
    table = heddle.named("relative", "%table: memref<?x?xf32>")
    for pattern, given in ((slopes, {"slopes": (3,)}), (table, {"table": (3, 9)})):
        values = {name: device_arrays.DeviceArray(device_arrays.aligned(shape, np.float32), "float32") for name, shape in given.items()}
        refused(heddle.InvalidArgumentError, "size of dimension 0: expected 4, got 3", lambda: heddle.attention(*draw(), pattern, **values))


@pytest.mark.parametrize("value, message", [("0", "k_origin: expected an int, got '0'"), (1.5, "k_origin: expected an int, got 1.5"),
                                            (2**33, "k_origin: expected 32 bits, got 8589934592"),
                                            (2**64 + 1, "k_origin: expected 32 bits, got 18446744073709551617")])
def test_positions(refused, value, message):
    refused(heddle.InvalidArgumentError, f"attention arguments: {message}", lambda: heddle.attention(*draw(), "causal", k_origin=value))


@pytest.mark.parametrize("scale", [0, float("nan"), 1e-60, 1e60, True, "1", 10**400])
def test_scales_that_are_none_in_fp32(refused, scale):
    refused(heddle.InvalidArgumentError, f"scale: expected a finite number above 0 (or None for 1 / sqrt(head_dim)), got {scale!r}",
            lambda: heddle.attention(*draw(), "causal", scale=scale))


def test_numbers_of_numpy_are_numbers():
    tensors = draw()
    given, plain = (heddle.attention(*tensors, "causal", scale=scale) for scale in (np.float32(0.25), 0.25))
    np.testing.assert_array_equal(given.bits, plain.bits)


@pytest.mark.parametrize("pattern", [3, {}, [], None])
def test_what_is_no_pattern(refused, pattern):
    refused(heddle.InvalidArgumentError, f"expected a mask, union(...), lse(...) or MLIR text, got {pattern!r}",
            lambda: heddle.attention(*draw(), pattern))


def test_a_text_of_ones_own_does_not_find_the_kernels_of_the_library(refused):
    refused(heddle.InvalidArgumentError, "pattern causal: without the compiler databases know patterns by name, and this text is not that of the library's",
            lambda: heddle.attention(*draw(), heddle.pattern(full, name="causal")))
    refused(heddle.NotFoundError, "no pattern is named 'ours'", lambda: heddle.attention(*draw(), heddle.pattern(full, name="ours")))
    heddle.attention(*draw(), str(heddle.library("causal")))


def test_settings_that_are_none():
    for given, name in ((dict(database=3), "database"), (dict(shipped=[3]), "shipped"), (dict(program=3), "program")):
        with pytest.raises(heddle.InvalidArgumentError) as raised:
            heddle.configure(**given)
        assert str(raised.value) == f"configure: {name}: expected a path, got 3"
    for workers in ("2", 1.5, -1, 2**40, True):
        with pytest.raises(heddle.InvalidArgumentError) as raised:
            heddle.configure(workers=workers)
        assert str(raised.value) == f"configure: workers: expected a whole number of 0 or more, got {workers!r}"


# ---------------------------------------------------------------- structs as programs of other versions and languages pass them
@pytest.fixture
def struct():
    """A call that is right, as the struct of heddle.h, and how it is launched."""
    q, k, v = draw()
    out, lse = device_arrays.Space.empty(q.bits.shape, "bfloat16", 0), device_arrays.Space.empty((2, 4, 37), "float32", 0)
    kernel = heddle.kernel(q, k, v, "causal")

    class Newer(C.Structure):
        _fields_ = [("args", S.AttentionArgs), ("added", C.c_uint64)]
    newer = Newer()
    args = newer.args
    args.struct_size = C.sizeof(S.AttentionArgs)
    args.lse = lse.bits.ctypes.data
    for tensor, array in ((args.q, q), (args.k, k), (args.v, v), (args.out, out)):
        tensor.ptr, tensor.dtype = array.bits.ctypes.data, S.BF16
        tensor.size[:], tensor.stride[:] = array.bits.shape, [each // 2 for each in array.bits.strides]
    library = _engine.engine().library
    newer.launch = lambda: library.call("heddle_kernel_launch", kernel.handle, None, C.byref(args))
    newer.arrays, newer.result, newer.wanted = (q, k, v, out, lse), out, expected((q, k, v))[0]
    return newer


def check_result(struct):
    struct.launch()
    np.testing.assert_allclose(device_arrays.to_float(struct.result), struct.wanted, atol=2e-2)


@pytest.mark.parametrize("size", [0, 8, 340, 5000])
def test_sizes_of_structs_that_no_version_has(struct, refused, size):
    struct.args.struct_size = size
    refused(heddle.InvalidArgumentError, f"struct_size: expected at least 336, at most 4096 and a multiple of 8, got {size}", struct.launch)


def test_structs_of_older_and_newer_versions(struct, refused):
    check_result(struct)
    struct.args.struct_size = S.AttentionArgs.workspace.offset  # ends where fields begin that causal does not need
    check_result(struct)
    struct.args.struct_size = C.sizeof(struct)
    check_result(struct)
    struct.added = 1
    refused(heddle.UnsupportedError, "belongs to a field of a newer version and is not zero", struct.launch)


@pytest.mark.parametrize("field, message", [
    ("flags", "no kernel serves flags yet"), ("page_size", "a call of kind forward has no page_size"), ("rng_seed", "no kernel serves rng_seed yet"),
    ("cu_seqlens_q", "a call of kind forward has no cu_seqlens_q"), ("cu_seqlens_k", "a call of kind forward has no cu_seqlens_k"), ("tables", "a call of kind forward has no tables"),
    ("q.reserved", "the reserved field of a tensor is not zero")])
def test_reserved_fields(struct, refused, field, message):
    owner, _, last = f"args.{field}".rpartition(".")
    target = struct.args.q if owner == "args.q" else struct.args
    setattr(target, last, 2)  # the lowest flag is served
    refused(heddle.UnsupportedError, message, struct.launch)
