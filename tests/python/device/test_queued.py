"""Calls that are queued on streams, captured into graphs and made by several threads."""
import threading

import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402
from heddle import _dlpack, _driver  # noqa: E402
from heddle.words import window  # noqa: E402

pytestmark = pytest.mark.compiler


@pytest.mark.gpu
def test_streams(place):
    """On a side stream behind slow work of that stream; a call on the default one would read what is not there yet."""
    q, k, v = place.draw()
    wanted = heddle.attention(q, k, v, "causal")
    place.wait()
    side, late = torch.cuda.Stream(), torch.zeros_like(q)
    for call in (lambda: heddle.attention(late, k, v, "causal"), heddle.prepare(late, k, v, "causal")):
        late.zero_()
        place.wait()
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
            late.copy_(q)
            out = call()
        side.synchronize()
        assert torch.equal(out, wanted), "the call did not wait for its stream"


@pytest.mark.gpu
def test_dropped_while_queued(place):
    """Results of a prepared call that is dropped while a stream other than that of its making still writes them are given to nobody else."""
    q, k, v = place.draw()
    side = torch.cuda.Stream()
    call = heddle.prepare(q, k, v, "causal")
    addresses = call.out.data_ptr(), call.lse.data_ptr()
    place.wait()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        call()
    call.close()
    del call
    others = [torch.empty_like(q) for _ in range(4)] + [torch.empty(q.shape[0], q.shape[2], q.shape[1], device=q.device) for _ in range(4)]
    assert not {each.data_ptr() for each in others} & set(addresses), "memory that is still written was given away"
    place.wait()


@pytest.mark.gpu
def test_cupy_arrays(place):
    """On a stream of their own; its workspaces are given to others after its work, and nothing is loaded while it is captured."""
    cupy = pytest.importorskip("cupy")
    q, k, v = (each.half() for each in place.draw())
    wanted = heddle.attention(q, k, v, "causal")
    place.wait()
    q, k, v = map(cupy.from_dlpack, (q, k, v))
    side = cupy.cuda.Stream(non_blocking=True)
    out = heddle.attention(q, k, v, "causal", stream=side.ptr)
    side.synchronize()
    assert torch.equal(torch.from_dlpack(out), wanted), "a call on CuPy's arrays"
    with _dlpack.stream_of(q, side.ptr):
        workspace = _dlpack.empty(q, (1 << 20,), "fp32")
    address = workspace.data.ptr
    del workspace
    assert cupy.empty(1 << 20, cupy.float32).data.ptr != address, "the default stream got the memory of another"
    with side:
        assert cupy.empty(1 << 20, cupy.float32).data.ptr == address, "the memory did not belong to its stream"
    side.begin_capture()
    seen = _driver.is_captured(side.ptr)
    side.end_capture()
    assert seen and not _driver.is_captured(side.ptr), "is_captured"


@pytest.mark.gpu
def test_cuda_graph(place):
    """100 launches of a prepared call and one heddle.attention in one graph, replayed with other inputs."""
    q, k, v = place.draw()
    call = heddle.prepare(q, k, v, "sliding_window", left=99)
    heddle.attention(q, k, v, "causal")
    call()
    place.wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(100):
            call()
        other = heddle.attention(q, k, v, "causal")
    for seed in (1, 2):
        for mine, new in zip((q, k, v), place.draw(seed=seed)):
            mine.copy_(new)
        graph.replay()
        place.wait()
        assert torch.equal(call.out, heddle.attention(q, k, v, "sliding_window", left=99)), "prepared call in a graph"
        assert torch.equal(other, heddle.attention(q, k, v, "causal")), "heddle.attention in a graph"


@pytest.mark.gpu
def test_loaded_while_captured(place):
    """A kernel that is compiled, loaded and closed by another thread leaves a capture alone, of the mode that forbids most."""
    q, k, v = place.draw()
    call = heddle.prepare(q, k, v, "causal")
    call()
    place.wait()
    graph, failures = torch.cuda.CUDAGraph(), []

    def load():
        try:
            heddle.kernel(q, k, v, heddle.pattern(window(left=12345)))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    with torch.cuda.graph(graph, capture_error_mode="global"):
        call()
        loading = threading.Thread(target=load)
        loading.start()
        loading.join()
        call()
    graph.replay()
    place.wait()
    assert not failures, str(failures)
    assert torch.equal(call.out, heddle.attention(q, k, v, "causal")), "the captured call"


@pytest.mark.gpu
def test_threads(place):
    """8 threads x 100 calls of different sizes on streams of their own, equal to one after the other."""
    inputs = [place.draw(n=100 + 37 * seed, seed=seed) for seed in range(8)]
    wanted = [heddle.attention(*each, "sliding_window", left=5 * seed) for seed, each in enumerate(inputs)]
    place.wait()
    wrong = []

    def work(seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            outs = [heddle.attention(*inputs[seed], "sliding_window", left=5 * seed) for _ in range(100)]
            torch.cuda.current_stream().synchronize()
        wrong.extend(seed for out in outs if not torch.equal(out, wanted[seed]))

    every = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for each in every:
        each.start()
    for each in every:
        each.join()
    assert not wrong, f"threads {sorted(set(wrong))} differ"
