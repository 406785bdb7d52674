#!/usr/bin/env python3
"""The Python package on a GPU: device_test.py [--json OUT] [--only WORD,...]. Needs PyTorch with CUDA; HEDDLE_LIBRARY, or an installed wheel.

Prints one line for each check and a summary; exit code 1 if one failed or ran into its time limit. --device=cpu runs what needs no GPU, for trying the script.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
if not os.environ.get("HEDDLE_TEST_INSTALLED"):
    sys.path.insert(0, os.path.join(HERE, "..", "..", "runtime", "Python"))

import torch  # noqa: E402

import heddle  # noqa: E402
from heddle import _dlpack, _driver, nn  # noqa: E402
from heddle.words import causal, cols, documents, full, tensor, union, window  # noqa: E402
from time_limit import time_limit  # noqa: E402

CHECKS = []


def check(*needs):
    def add(function):
        CHECKS.append((function.__name__, function, needs))
        return function
    return add


class Place:
    """Where tensors are and what they are made of."""

    def __init__(self, device, limit):
        self.device, self.on_gpu, self.limit = device, device == "cuda", limit
        self.dtype = torch.bfloat16 if self.on_gpu else torch.float32
        self.scratch = tempfile.mkdtemp()

    def draw(self, batch=2, n=777, heads=4, kv=2, d=64, seed=0):
        generator = torch.Generator(self.device).manual_seed(seed)
        return [torch.randn(batch, n, each, d, device=self.device, generator=generator).to(self.dtype) for each in (heads, kv, kv)]

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()


def require(condition, what):
    if not condition:
        raise AssertionError(what)


# ---------------------------------------------------------------- the definition
def reference(q, k, v, copies, sink=None):
    """In fp64 from how often each pair counts, [heads or 1, rows, keys]; out and lse."""
    heads = q.shape[2]
    q, k, v = (each.double().transpose(1, 2) for each in (q, k, v))
    k, v = (each.repeat_interleave(heads // each.shape[1], 1) for each in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + copies.double().log()
    lse = torch.logsumexp(scores, -1)
    if sink is not None:
        lse = torch.logaddexp(lse, torch.full_like(lse, sink))
    weights = torch.exp(scores - lse.clamp(min=-1e300)[..., None])
    return (weights @ v).transpose(1, 2), lse


def same_precision(q, k, v, copies):
    """PyTorch's plain attention in the dtype of q, with a mask that adds log(copies)."""
    mask = copies.double().log().to(q.dtype).expand(q.shape[2], -1, -1)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        out = torch.nn.functional.scaled_dot_product_attention(*(each.transpose(1, 2) for each in (q, k, v)), attn_mask=mask, enable_gqa=True)
    return out.transpose(1, 2).double().nan_to_num()  # rows that keep nothing


def segment(n, w, r, offset, is_causal, device):
    i = torch.arange(n, device=device)
    inside = (i[:, None] // w == i // w) & (i[:, None] % w % r == offset) & (i % w % r == offset)
    return inside & (i <= i[:, None]) if is_causal else inside


def cases(n, device):
    i = torch.arange(n, device=device)
    q, k = i[:, None], i[None]
    cu = torch.tensor([0, 100, 100, 401, n], dtype=torch.int32, device=device)
    document = torch.searchsorted(cu, i.int(), right=True)
    pairs = lambda lengths, rates, offset: [segment(n, w, r, offset(r), True, device) for w, r in zip(lengths, rates)]  # noqa: E731
    yield "causal", (k <= q)[None], {}
    yield "sliding_window", ((k <= q) & (q - k <= 99))[None], {"left": 99}
    yield "longformer", (((q - k).abs() <= 20) | (q < 7) | (k < 7))[None], {"half": 20, "globals": 7}
    yield heddle.pattern(causal & (window(left=30) | cols(5)), name="words"), ((k <= q) & ((q - k <= 30) | (k < 5)))[None], {}
    yield heddle.pattern(documents(causal, tensor("cu", "?xi32")), name="documents"), ((document[:, None] == document) & (k <= q))[None], {"cu": cu}
    mixed = [sum(each.int() for each in pairs((64, 256), (1, 2), lambda r, h=h: h // -(-4 // r))) for h in range(4)]
    yield nn.longnet_pattern([64, 256], [1, 2]), torch.stack(mixed), {}
    groups = [segment(n, *((64, 1, 0) if h < 2 else (256, 2, 1)), False, device) for h in range(4)]
    yield nn.dilated_pattern([64, 256], [1, 2]), torch.stack(groups), {}
    yield nn.block_sparse_pattern(64, 1, 1, is_causal=True), (((q // 64 - k // 64 <= 1) | (k // 64 < 1)) & (k <= q))[None], {}


@check()
def correct(place):
    """Every case is at most twice as far from fp64 as PyTorch's own attention in this precision, and lse within 1e-3."""
    worst = 0.0
    for pattern, copies, arguments in cases(777, place.device):
        for views in (False, True):
            q, k, v = place.draw()
            if views:
                q, k, v = (each.transpose(1, 2).contiguous().transpose(1, 2) for each in (q, k, v))
            out, lse = heddle.attention(q, k, v, pattern, return_lse=True, **arguments)
            expected, logs = reference(q, k, v, copies)
            kept = torch.isfinite(logs)
            allowed = 2 * (same_precision(q, k, v, copies) - expected).abs().max().item() + 1e-5
            error = (out.double() - expected).abs().max().item()
            name = getattr(pattern, "name", pattern)
            require(error <= allowed, f"{name}: error {error:.2e}, allowed {allowed:.2e}")
            require((lse.double()[kept] - logs[kept]).abs().max() < 1e-3 and torch.isneginf(lse[~kept]).all(), f"{name}: lse")
            require((out.transpose(1, 2)[~kept] == 0).all(), f"{name}: rows that keep nothing")
            worst = max(worst, error / allowed)
    return f"worst error {100 * worst:.0f} % of the allowed one"


@check()
def sinks_and_origins(place):
    q, k, v = place.draw(n=100)
    i = torch.arange(100, device=place.device)
    out, lse = heddle.attention(q, k, v, heddle.pattern(union(causal, sink=0.5)), return_lse=True)
    expected, logs = reference(q, k, v, (i <= i[:, None])[None], sink=0.5)
    require((lse.double() - logs).abs().max() < 1e-3 and (out.double() - expected).abs().max() < 3e-2, "sink")
    last = heddle.attention(q[:, 90:], k, v, heddle.pattern(causal, q_origin="end"))
    require((last.double() - reference(q, k, v, (i <= i[:, None])[None])[0][:, 90:]).abs().max() < 3e-2, "q_origin end")


@check()
def carried(place):
    """Over pieces of the keys, each launch continuing the one before: as far from fp64 as one launch over all of them may be."""
    worst = 0.0
    for pattern, copies, arguments in cases(777, place.device):
        q, k, v = place.draw()
        carry, cuts = None, (0, 128, 401, 777)  # the last inside a block or a segment of what has some
        for begin, end in zip(cuts, cuts[1:]):
            made = torch.full_like(q, float("nan"), dtype=torch.float32)
            carry = heddle.attention(q, k[:, begin:end], v[:, begin:end], pattern, k_origin=begin, carry=carry, out=made, return_lse=True, **arguments)
        expected, logs = reference(q, k, v, copies)
        allowed = 2 * (same_precision(q, k, v, copies) - expected).abs().max().item() + 1e-5
        error, kept = (carry[0].double() - expected).abs().max().item(), torch.isfinite(logs)
        name = getattr(pattern, "name", pattern)
        require(error <= allowed, f"{name}: error {error:.2e}, allowed {allowed:.2e}")
        require((carry[1].double()[kept] - logs[kept]).abs().max() < 1e-3 and torch.isneginf(carry[1][~kept]).all(), f"{name}: lse")
        worst = max(worst, error / allowed)
    return f"worst error {100 * worst:.0f} % of the allowed one"


@check()
def gradients_are_refused(place):
    q, k, v = place.draw(n=64)
    q.requires_grad_()
    for call in (heddle.attention, heddle.prepare, torch.compile(lambda *each: heddle.attention(*each), backend="aot_eager")):
        try:
            call(q, k, v, "causal")
            require(False, "a call with gradients passed")
        except heddle.UnsupportedError as error:
            require("no_grad" in str(error), str(error))


@check()
def bad_tensors_are_refused(place):
    q, k, v = place.draw(n=64)
    wrong = [(q, k[:, :, :, :32], v), (q, k.float() if place.on_gpu else k.half(), v), (q[0], k, v), (q, k[:1], v)]
    wrong += [(q, k.cpu(), v), (q[..., ::2], k[..., ::2], v)] if place.on_gpu else []
    for tensors in wrong:
        try:
            heddle.attention(*tensors, "causal")
            require(False, f"passed: {[tuple(each.shape) for each in tensors]}")
        except heddle.InvalidArgumentError:
            pass


@check()
def compiled_and_exported(place):
    """One graph each, also for other lengths; an exported program that was written and read again."""
    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return heddle.attention(q * 2, k, v, "sliding_window", left=50) + 1

    q, k, v = place.draw(n=300)
    wanted = Model()(q, k, v)
    seconds = {}
    for backend in ("aot_eager", "inductor"):
        start = time.perf_counter()
        try:
            require(torch.equal(torch.compile(Model(), backend=backend, fullgraph=True)(q, k, v), wanted), f"torch.compile {backend}")
            seconds[backend] = f"{backend} {time.perf_counter() - start:.1f} s"
        except AssertionError:
            raise
        except Exception as error:  # no compiler for inductor's own kernels on this machine
            require(backend == "inductor", repr(error))
            seconds[backend] = f"inductor: {type(error).__name__} (none of ours)"
    program = torch.export.export(Model(), (q, k, v), dynamic_shapes=[{1: torch.export.Dim("n", min=2, max=9999)}] * 3)
    torch.export.save(program, os.path.join(place.scratch, "model.pt2"))
    again = torch.export.load(os.path.join(place.scratch, "model.pt2")).module()
    other = place.draw(n=411)
    require(torch.equal(again(*other), Model()(*other)), "torch.export")
    return ", ".join(seconds.values())


@check("gpu")
def streams(place):
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
        require(torch.equal(out, wanted), "the call did not wait for its stream")


@check("gpu")
def dropped_while_queued(place):
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
    require(not {each.data_ptr() for each in others} & set(addresses), "memory that is still written was given away")
    place.wait()


@check("gpu")
def cupy_arrays(place):
    """On a stream of their own; its workspaces are given to others after its work, and nothing is loaded while it is captured."""
    try:
        import cupy
    except ImportError:
        return "not run: no CuPy here"
    q, k, v = (each.half() for each in place.draw())
    wanted = heddle.attention(q, k, v, "causal")
    place.wait()
    q, k, v = map(cupy.from_dlpack, (q, k, v))
    side = cupy.cuda.Stream(non_blocking=True)
    out = heddle.attention(q, k, v, "causal", stream=side.ptr)
    side.synchronize()
    require(torch.equal(torch.from_dlpack(out), wanted), "a call on CuPy's arrays")
    with _dlpack.stream_of(q, side.ptr):
        workspace = _dlpack.empty(q, (1 << 20,), "fp32")
    address = workspace.data.ptr
    del workspace
    require(cupy.empty(1 << 20, cupy.float32).data.ptr != address, "the default stream got the memory of another")
    with side:
        require(cupy.empty(1 << 20, cupy.float32).data.ptr == address, "the memory did not belong to its stream")
    side.begin_capture()
    seen = _driver.is_captured(side.ptr)
    side.end_capture()
    require(seen and not _driver.is_captured(side.ptr), "is_captured")


@check("gpu")
def cuda_graph(place):
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
        require(torch.equal(call.out, heddle.attention(q, k, v, "sliding_window", left=99)), "prepared call in a graph")
        require(torch.equal(other, heddle.attention(q, k, v, "causal")), "heddle.attention in a graph")


@check("gpu")
def loaded_while_captured(place):
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
    require(not failures, str(failures))
    require(torch.equal(call.out, heddle.attention(q, k, v, "causal")), "the captured call")


@check("gpu")
def threads(place):
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
    require(not wrong, f"threads {sorted(set(wrong))} differ")


@check("gpu")
def lengths(place):
    """10,000 lengths, one kernel."""
    q, k, v = place.draw(batch=1, n=10_000, heads=1, kv=1)
    kernels, start = set(), time.perf_counter()
    for n in range(1, 10_001):
        heddle.attention(q[:, :n], k[:, :n], v[:, :n], "sliding_window", left=63)
        if n % 500 == 0:
            kernels.add(heddle.kernel(q[:, :n], k[:, :n], v[:, :n], "sliding_window", left=63).content_key)
    place.wait()
    require(len(kernels) == 1, f"{len(kernels)} kernels")
    return f"{1e6 * (time.perf_counter() - start) / 10_000:.0f} us a new length"


@check("gpu")
def memory(place):
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
    require(beyond <= 4096, f"{beyond} bytes beyond results and the stated {stated}")
    return f"{beyond} bytes beyond (blocks of PyTorch's allocator rounded up), workspace {stated}, outside of PyTorch {max(outside, 0) >> 20} MiB"


def burst_us(call, wait, burst=200):
    """Of one call that only queues: a burst that fits into the queue, the GPU idle before it."""
    wait()
    start = time.perf_counter()
    for _ in range(burst):
        call()
    return 1e6 * (time.perf_counter() - start) / burst


def host_us(calls, wait, rounds=50, pause=0.03):
    """By name, the median of bursts in turn: processors of shared machines are half as fast for some tenths of a second now and then."""
    times = {name: [] for name in calls}
    for _ in range(rounds):
        time.sleep(pause)
        for name, call in calls.items():
            times[name].append(burst_us(call, wait))
    return {name: statistics.median(each) for name, each in times.items()}


@check("gpu")
def host_cost(place):
    """At most 12 us a prepared call and 25 us a heddle.attention of a small tensor; SDPA of the same run beside them."""
    q, k, v = place.draw(batch=1, n=128, heads=4, kv=4)
    near = heddle.library("sliding_window", left=63)
    call, out = heddle.prepare(q, k, v, near), torch.empty_like(q)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    tq, tk, tv = (each.transpose(1, 2).contiguous() for each in (q, k, v))
    with torch.inference_mode():
        figures = host_us({"prepared": call, "attention": lambda: heddle.attention(q, k, v, near),
                           "attention left=": lambda: heddle.attention(q, k, v, near, left=31),
                           "attention by name": lambda: heddle.attention(q, k, v, "causal"),
                           "attention out=": lambda: heddle.attention(q, k, v, near, out=out),
                           "sdpa causal": lambda: sdpa(tq, tk, tv, is_causal=True)}, place.wait)
    RESULTS["host_us"] = {name: round(value, 2) for name, value in figures.items()}
    said = ", ".join(f"{name} {value:.1f}" for name, value in figures.items())
    require(figures["prepared"] <= 12 and figures["attention"] <= 25, said)
    return said + " us"


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
    require(done.returncode == 0, done.stderr.strip()[-300:])
    return [float(each) for each in done.stdout.split()]


@check("gpu")
def first_calls(place):
    """Cold (the portable default is compiled) at most 1.5 s, with a warm database at most 30 ms; `import heddle` is told apart."""
    figures = {}
    for pattern in ("causal", "sliding_window"):
        database = os.path.join(place.scratch, f"{pattern}.db")
        imported, cold = first_call(database, pattern)
        warm = min(first_call(database, pattern)[1] for _ in range(3))
        figures[pattern] = dict(import_ms=round(imported, 1), cold_ms=round(cold, 1), warm_ms=round(warm, 1))
    RESULTS["first_call"] = figures
    said = "; ".join(f"{name} import {each['import_ms']:.0f}, cold {each['cold_ms']:.0f}, warm {each['warm_ms']:.1f} ms" for name, each in figures.items())
    require(all(each["cold_ms"] <= 1500 and each["warm_ms"] <= 30 for each in figures.values()), said)
    return said


@check("gpu")
def tuned(place):
    """A search of 4 s files a winner that calls then use."""
    q, k, v = place.draw(batch=1, n=4096, heads=8, kv=8, d=128)
    heddle.attention(q, k, v, "causal")
    winner = heddle.tune("causal", q, k, v, budget=4)
    found = heddle.kernel(q, k, v, "causal")
    require(found.median_us > 0 and found.content_key == winner.content_key, f"{found} is not {winner}")
    out = heddle.attention(q, k, v, "causal")
    sdpa = torch.nn.functional.scaled_dot_product_attention(*(each.transpose(1, 2) for each in (q, k, v)), is_causal=True).transpose(1, 2)
    require((out.double() - sdpa.double()).abs().max() < 3e-2, "the winner computes something else")
    return f"{winner.median_us:.1f} us, {winner.match}"


@check()
def modules(place):
    module = nn.MultiheadDilatedAttention(256, 4, [1, 2, 4], [64, 128, 512], mixed=True, device=place.device, dtype=place.dtype).eval()
    x = torch.randn(2, 777, 256, device=place.device).to(place.dtype)
    with torch.inference_mode():
        out, _ = module(x, x, x, is_causal=True)
        changed = x.clone()
        changed[:, 500:] = 0
        later, _ = module(changed, changed, changed, is_causal=True)
    require(torch.isfinite(out).all() and torch.equal(out[:, :500], later[:, :500]), "causal rows see what comes later")
    flex = heddle.flex_attention(*(each.transpose(1, 2) for each in place.draw()), block_mask=full, enable_gqa=True)
    require((flex.transpose(1, 2) - heddle.attention(*place.draw(), "full")).abs().max() == 0, "flex_attention")


# ---------------------------------------------------------------- running
RESULTS = {}


def run(name, function, place):
    start = time.perf_counter()
    try:
        with time_limit(place.limit):
            said, ok = function(place) or "", True
    except Exception as error:
        said, ok = f"{type(error).__name__}: {error}", False
    seconds = time.perf_counter() - start
    print(f"{'ok  ' if ok else 'FAIL'} {name:24} {seconds:5.1f} s  {said}"[:400], flush=True)
    return dict(ok=ok, seconds=round(seconds, 2), said=said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--only", default="", help="names of checks, separated by commas")
    parser.add_argument("--limit", type=float, default=300, help="seconds of a check; one that hangs ends the program [300]")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    given = parser.parse_args()
    place = Place(given.device, given.limit)
    heddle.configure(database=os.path.join(place.scratch, "kernels.db"), first="best")
    RESULTS["gpu"] = torch.cuda.get_device_name() if place.on_gpu else "none"
    RESULTS["torch"], RESULTS["heddle"] = torch.__version__, heddle.version()
    chosen = [each for each in CHECKS if (place.on_gpu or "gpu" not in each[2]) and (not given.only or each[0] in given.only.split(","))]
    RESULTS["checks"] = {name: run(name, function, place) for name, function, _ in chosen}
    failed = [name for name, each in RESULTS["checks"].items() if not each["ok"]]
    print(f"{len(chosen) - len(failed)} of {len(chosen)} checks on {RESULTS['gpu']}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(RESULTS, file, indent=1)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
