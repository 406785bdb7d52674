"""What the tests of bench/peers.py share: the program as a module, and stand-ins for the GPU and for processes of a first call."""
import contextlib
import importlib.util
import io
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
sys.dont_write_bytecode = True

from peers import cell, report  # noqa: E402
from peers.launch import Launch, Provider  # noqa: E402
from peers.workloads import WORKLOADS  # noqa: E402

WORKLOAD = WORKLOADS["small_causal"]
SCRIPT = os.path.join(ROOT, "bench", "peers.py")
EXAMPLE = os.path.join(ROOT, "bench", "plugin_example.py")


def load_script():
    specification = importlib.util.spec_from_file_location("peers_script", SCRIPT)
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


script = load_script()


def parse(*arguments):
    """Options, or what the command line says of an error."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            return script.parse(list(arguments))
        except SystemExit:
            return errors.getvalue().split("error: ")[-1].strip()


class FakeGpu:
    """Counts what launches allocate; everything takes the milliseconds that it says."""

    def __init__(self):
        self.now = self.most = self.outside = 0

    def allocate(self, count):
        gpu = self

        class Held:
            def __del__(self):
                gpu.now -= count
        self.now += count
        self.most = max(self.most, self.now)
        return Held()

    def synchronize(self):
        pass

    def empty_cache(self):
        pass

    def inputs(self, workload):
        self.asked = workload.shape_text()
        return None, None, None

    def allocated(self):
        return self.now

    def peak(self):
        return self.most

    def reset_peak(self):
        self.most = self.now

    def reserved(self):
        return 0

    def used(self):
        return self.outside

    def launch_ms(self, run):
        run()
        return 1.0


class FakeTime:
    """In the place of the module: stands, but for sleeps, which take no time."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    time = perf_counter

    def sleep(self, seconds):
        self.now += seconds


class FakeFirstCalls:
    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    def measure(self, workload, provider):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def make_cell(first_calls=None, provider=Provider("p", lambda *_: Launch(lambda: None)), launch=None, workload=WORKLOAD):
    entry = report.entry("p", WORKLOAD, [2.0, 1.0, 3.0], 1.4, {"error": 1e-3, "ok": True, "nan": False, "rows": 4})
    return cell.Cell(workload, provider, entry, launch or Launch(lambda: None), FakeGpu(), first_calls or FakeFirstCalls({"cold": 2.0, "warm": 0.01}))
