"""heddle.attention_backward on arrays: in host memory against differences of the definition in float64, as if on a GPU through the recording
driver, and where only the runtime is."""
import ctypes
import os
import re
import subprocess
import sys

import heddle
import pytest
from heddle import _command
from heddle.words import causal, documents, number, softcap, tensor, union, window
from heddle.words import lse as lse_of

np = pytest.importorskip("numpy")
import device_arrays  # noqa: E402
import reference  # noqa: E402

ROWS, KEYS, HEADS, KV_HEADS, DIM = 7, 9, 4, 2, 8
NEAR = window(left=3, right=1)


def draw(dtype=np.float32):
    generator = np.random.default_rng(3)
    shapes = [(1, ROWS, HEADS, DIM), (1, KEYS, KV_HEADS, DIM), (1, KEYS, KV_HEADS, DIM), (1, ROWS, HEADS, DIM), (1, HEADS, ROWS)]
    q, k, v, d_out, d_lse = (generator.standard_normal(shape).astype(dtype) for shape in shapes)
    return (q, k, v), d_out, d_lse.astype(np.float32)


def kept():
    q, k = reference.positions(ROWS, KEYS)
    return (q - k <= 3) & (k - q <= 1)


def differences(loss, array, count=12):
    """Of `loss()` by some elements of an array of float64, and where they are."""
    places = np.linspace(0, array.size - 1, min(count, array.size)).astype(int)
    found = []
    for place in places:
        value, ends = array.flat[place], []
        for step in (1e-5, -1e-5):
            array.flat[place] = value + step
            ends.append(loss())
        array.flat[place] = value
        found.append((ends[0] - ends[1]) / 2e-5)
    return places, np.array(found)


def check(gradients, arrays, loss, tolerance):
    for gradient, array in zip(gradients, arrays):
        places, expected = differences(loss, array)
        np.testing.assert_allclose(gradient.astype(np.float64).flat[places], expected, atol=tolerance, rtol=tolerance)


@pytest.mark.compiler
@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 1e-5), (np.float16, 2e-2)])
@pytest.mark.parametrize("has_lse", [False, True])
def test_gradients_of_arrays(dtype, tolerance, has_lse):
    tensors, d_out, d_lse = draw(dtype)
    d_lse = d_lse if has_lse else None
    out, lse = heddle.attention(*tensors, NEAR, return_lse=True)
    found = heddle.attention_backward(d_out, *tensors, out, lse, NEAR, d_lse=d_lse)
    assert [each.dtype for each in found] == [dtype] * 3 and [each.shape for each in found] == [each.shape for each in tensors]
    wide = [each.astype(np.float64) for each in tensors]

    def loss():
        out, lse = reference.attention(*wide, kept())
        return (out * d_out).sum() + (0 if d_lse is None else (lse * d_lse).sum())

    check(found, wide, loss, tolerance)


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gradients_of_parts_of_the_keys_add_up_in_fp32(dtype):
    (q, k, v), d_out, d_lse = draw(dtype)
    out, lse = heddle.attention(q, k, v, NEAR, return_lse=True)
    expected = heddle.attention_backward(d_out, q, k, v, out, lse, NEAR, d_lse=d_lse)
    sums = [np.ones(each.shape, np.float32) for each in (q, k, v)]
    for first, last in ((0, 4), (4, KEYS)):
        part = [np.ascontiguousarray(each[:, first:last]) for each in (k, v)]
        of_part = [sums[0], *(np.ascontiguousarray(each[:, first:last]) for each in sums[1:])]
        returned = heddle.attention_backward(d_out, q, *part, out, lse, NEAR, d_lse=d_lse, k_origin=first, add_to=of_part)
        assert all(one is two for one, two in zip(returned, of_part))
        for whole, each in zip(sums[1:], of_part[1:]):
            whole[:, first:last] = each
    for found, each in zip(sums, expected):
        np.testing.assert_allclose(found - 1, each.astype(np.float32), atol=5e-6 if dtype == np.float32 else 5e-3)


@pytest.mark.compiler
@pytest.mark.parametrize("change, message", [
    (lambda d_q, d_k, d_v: (d_q, d_k), r"add_to: expected \(d_q, d_k, d_v\), got tuple"),
    (lambda d_q, d_k, d_v: (d_q.astype(np.float16), d_k, d_v), "d_q: dtype: expected fp32, which the gradient is added to, got fp16"),
    (lambda d_q, d_k, d_v: (d_q, d_k, d_v[:, 1:]), "d_v: size of row: expected 9, got 8"),
    (lambda d_q, d_k, d_v: (d_q, np.broadcast_to(d_k[:1], d_k.shape), d_v), "d_k: expected an array that may be written, got a read-only one"),
])
def test_what_nothing_can_be_added_to_is_named(change, message):
    tensors, d_out, _ = draw(np.float16)
    out, lse = heddle.attention(*tensors, NEAR, return_lse=True)
    with pytest.raises(heddle.InvalidArgumentError, match=message):
        heddle.attention_backward(d_out, *tensors, out, lse, NEAR, add_to=change(*(np.zeros(each.shape, np.float32) for each in tensors)))


@pytest.mark.compiler
def test_parts_of_the_keys_of_detached_branches_are_refused():
    pattern = heddle.pattern(lse_of(NEAR, causal.segment(4), gradient="detached"))
    (q, k, v), d_out, _ = draw()
    out, lse = heddle.attention(q, k, v, pattern, return_lse=True)
    sums = tuple(np.zeros(each.shape, np.float32) for each in (q, k, v))
    whole = heddle.attention_backward(d_out, q, k, v, out, lse, pattern)
    for found, each in zip(heddle.attention_backward(d_out, q, k, v, out, lse, pattern, add_to=sums), whole):
        np.testing.assert_allclose(found, each, atol=1e-6)
    part = [np.ascontiguousarray(each[:, 4:]) for each in (k, v)]
    of_part = (sums[0], *(np.zeros(each.shape, np.float32) for each in part))
    with pytest.raises(heddle.UnsupportedError, match=r"k_origin: expected 0, the first of all keys, got 4: the pattern says gradient\(detached\)"):
        heddle.attention_backward(d_out, q, *part, out, lse, pattern, k_origin=4, add_to=of_part)


@pytest.mark.compiler
def test_gradients_of_numbers_tensors_and_sinks():
    pattern = heddle.pattern(union(NEAR, scores=softcap(number("cap", 2.0, min=0.5)).bias(tensor("b", "1x?x?x?xf32")), sink=number("drain", 0.5)))
    tensors, d_out, d_lse = draw()
    cap, drain, b = np.array(2.0), np.array(0.5), np.random.default_rng(4).standard_normal((1, HEADS, ROWS, KEYS))
    given = dict(cap=float(cap), drain=float(drain), b=b.astype(np.float32))
    out, lse = heddle.attention(*tensors, pattern, return_lse=True, **given)
    *found, others = heddle.attention_backward(d_out, *tensors, out, lse, pattern, d_lse=d_lse, gradients_of=("b", "cap", "drain"), **given)
    assert list(others) == ["b", "cap", "drain"] and others["b"].shape == b.shape and others["cap"].shape == ()
    wide = [each.astype(np.float64) for each in tensors]

    def loss():
        out, lse = reference.attention(*wide, kept(), scores=lambda s, h: np.tanh(s / cap) * cap + b[0, h], sink=float(drain))
        return (out * d_out).sum() + (lse * d_lse).sum()

    check([*found, others["b"], others["cap"], others["drain"]], [*wide, b, cap, drain], loss, 2e-5)


@pytest.mark.compiler
@pytest.mark.parametrize("change, message", [
    (dict(d_out=np.zeros((1, ROWS, HEADS, 4), np.float32)), "d_out: size of dim: expected 8, got 4"),
    (dict(d_out=np.zeros((1, ROWS, HEADS, DIM))), "d_out: dtype: expected fp32 as q"),
    (dict(d_out=np.zeros((ROWS, HEADS, DIM), np.float32)), "d_out: expected 4 dimensions"),
    (dict(d_out=None), "d_out: expected a tensor"),
    (dict(lse=None), "lse: expected a tensor"),
    (dict(lse=np.zeros((1, ROWS, HEADS), np.float32)), "lse: expected row-major fp32 of [1, 4, 7]"),
    (dict(d_lse=np.zeros((1, HEADS, ROWS))), "d_lse: expected row-major fp32 of [1, 4, 7]"),
    (dict(out=np.zeros((1, ROWS + 1, HEADS, DIM), np.float32)), "out: size of row: expected 7, got 8"),
    (dict(gradients_of=("rigth",)), "has no argument 'rigth'"),
    (dict(gradients_of="left"), "have no derivative by argument 0"),
])
def test_what_does_not_fit_is_named(change, message):
    tensors, d_out, _ = draw()
    out, lse = heddle.attention(*tensors, "sliding_window", left=3, return_lse=True)
    given = dict(dict(d_out=d_out, out=out, lse=lse, left=3), **change)
    with pytest.raises(heddle.InvalidArgumentError) as raised:
        heddle.attention_backward(q=tensors[0], k=tensors[1], v=tensors[2], pattern="sliding_window", **given)
    assert message in str(raised.value)


@pytest.mark.compiler
def test_a_keyword_that_may_be_the_pattern_s_is_refused():
    tensors, d_out, d_lse = draw()
    pattern = heddle.pattern(documents(causal, tensor("d_lse", "?xi32")))
    with pytest.raises(heddle.InvalidArgumentError, match="attention_backward: d_lse: pattern pattern has an argument of that name too"):
        heddle.attention_backward(d_out, *tensors, d_out, d_lse, pattern, d_lse=d_lse)


# ---------------------------------------------------------------- as if on a GPU
def on_device(dim=64):
    """d_out, q, k, v, out, lse."""
    made = [device_arrays.bf16(np.zeros((1, 64, each, dim))) for each in (4, 4, 2, 2, 4)]
    return [*made, device_arrays.Space.empty((1, 4, 64), "float32", 0)]


def default_of(name, kind):
    """The configuration that the command line takes for these tensors, whose kernel `heddle bench` times."""
    command = [_command.program(), "compile", name, f"--kind={kind}", "--arch=sm_90a", "--head-dim=64", "--seqlen=64", "--emit=record"]
    record = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.search("^config=(.*)$", record, re.M)[1].replace("\\n", " ").split()


def on_hopper(database):
    """In a process of its own: the others' device is of another architecture."""
    driver = ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER_LIBRARY"])
    driver.fakeCudaSetPageable(1)  # the workspace of these arrays is cleared
    heddle.configure(database=database, first="best")
    tensors = on_device()
    try:
        found = heddle.attention_backward(*tensors, "causal", d_lse=tensors[5])
    except heddle.UnavailableError as error:
        print("skipped:", error)
        return
    launches = driver.fakeCudaCalls(b"cuLaunchKernel")
    assert launches > 0 and [each.bits.shape for each in found] == [each.bits.shape for each in tensors[1:4]]
    capped = heddle.pattern(union(causal, scores=softcap(number("cap", 2.0, min=0.5)), sink=tensor("drain", "?xf32")))
    drain = device_arrays.Space.empty((4,), "float32", 0)
    *found, others = heddle.attention_backward(*tensors, capped, gradients_of=("drain", "cap"), drain=drain)
    assert others["cap"].bits.shape == () and others["drain"].bits.shape == (4,) and driver.fakeCudaCalls(b"cuLaunchKernel") > launches
    with pytest.raises(heddle.InvalidArgumentError, match="no derivative by argument 0"):
        heddle.attention_backward(*tensors, "sliding_window", left=3, gradients_of=("left",))
    launches = driver.fakeCudaCalls(b"cuLaunchKernel")
    assert heddle.kernel(*tensors[1:4], "causal", backward=True).content_key != heddle.kernel(*tensors[1:4], "causal").content_key
    plain, given = heddle.kernel(*tensors[1:4], capped, backward=True, drain=drain), heddle.kernel(*tensors[1:4], capped, backward=True, drain=drain, gradients_of="cap")
    steady = heddle.kernel(*tensors[1:4], "causal", backward=True, deterministic=True)
    assert given.content_key != plain.content_key
    assert steady.config.split() == default_of("causal", "backward_deterministic") and "reduce=3" in steady.config.split()
    with pytest.raises(heddle.InvalidArgumentError, match="no derivative by argument 0"):
        heddle.tune("sliding_window", *tensors[1:4], left=3, backward=True, gradients_of=("left",))
    with pytest.raises(heddle.InvalidArgumentError, match="gradients_of: expected backward=True beside it"):
        heddle.kernel(*tensors[1:4], capped, drain=drain, gradients_of="cap")
    task = heddle.tune(capped, *tensors[1:4], drain=drain, backward=True, gradients_of="cap", budget=600, wait=False)
    task.cancel()
    assert task.kernel().content_key == given.content_key  # of the kind that is searched
    with pytest.raises(heddle.UnsupportedError, match="512"):
        heddle.attention_backward(*on_device(512), "causal")
    with pytest.raises(heddle.InvalidArgumentError, match="d_q: dtype: expected fp32, which the gradient is added to, got bf16"):
        heddle.attention_backward(*tensors, "causal", add_to=found)
    assert driver.fakeCudaCalls(b"cuLaunchKernel") == launches
    clears = driver.fakeCudaCalls(b"cuMemsetD32Async")
    assert clears > 0
    heddle.attention_backward(*tensors, "dilated", deterministic=True)  # by a walk of its own for d_q
    assert driver.fakeCudaCalls(b"cuMemsetD32Async") == clears and driver.fakeCudaCalls(b"cuLaunchKernel") > launches  # no sums to add to
    sums = tuple(device_arrays.Space.empty((1, 64, heads, 64), "float32", 0) for heads in (4, 2, 2))
    assert heddle.attention_backward(*tensors, "causal", add_to=sums) == sums
    launches = driver.fakeCudaCalls(b"cuLaunchKernel")
    with pytest.raises(heddle.UnsupportedError, match="needs all of its keys"):
        heddle.attention_backward(*tensors, heddle.pattern(lse_of(causal, causal.segment(32), gradient="detached")), add_to=sums, k_origin=64)
    assert driver.fakeCudaCalls(b"cuLaunchKernel") == launches


@pytest.mark.compiler
@pytest.mark.skipif("HEDDLE_CUDA_DRIVER_LIBRARY" not in os.environ, reason="HEDDLE_CUDA_DRIVER_LIBRARY is not set")
def test_kernels_are_compiled_and_launched(tmp_path, root):
    code = f"import conftest, test_gradients; test_gradients.on_hopper({str(tmp_path / 'kernels.db')!r})"
    said = subprocess.run([sys.executable, "-c", code], cwd=os.path.join(root, "tests", "python"), capture_output=True, text=True,
                          env=dict(os.environ, HEDDLE_FAKE_CUDA_ARCH="90"))
    assert said.returncode == 0, said.stderr
    if "skipped:" in said.stdout:
        pytest.skip(said.stdout)


@pytest.mark.skipif(heddle.has_compiler() or not os.environ.get("HEDDLE_HOST_PACKAGE"), reason="for the runtime alone, with the package of HEDDLE_HOST_PACKAGE")
def test_the_runtime_alone_says_how_a_kernel_is_made():
    heddle.configure(database=os.environ["HEDDLE_HOST_PACKAGE"], immutable=True)
    with pytest.raises(heddle.NotFoundError, match="`heddle compile --backward --db=FILE` makes one"):
        heddle.attention_backward(*on_device(), "causal")
    tensors, d_out, d_lse = draw()
    with pytest.raises(heddle.UnavailableError, match="attention on the processor needs the compiler"):
        heddle.attention_backward(d_out, *tensors, d_out, d_lse, "causal")
