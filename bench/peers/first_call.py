"""The first call of a fresh process. Processes are forked from one that has imported torch and nothing else, so that they have
no context, no compiled code and no caches in memory. torch is imported in them only.

A first call begins with tensors on the GPU and its modules imported, and ends with the result there: libraries are loaded, masks
made, kernels found or compiled in it. Cold: the folders for caches and databases are empty. Warm: another process did the same before.
"""
import contextlib
import importlib
import multiprocessing
import os
import shutil
import tempfile
import time

from peers.cell import describe
from peers.columns import NotMeasured


class FirstCalls:
    """`request`: what a process needs to build the provider anew, for `build`: (request, workload's name, provider's name, folder of
    caches) -> what is timed, which returns a Launch."""

    def __init__(self, request, limit_s=80, build=None):
        self.request, self.limit_s, self.build = request, limit_s, build or built
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["torch"])

    def measure(self, workload, provider):
        """{"cold": seconds, "warm": seconds}, without cold where that is no question, of one process where there are no caches to fill;
        NotMeasured says what went wrong."""
        caches = tempfile.mkdtemp(prefix="first_call.")
        try:
            if not provider.keeps_caches:
                return dict.fromkeys(("cold", "warm"), self._once("cold", workload.name, provider.name, caches))
            kinds = ("warm",) if provider.never_cold else ("cold", "warm")
            return {kind: self._once(kind, workload.name, provider.name, caches) for kind in kinds}
        finally:
            shutil.rmtree(caches, ignore_errors=True)

    def _once(self, kind, workload, provider, caches):
        receiver, sender = self.context.Pipe(duplex=False)
        process = self.context.Process(target=_call, args=(sender, self.build, self.request, workload, provider, caches))
        process.start()
        sender.close()
        try:
            if not receiver.poll(self.limit_s):
                raise NotMeasured(f"{kind}: still running after {self.limit_s} s")
            answer = receiver.recv()
        except EOFError:
            process.join(10)
            raise NotMeasured(f"{kind}: its process ended with {process.exitcode}") from None
        finally:
            process.kill()
            process.join()
        if isinstance(answer, str):
            raise NotMeasured(f"{kind}: {answer}")
        return answer


def _call(sender, build, request, workload, provider, caches):
    for variable in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME"):
        os.environ[variable] = os.path.join(caches, variable.lower())
    for variable in ("HEDDLE_DB", "HEDDLE_SHIPPED_DB"):
        os.environ.pop(variable, None)
    try:
        call = build(request, workload, provider, caches)
        start = time.perf_counter()
        launch = call()
        answer = time.perf_counter() - start
        if launch.settle:
            with contextlib.suppress(Exception):  # the next process begins with less, then
                launch.settle()
    except Exception as error:
        answer = describe(error)
    with contextlib.suppress(BrokenPipeError):  # whoever asked was ended meanwhile
        sender.send(answer)


def built(request, workload_name, provider_name, caches):
    """Tensors and a context, with the modules that a program would have imported; the call that is timed."""
    from peers import gpu as gpus, own, plugins, providers
    bench = plugins.Bench(request["plugins"])
    workload = bench.find(workload_name)
    gpu = gpus.Gpu()
    gpu.start()
    q, k, v = gpu.inputs(workload)
    known = providers.Providers(own.Runtime(request["library"]), request["db"], added=bench.providers, caches=caches)
    provider = known.named(workload, provider_name)
    for module in provider.modules:
        importlib.import_module(module)
    gpu.synchronize()

    def call():
        launch = provider.make(workload, q, k, v)
        if launch is None:
            raise NotMeasured("it does not apply")
        with launch.context():
            launch.run()
            gpu.synchronize()
        return launch

    return call
