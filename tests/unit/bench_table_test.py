"""bench/peers.py without a GPU and without torch: which workloads, columns and providers are asked for, what columns measure with a
stand-in for the GPU, plug-ins, and tables."""
import contextlib
import os
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

from bench_support import EXAMPLE, ROOT, SCRIPT, WORKLOAD, FakeFirstCalls, FakeGpu, FakeTime, make_cell, parse, script

from peers import cell, columns, first_call, measures, own, providers, report
from peers.launch import Launch, Provider
from peers.plugins import Bench, PluginError
from peers.timing import Rounds
from peers.workloads import DEFAULT, GROUPS, WORKLOADS, find

OUT_BYTES, LSE_BYTES = 2 * 8 * 256 * 64, 4 * 8 * 256


class Measures(unittest.TestCase):
    def setUp(self):
        self.gpu, self.time = FakeGpu(), FakeTime()
        faked = unittest.mock.patch.object(measures, "time", self.time)
        faked.start()
        self.addCleanup(faked.stop)

    def allocating(self, *, held, temporary=0, lse=None):
        def run():
            out = self.gpu.allocate(held)
            self.gpu.allocate(temporary)
            return (out, self.gpu.allocate(lse)) if lse else out
        return run

    def memory(self, launch):
        return measures.memory(launch, WORKLOAD, self.gpu)

    def test_results_are_no_memory_of_a_call(self):
        self.assertEqual(self.memory(Launch(self.allocating(held=OUT_BYTES)))["total"], 0)
        self.assertEqual(self.memory(Launch(self.allocating(held=OUT_BYTES, lse=LSE_BYTES)))["total"], 0)
        self.assertEqual(self.memory(Launch(lambda: None))["total"], 0)

    def test_what_a_call_holds_beside_its_results(self):
        found = self.memory(Launch(self.allocating(held=OUT_BYTES, temporary=5000), workspace_bytes=300))
        self.assertEqual((found["temporary"], found["workspace"], found["total"]), (5000, 300, 5300))
        self.assertEqual(self.memory(Launch(self.allocating(held=OUT_BYTES + 40)))["total"], 40)
        self.assertEqual(self.memory(Launch(self.allocating(held=OUT_BYTES, lse=None, temporary=LSE_BYTES)))["total"], LSE_BYTES)

    def test_memory_past_the_allocator(self):
        def leak():
            self.gpu.outside += 1 << 20
        self.assertEqual(self.memory(Launch(leak))["outside"], 1 << 20)

    def test_set_up(self):
        def mask():
            self.gpu.allocate(700)
            self.time.sleep(0.25)
            return self.gpu.allocate(500)
        found = measures.set_up(Launch(lambda: None, set_up=mask), self.gpu)
        self.assertEqual((found["kept"], found["peak"], found["seconds"]), (500, 700, 0.25))
        self.assertEqual(self.gpu.now, 0)
        made = []
        measures.set_up(Launch(lambda: None, set_up=lambda: made.append(self.time.sleep(0.02))), self.gpu, limit_s=0.01)
        self.assertEqual(len(made), 2)  # once to warm up
        self.assertEqual(measures.set_up(Launch(lambda: None), self.gpu), {"seconds": 0.0, "kept": 0, "peak": 0})

    def test_host_time_of_a_call(self):
        calls = []

        def run():
            calls.append(1)
            self.time.sleep(0.25)
        self.assertEqual(measures.host_us(Launch(run), self.gpu, 1.0), 250_000)
        self.assertEqual(len(calls), 5 * 50)
        calls.clear()
        measures.host_us(Launch(run), self.gpu, 50.0)  # slow kernels: few, so that the queue does not fill
        self.assertEqual(len(calls), 5 * 4)

    def test_rounds(self):
        """Every launch once in each round, in its context, and two rounds that do not count."""
        order, inside = [], []

        @contextlib.contextmanager
        def context():
            inside.append(True)
            yield
            inside.pop()
        launches = {"a": Launch(lambda: order.append("a")), "b": Launch(lambda: order.append("b" if inside else "outside"), context)}
        times = Rounds(self.gpu).measure(launches, 3)
        self.assertEqual(times, {"a": [1.0] * 3, "b": [1.0] * 3})
        self.assertEqual([sorted(order[i:i + 2]) for i in range(0, 10, 2)], [["a", "b"]] * 5)


class Columns(unittest.TestCase):
    def test_every_column_has_a_value(self):
        first_calls = FakeFirstCalls({"cold": 2.0, "warm": 0.01})
        values, missing = cell.fill(make_cell(first_calls), columns.STANDARD)
        self.assertEqual(missing, {"lse_error": "it returns no lse"})
        self.assertEqual(list(values), [column.name for column in columns.STANDARD if column.name != "lse_error"])
        self.assertEqual((values["ms"], values["first_call_cold_seconds"], values["memory_bytes"]), (2.0, 2.0, 0))
        self.assertEqual(first_calls.asked, 1)

    def test_one_that_fails_costs_itself(self):
        def broken():
            raise ValueError("no such mask\nand more")
        values, missing = cell.fill(make_cell(launch=Launch(lambda: None, set_up=broken)), columns.STANDARD)
        self.assertEqual([missing[name] for name in ("set_up_seconds", "set_up_bytes")], ["no such mask"] * 2)
        self.assertIn("host_us", values)

    def test_no_cold_call(self):
        provider = Provider("p", None, never_cold="nothing is compiled")
        values, missing = cell.fill(make_cell(FakeFirstCalls({"warm": 1.0}), provider), columns.COSTS)
        self.assertEqual((missing["first_call_cold_seconds"], values["first_call_warm_seconds"]), ("nothing is compiled", 1.0))

    def test_host_time_of_few_tokens(self):
        asked = make_cell(workload=WORKLOADS["win4k_1m"])
        self.assertGreater(asked.host_small_us(), 0)
        self.assertEqual(asked.gpu.asked, "1x8x256x128")
        with self.assertRaisesRegex(columns.NotMeasured, "it does not apply to 256 tokens"):
            make_cell(provider=Provider("p", lambda *_: None)).host_small_us()
        with self.assertRaisesRegex(ValueError, "its mask has one length"):
            make_cell(workload=WORKLOADS["document_32k"]).host_small_us()

    def test_skipped_are_not_tried_and_steps_are_told(self):
        told = []
        _, missing = cell.fill(make_cell(), columns.STANDARD[:2], {"ms": "it crashed"}, told.append)
        self.assertEqual((missing, told), ({"ms": "it crashed"}, ["range", None]))

    def test_an_error_that_the_gpu_keeps_is_raised(self):
        broken = make_cell()

        def dead():
            raise RuntimeError("illegal memory access")
        broken.gpu.synchronize = dead
        told = []
        with self.assertRaisesRegex(RuntimeError, "illegal memory access"):
            cell.fill(broken, [columns.COSTS[0]], doing=told.append)
        self.assertEqual(told, ["memory_bytes"])

    def test_choice(self):
        names = [column.name for column in columns.chosen(columns.STANDARD, ["first_*", "ms"])]
        self.assertEqual(names, ["ms", "first_call_cold_seconds", "first_call_warm_seconds"])
        self.assertEqual(columns.chosen(columns.STANDARD, ["times"]), list(columns.TIMES))
        with self.assertRaisesRegex(ValueError, "no column speed; there are ms range"):
            columns.chosen(columns.STANDARD, ["speed"])

    def test_texts(self):
        self.assertEqual([columns.bytes_text(count) for count in (0, 999, 1500, 17_000_000_000)], ["0", "999", "1.5 KB", "17 GB"])
        self.assertEqual([columns.seconds_text(seconds) for seconds in (0, 12e-6, 0.03, 2.5)], ["0", "12 us", "30 ms", "2.5 s"])


def built(request, workload, provider, caches):
    """A provider that is slow until its folder holds a file, by a clock of its process."""
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"].startswith(caches) and "HEDDLE_DB" not in os.environ
    path = os.path.join(caches, "compiled")
    first_call.time = FakeTime()

    def call():
        if provider == "crashes":
            os._exit(9)
        if provider == "hangs":
            time.sleep(86400)
        if provider == "raises":
            raise ValueError("not on this GPU")
        if not os.path.exists(path):
            first_call.time.sleep(0.3)
        return Launch(lambda: None, settle=lambda: open(path, "w").close())
    return call


class FirstCalls(unittest.TestCase):
    def measure(self, name, limit_s=60, **more):
        calls = first_call.FirstCalls({}, limit_s, built)
        return calls.measure(WORKLOAD, Provider(name, None, **more))

    def test_cold_and_warm(self):
        os.environ["HEDDLE_DB"] = "/nowhere"
        self.assertEqual(self.measure("works"), {"cold": 0.3, "warm": 0.0})
        self.assertEqual(list(self.measure("works", never_cold="always there")), ["warm"])
        self.assertEqual(self.measure("works", keeps_caches=False), {"cold": 0.3, "warm": 0.3})

    def test_processes_that_fail(self):
        for name, limit, text in (("crashes", 60, "cold: its process ended with 9"), ("raises", 60, "cold: not on this GPU"),
                                  ("hangs", 0.5, "cold: still running after 0.5 s")):
            with self.subTest(name), self.assertRaisesRegex(columns.NotMeasured, text):
                self.measure(name, limit)


class FakePackage(types.ModuleType):
    """`heddle` as a program imports it; records what it is asked."""

    def __init__(self, has_compiler=True):
        super().__init__("heddle")
        self.configured, self.calls, self.has_compiler = [], [], lambda: has_compiler

    def configure(self, **settings):
        self.configured.append(settings)

    def load(self, path):
        assert os.path.exists(path)
        return os.path.basename(path)

    def attention(self, *tensors, **given):
        self.calls.append(given)
        return "out", "lse"

    def prepare(self, *tensors, **given):
        self.calls.append(given)

        def call():
            return call.out
        call.out, call.lse, call.workspace = "out", "lse", types.SimpleNamespace(numel=lambda: 640)
        call.kernel = types.SimpleNamespace(config="block_m=128", arch="g", match="exact", registers=128, spill_bytes=0, note="")
        return call

    def kernel(self, *tensors, **given):
        self.calls.append(given)


class Package(unittest.TestCase):
    WORKLOAD = WORKLOADS["win1k_32k"]
    TENSORS = [types.SimpleNamespace(device="cuda")] * 3
    GIVEN = {"pattern": "sliding_window.mlir", "left": 1023}

    def launches(self, folder, caches=None, **more):
        self.package = sys.modules["heddle"] = FakePackage(**more)
        self.addCleanup(sys.modules.pop, "heddle")
        return [provider.make(self.WORKLOAD, *self.TENSORS) for provider in own.Package(folder, caches).providers()]

    def test_kernels_that_were_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            stored = os.path.join(folder, "win1k_32k.default.db")
            open(stored, "w").close()
            attention, prepared = self.launches(folder)
            self.assertEqual(self.package.configured, [{"database": os.path.join(folder, "package.compiled"), "shipped": (stored,), "first": "best"}])
        self.assertEqual((attention.run(), prepared.run()), (("out", "lse"), ("out", "lse")))
        self.assertEqual((prepared.workspace_bytes, prepared.info["config"], attention.settle), (640, "block_m=128", None))
        self.assertEqual(self.package.calls, [self.GIVEN, {**self.GIVEN, "return_lse": True}])

    def test_first_call_has_a_database_of_its_own(self):
        attention, _ = self.launches("unused", "/caches")
        self.assertEqual(self.package.configured, [{"database": "/caches/package.compiled"}])
        attention.settle()
        self.assertEqual(self.package.configured[1:], [{"database": "/caches/package.compiled", "first": "best"}])
        self.assertEqual(self.package.calls[-1], self.GIVEN)

    def test_package_without_compiler(self):
        with self.assertRaisesRegex(RuntimeError, "a pattern file needs the compiler"):
            self.launches("unused", has_compiler=False)

    def test_no_package(self):
        providers_ = own.Package("unused").providers()
        sys.modules["heddle"] = None
        self.addCleanup(sys.modules.pop, "heddle")
        with self.assertRaises(ImportError):
            providers_[0].make(self.WORKLOAD, *self.TENSORS)

    def test_choice_of_providers(self):
        def names(*globs):
            with tempfile.TemporaryDirectory() as folder:
                open(os.path.join(folder, "win1k_32k.db"), "w").close()
                return [provider.name for provider in providers.Providers("runtime", folder, globs, [Provider("mine", None)]).of(self.WORKLOAD)]
        self.assertEqual(names("heddle*", "mine"), ["heddle", "heddle.attention", "heddle.prepare", "mine"])
        self.assertEqual(set(names("*")) - set(names("fast")), {"FlexAttention", "SDPA with a mask"})
        self.assertEqual([provider.name for provider in providers.PEERS if provider.keeps_caches], ["FlexAttention"])


class Selection(unittest.TestCase):
    def test_names(self):
        bench = Bench()
        self.assertEqual(bench.names(["marks", "dense_8k_d128"]), DEFAULT)
        self.assertEqual(bench.names(["causal_*k_d64", "small_w*"]), ["causal_8k_d64", "causal_32k_d64", "small_window"])
        self.assertEqual(bench.names(["library_causal_1m_d256_gqa"]), ["library_causal_1m_d256_gqa"])
        self.assertEqual(len(bench.names(["library_longnet_1m*"])), 6)
        with self.assertRaisesRegex(PluginError, "no workload casual; --list names .* groups: marks kernels"):
            bench.names(["casual"])

    def test_library_at_any_size(self):
        found = find("library_sliding_window_512k_d128_gqa")
        self.assertEqual((found.shape_text(), found.sizes), ("1x12[3]x524288x128", (("left", 1023),)))
        self.assertEqual(find("library_causal_8k"), WORKLOADS["library_causal_8k"])
        self.assertEqual(find("library_tree_decode_2k_d256").shape_text(), "1x12x64/2048x256")
        for name in ("library_causal_3k", "library_nothing_8k", "library_causal_8k_d96"):
            self.assertIsNone(find(name))

    def test_sweep(self):
        """Every pattern, length from 2k to 1M, head dim, and shared keys; nothing that grows with the square at a million."""
        sweep = [find(name) for name in GROUPS["sweep"]]
        self.assertEqual({workload.seqlen for workload in sweep}, {2048, 8192, 32768, 131072, 1048576})
        self.assertEqual({workload.head_dim for workload in sweep}, {64, 128, 256})
        files_ = {file for file in os.listdir(os.path.join(ROOT, "patterns")) if file.endswith(".mlir")}
        self.assertEqual({os.path.basename(workload.pattern) for workload in sweep}, files_)
        self.assertEqual({workload.heads % workload.kv for workload in sweep}, {0})
        longest = [workload for workload in sweep if workload.seqlen == 1048576 and workload.head_dim == 64]
        self.assertLess(max(workload.flops for workload in longest), 1e14)

    def test_shards(self):
        names = list("abcde")
        self.assertEqual([script.shard(names, f"{i}/2") for i in (1, 2)], [["a", "c", "e"], ["b", "d"]])
        for text in ("0/2", "3/2", "2", "a/b"):
            self.assertIn("--shard: expected ", parse(f"--shard={text}", "--list"))

    def test_command_line(self):
        self.assertEqual(parse("--list").workloads, [])
        self.assertEqual(parse("--db=d", "--library=l", "--output=o").workloads, DEFAULT)
        self.assertIn("no workload nothing", parse("nothing"))
        self.assertIn("no column nothing", parse("--columns=nothing"))
        self.assertEqual(parse("--output=o", "--library=l"), "expected --db, a folder of databases")
        self.assertEqual(parse("--output=o", "--db=d"), "expected --library with --output")
        self.assertEqual(parse("--build", "--db=d"), "expected --heddle with --build")
        self.assertEqual(parse("--db=d", "--processes=0"), "expected at least 1 process, got 0")
        self.assertEqual(parse("--db=d", "--reps=0"), "expected at least 1 timed launch, got --reps=0")
        self.assertEqual(parse("--merge=a.json"), "expected --output with --merge and --resume")

    def test_gradients(self):
        """Those of any workload, and those that have targets."""
        self.assertEqual(parse("--backward", "--list", "small_*", "library_causal_2k").workloads,
                         ["small_dense_backward", "small_causal_backward", "small_window_backward", "library_causal_2k_backward"])
        marks = parse("--backward", "--db=d", "--library=l", "--output=o").workloads
        self.assertEqual(parse("--backward", "--list").workloads, marks)
        self.assertEqual(len(marks), 12)
        for name in marks:
            self.assertTrue(find(name).backward and find(name).target, name)
        self.assertIsNone(find("nothing_backward"))
        found = parse("--backward", "--list", "--plugin", EXAMPLE, "plugin_example")
        self.assertEqual(found.workloads, ["example_window_backward"])
        self.assertTrue(found.bench.find("example_window_backward").backward)

    def test_list(self):
        done = subprocess.run([sys.executable, SCRIPT, "--list", "--plugin", EXAMPLE, "small_*", "example_window"], capture_output=True, text=True)
        lines = done.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[:4]], ["small_dense", "small_causal", "small_window", "example_window"])
        self.assertIn("  host_us: host us, us", lines)
        self.assertIn("plugin_example (1)", done.stdout)


class Plugins(unittest.TestCase):
    def test_example(self):
        bench = Bench([EXAMPLE])
        self.assertEqual(bench.names(["plugin_example"]), ["example_window"])
        workload = bench.find("example_window")
        self.assertEqual(workload.kept_pairs, 4 * sum(min(512, q + 1) for q in range(4096)))
        added = [column for column in bench.columns if column not in columns.STANDARD]
        values, missing = cell.fill(make_cell(), added)
        self.assertEqual((values, missing), ({"gigabytes_per_s": 4 * 2 * 8 * 256 * 64 / 2e-3 / 1e9}, {}))
        self.assertEqual([provider.name for provider in bench.providers], ["SDPA, math"])

    def test_flash_attention_3(self):
        """Its calls are asked for where they compute the pattern."""
        bench = Bench([os.path.join(ROOT, "bench", "fa3_plugin.py")])
        self.assertEqual([provider.name for provider in bench.providers], ["FA3", "FA3 on the view"])
        self.assertTrue(all(provider.makes_gradients for provider in bench.providers))
        for name in ("longformer_32k", "causal_8k_d256", "library_alibi_8k", "document_32k_backward"):
            for provider in bench.providers:
                self.assertIsNone(provider.make(find(name), None, None, None), name)

    def test_refusals(self):
        with tempfile.TemporaryDirectory() as folder:
            def refused(text):
                path = os.path.join(folder, "mine.py")
                with open(path, "w") as file:
                    file.write(text)
                with self.assertRaises(PluginError) as caught:
                    Bench([path])
                return str(caught.exception)[len(path):]
            self.assertEqual(refused("x = 1"), ": expected one of the lists WORKLOADS, COLUMNS, PROVIDERS")
            self.assertEqual(refused("COLUMNS = ['ms']"), ": COLUMNS: expected peers.columns.Column, got 'ms'")
            self.assertEqual(refused("from peers.columns import Column\nCOLUMNS = [Column('ms', 'ms', None)]"), ": COLUMNS: there is already one named ms")
            self.assertEqual(refused("from peers.launch import Provider\nPROVIDERS = [Provider('cuDNN', None)]"),
                             ": PROVIDERS: there is already one named cuDNN")
            self.assertEqual(refused("import nothing_like_it"), ": ModuleNotFoundError: No module named 'nothing_like_it'")
        with self.assertRaisesRegex(PluginError, "/nowhere.py: no such file"):
            Bench(["/nowhere.py"])


class Tables(unittest.TestCase):
    def results(self):
        entry = report.entry("heddle", WORKLOAD, [0.5], 1.4, {"error": 1e-3, "ok": True, "nan": False, "rows": 4})
        entry["values"], entry["no_value"] = {"ms": 0.5, "memory_bytes": 2048}, {"host_us": "the queue was full", "set_up_bytes": "the queue was full"}
        peer = dict(entry, name="FA2", ms=1.0, ok=False)
        row = {"name": WORKLOAD.name, "shape": "s", "kept_pairs": 1, "product_tflops": 785.0, "clock": {}, "entries": [peer, entry],
               "failed": {"cuDNN": "refused"}, "judged": {"heddle": "heddle"}}
        return {"date": "today", "command": "c", "machine": {"GPU": "g"}, "method": "m", "workloads": [row], "not_measured": {"win4k_1m": "it hung"}}

    def test_compact(self):
        lines = report.compact(self.results(), columns.STANDARD).splitlines()
        self.assertRegex(lines[1], r"^small_causal +heddle +0\.5000 +- +- +2\.05 KB")
        self.assertRegex(lines[2], "^small_causal +FA2 WRONG ")
        self.assertRegex(lines[3], "^small_causal +cuDNN: refused$")
        self.assertEqual(lines[4], "win4k_1m was not measured: it hung")

    def test_reasons_stand_once(self):
        text = report.markdown(self.results(), columns.STANDARD)
        self.assertIn("- heddle: no set-up keeps, host us: the queue was full (small_causal)\n- cuDNN: refused (small_causal)\n", text)
        self.assertIn("- win4k_1m was not measured: it hung\n", text)

    def test_markdown_has_one_row_for_each_provider(self):
        """The fastest first, and no column that nobody has a value for."""
        rows = report.markdown(self.results(), columns.STANDARD).split("## Every provider\n\n")[1].splitlines()
        self.assertEqual(rows[0], "| workload | provider | ms | memory | right |")
        self.assertEqual(rows[2:4], ["| small_causal | heddle | 0.5000 | 2.05 KB | yes |", "| small_causal | FA2 | 0.5000 | 2.05 KB | **no** |"])

    def test_a_reason_of_many_workloads_counts_them(self):
        results = self.results()
        results["workloads"] = [dict(results["workloads"][0], name=name) for name in "abcd"]
        self.assertIn("- cuDNN: refused (4 workloads)\n", report.markdown(results, columns.STANDARD))


if __name__ == "__main__":
    unittest.main()
