"""What is measured of a launch beside its time. No torch here: `gpu` is a Gpu (gpu.py), or what a test puts in its place.

Bytes are those that were asked for, not what an allocator rounds them up to.
"""
import statistics
import time

from peers.launch import results


def memory(launch, workload, gpu):
    """Device bytes of a call beyond its inputs and outputs, once warm: the workspace that it is given; the most that it holds of
    torch's allocator while it runs, without the results that it returns; what it takes from the device past that allocator."""
    with launch.context():
        _drop(launch.run(), gpu)
        outside = gpu.used() - gpu.reserved()
        before = gpu.allocated()
        gpu.reset_peak()
        returned = launch.run()
        gpu.synchronize()
        returned_bytes = max(0, min(gpu.allocated() - before, _result_bytes(workload, results(returned)[1] is not None)))
        temporary = max(0, gpu.peak() - before - returned_bytes)
        _drop(returned, gpu)
        outside = gpu.used() - gpu.reserved() - outside
    total = launch.workspace_bytes + temporary + max(0, outside)
    return {"workspace": launch.workspace_bytes, "temporary": temporary, "outside": max(0, outside), "total": total}


def _result_bytes(workload, has_lse):
    rows = workload.batch * workload.heads * workload.rows
    if workload.backward:
        return 2 * workload.head_dim * (rows + 2 * workload.batch * workload.kv * workload.seqlen)
    return rows * (2 * workload.head_dim + (4 if has_lse else 0))


def _drop(returned, gpu):
    del returned
    gpu.synchronize()


def set_up(launch, gpu, repetitions=3, limit_s=1.0):
    """Making masks and copies again, which the calls share: seconds, bytes kept, most bytes held meanwhile. Compilers have run. Slow
    ones are made less often."""
    if launch.set_up is None:
        return {"seconds": 0.0, "kept": 0, "peak": 0}
    _drop(launch.set_up(), gpu)
    seconds = []
    for _ in range(repetitions):
        before = gpu.allocated()
        gpu.reset_peak()
        start = time.perf_counter()
        made = launch.set_up()
        gpu.synchronize()
        seconds.append(time.perf_counter() - start)
        kept, peak = gpu.allocated() - before, gpu.peak() - before
        _drop(made, gpu)
        del made
        if sum(seconds) > limit_s:
            break
    return {"seconds": statistics.median(seconds), "kept": kept, "peak": peak}


def host_us(launch, gpu, call_ms, batches=5):
    """Microseconds of this thread for each of many calls that nothing waits for; few enough that the queue to the GPU never fills."""
    calls = max(4, min(50, int(100 / call_ms)))
    seconds = []
    with launch.context():
        for _ in range(batches):
            gpu.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                launch.run()
            seconds.append((time.perf_counter() - start) / calls)
        gpu.synchronize()
    return 1e6 * statistics.median(seconds)
