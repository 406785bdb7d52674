"""What calls cost: time of the host, compilations, memory."""
import os
import statistics
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

import heddle  # noqa: E402

pytestmark = pytest.mark.compiler


@pytest.mark.gpu
def test_lengths(place, says):
    """10,000 lengths, one kernel."""
    q, k, v = place.draw(batch=1, n=10_000, heads=1, kv=1)
    kernels, start = set(), time.perf_counter()
    for n in range(1, 10_001):
        heddle.attention(q[:, :n], k[:, :n], v[:, :n], "sliding_window", left=63)
        if n % 500 == 0:
            kernels.add(heddle.kernel(q[:, :n], k[:, :n], v[:, :n], "sliding_window", left=63).content_key)
    place.wait()
    assert len(kernels) == 1, f"{len(kernels)} kernels"
    says(f"{1e6 * (time.perf_counter() - start) / 10_000:.0f} us a new length")


@pytest.mark.gpu
def test_memory(place, says):
    """sliding_window at a million tokens: nothing beyond inputs, outputs and the workspace that the kernel states."""
    q, k, v = place.draw(batch=1, n=1 << 20, heads=2, kv=2)
    heddle.attention(q[:, :999], k[:, :999], v[:, :999], "sliding_window")
    call = heddle.prepare(q, k, v, "sliding_window")
    stated = 0 if call.workspace is None else call.workspace.numel()
    call.close()
    del call
    place.wait()
    torch.cuda.empty_cache()
    before, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    torch.cuda.reset_peak_memory_stats()
    out, lse = heddle.attention(q, k, v, "sliding_window", return_lse=True)
    place.wait()
    beyond = torch.cuda.max_memory_allocated() - before - out.nbytes - lse.nbytes - stated
    reserved = torch.cuda.memory_reserved()
    outside = free - torch.cuda.mem_get_info()[0] - (reserved - before)
    assert beyond <= 4096, f"{beyond} bytes beyond results and the stated {stated}"
    says(f"{beyond} bytes beyond (blocks of PyTorch's allocator rounded up), workspace {stated}, outside of PyTorch {max(outside, 0) >> 20} MiB")


def burst_us(call, wait, burst=200):
    """Of one call that only queues: a burst that fits into the queue, the GPU idle before it."""
    wait()
    start = time.perf_counter()
    for _ in range(burst):
        call()
    return 1e6 * (time.perf_counter() - start) / burst


SDPA_US = 24  # at most, where a prepared call is to take 12 us and a heddle.attention 25


def host_us(calls, wait, rounds=50, seconds=30, pause=0.03):
    """By name, the medians of bursts in turn, and of how many rounds. Processors of shared machines are half as fast for a while now and then:
    rounds in which `sdpa` takes longer than on the machine that the limits are for do not count, unless all are like that."""
    counted, slow, until = [], [], time.monotonic() + seconds
    while len(counted) < rounds and time.monotonic() < until:
        time.sleep(pause)
        took = {name: burst_us(call, wait) for name, call in calls.items()}
        (counted if took["sdpa"] <= SDPA_US else slow).append(took)
    chosen = counted or slow
    return {name: statistics.median(took[name] for took in chosen) for name in calls}, len(counted), len(slow)


@pytest.mark.gpu
def test_host_cost(place, says):
    """At most 12 us a prepared call and 25 us a heddle.attention of a small tensor; SDPA of the same run beside them."""
    q, k, v = place.draw(batch=1, n=128, heads=4, kv=4)
    near = heddle.library("sliding_window", left=63)
    call, out = heddle.prepare(q, k, v, near), torch.empty_like(q)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    tq, tk, tv = (each.transpose(1, 2).contiguous() for each in (q, k, v))
    with torch.inference_mode():
        figures, counted, slow = host_us({"prepared": call, "attention": lambda: heddle.attention(q, k, v, near),
                                          "attention left=": lambda: heddle.attention(q, k, v, near, left=31),
                                          "attention by name": lambda: heddle.attention(q, k, v, "causal"),
                                          "attention out=": lambda: heddle.attention(q, k, v, near, out=out),
                                          "sdpa": lambda: sdpa(tq, tk, tv, is_causal=True)}, place.wait)
    said = ", ".join(f"{name} {value:.1f}" for name, value in figures.items()) + f" us ({counted} rounds, {slow} slow ones)"
    says(said)
    if not counted:
        pytest.skip(f"this processor is slower than the one of the limits, SDPA takes more than {SDPA_US} us: {said}")
    assert figures["prepared"] <= 12 and figures["attention"] <= 25, said


FIRST = """
import sys, time, torch
q, k, v = (torch.randn(1, 4096, 8, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))
torch.cuda.synchronize()
start = time.perf_counter()
import heddle
imported = time.perf_counter()
heddle.configure(database=sys.argv[1])
heddle.attention(q, k, v, sys.argv[2])
torch.cuda.synchronize()
print(1e3 * (imported - start), 1e3 * (time.perf_counter() - imported))
"""


def first_call(database, pattern):
    """ms of `import heddle` and of the first call, in a process of its own."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", FIRST, database, pattern], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr.strip()[-300:]
    return [float(each) for each in done.stdout.split()]


@pytest.mark.gpu
def test_first_calls(says, tmp_path):
    """Cold (the portable default is compiled) at most 1.5 s, with a warm database at most 30 ms; `import heddle` is told apart."""
    figures = {}
    for pattern in ("causal", "sliding_window"):
        database = str(tmp_path / f"{pattern}.db")
        imported, cold = first_call(database, pattern)
        warm = min(first_call(database, pattern)[1] for _ in range(3))
        figures[pattern] = dict(import_ms=round(imported, 1), cold_ms=round(cold, 1), warm_ms=round(warm, 1))
    said = "; ".join(f"{name} import {each['import_ms']:.0f}, cold {each['cold_ms']:.0f}, warm {each['warm_ms']:.1f} ms" for name, each in figures.items())
    says(said)
    assert all(each["cold_ms"] <= 1500 and each["warm_ms"] <= 30 for each in figures.values()), said
