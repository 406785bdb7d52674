"""The measuring process of bench/peers.py with providers of a plug-in and the processor in place of a GPU. Skipped without torch."""
import io
import json
import os
import sys
import tempfile
import time
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
sys.dont_write_bytecode = True

try:
    import torch
except ImportError:
    print("skipped: no torch")
    sys.exit(0)

from peers import columns, gpu, session  # noqa: E402

PLUGIN = """
import torch
from peers.launch import Launch, Provider
from peers.masks import Window
from peers.workload import Workload

WORKLOADS = [Workload("window", "patterns/sliding_window.mlir", Window(7, 0), 1, 2, 40, 16, sizes=(("left", 7),))]


def heads_second(*tensors):
    return (tensor.transpose(1, 2) for tensor in tensors)


def masked(workload, q, k, v):
    places = torch.arange(workload.seqlen)
    ahead = places[:, None] - places
    mask = (ahead >= 0) & (ahead <= 7)
    q, k, v = heads_second(q, k, v)
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)


def right(*arguments):
    return Launch(masked(*arguments))


def unmasked(workload, q, k, v):
    q, k, v = heads_second(q, k, v)
    return Launch(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2))


def unsteady(*arguments):
    run, calls = masked(*arguments), []

    def other_bits():
        calls.append(1)
        return run() * (1 + 2 ** -7 * (len(calls) % 2))
    return Launch(other_bits, is_exact=True)


def unwritten(workload, q, k, v):
    out = torch.zeros_like(q)
    return Launch(lambda: out, is_exact=True, poison=lambda: out.fill_(float("nan")))


def broken(workload, q, k, v):
    raise NotImplementedError("only on Sundays\\nand holidays")


PROVIDERS = [Provider("own " + make.__name__, make) for make in (right, unmasked, unsteady, unwritten, broken)]
PROVIDERS += [Provider("own absent", lambda *_: None), Provider("own crashed", right)]
"""


class Host(gpu.Gpu):
    device = "cpu"

    def start(self):
        self.allocated = self.reserved = self.used = self.peak = lambda: 0
        self.synchronize = self.empty_cache = self.reset_peak = lambda: None

    def name(self):
        return "the processor"

    def launch_ms(self, run):
        start = time.perf_counter()
        run()
        return 1e3 * (time.perf_counter() - start)

    def product(self):
        return lambda: time.sleep(0.001)


class Sessions(unittest.TestCase):
    def test_row(self):
        lines = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.py")
            with open(path, "w") as file:
                file.write(PLUGIN)
            skips = [json.dumps(["window", "own crashed", "run", "it crashed"]), json.dumps(["window", "own right", "host_us", "it hung"])]
            options = types.SimpleNamespace(plugin=[path], library="", db=folder, providers=["own *"], reps=2, skip=skips, turns=None,
                                            chosen_columns=columns.chosen(columns.STANDARD, ["times", "host_us", "memory_bytes"]))
            made = session.Session(options, session.Lines(lines), Host())
            self.assertEqual(made.machine()["GPU"], "the processor")
            row = made.measure(made.bench.find("window"))
        entries = {entry["name"]: entry for entry in row["entries"]}
        self.assertEqual({name: entry["ok"] for name, entry in entries.items()},
                         {"own right": True, "own unmasked": False, "own unsteady": False, "own unwritten": False})
        self.assertEqual(row["failed"], {"own broken": "only on Sundays", "own crashed": "it crashed"})
        self.assertEqual(entries["own unsteady"]["note"], "results differ between launches")
        self.assertTrue(entries["own unwritten"]["nan"])
        right = entries["own right"]
        self.assertLess(right["values"]["error"], 1e-2)
        self.assertEqual((right["values"]["memory_bytes"], right["values"]["ms"]), (0, right["ms"]))
        self.assertEqual(right["no_value"], {"lse_error": "it returns no lse", "host_us": "it hung"})
        self.assertEqual(entries["own unmasked"]["no_value"]["memory_bytes"], "the result is wrong")
        self.check_steps(lines.getvalue())

    def check_steps(self, text):
        """Each step was named before it began."""
        steps = [line["doing"] for line in map(json.loads, text.splitlines())]
        for step in (["window", "own broken", "run"], ["window", "own right", "run"], ["window", "own right", "memory_bytes"]):
            self.assertIn(step, steps)
        self.assertNotIn(["window", "own crashed", "run"], steps)
        self.assertNotIn(["window", "own right", "host_us"], steps)
        self.assertIsNone(steps[-1])


if __name__ == "__main__":
    unittest.main()
