"""bench/peers.py and bench/peers.sh from the command line to files of results, without a GPU and without torch: measuring processes that crash
or hang, runs that go on where one ended, and what stands in the files."""
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

from bench_support import EXAMPLE, ROOT, SCRIPT, FakeTime, parse, script

import portable_table
from peers import columns, files, report
from peers import worker as workers
from peers.worker import Worker

# A measuring process: {workload: [what to do]}; "crash P" ends while P is under way unless it is to be left out, "crash" while nothing is.
FAKE_SESSION = """
import json, os, sys, time
plan, path = json.loads(sys.argv[1]), sys.argv[2]
skipped = [json.loads(word[len("--skip="):]) for word in sys.argv[3:] if word.startswith("--skip=")]
def say(**line):
    with open(path, "a") as file:
        print(json.dumps(line), file=file)
say(machine={"GPU": plan.get("GPU", "g")})
for name in (word for word in sys.argv[3:] if not word.startswith("--")):
    say(begin=name)
    failed = {label: reason for workload, label, stage, reason in skipped if workload == name}
    for step in plan.get(name, []):
        what, _, label = step.partition(" ")
        if label in failed:
            continue
        if label:
            say(doing=[name, label, "run"])
        if what == "died":
            say(died=plan.get("reason", "CUDA error: illegal memory access"))
        if what in ("crash", "died"):
            os._exit(7)
        if what == "hang":
            say(hangs=True)
            time.sleep(86400)
        say(doing=None)
    entry = {"name": "heddle", "workload": name, "ok": True, "ms": 1, "tflops": 1, "percent_of_product": 1, "values": {"ms": 1}, "no_value": {}}
    say(row={"name": name, "shape": "", "pattern": "", "entries": [entry], "failed": failed, "judged": {"heddle": "heddle"}, "kept_pairs": 1,
             "product_tflops": 1, "clock": {}})
"""


class HangTime(FakeTime):
    """Passes only while a measuring process hangs."""
    hangs = False

    def sleep(self, seconds):
        time.sleep(seconds)
        self.now += 1000 if self.hangs else 0


class Runs(unittest.TestCase):
    NAMES = ["win1k_32k", "fkodom_32k", "dilwin_32k", "one_range"]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.output = os.path.join(self.folder.name, "out.json")

    def run_with(self, plan, *arguments, names=NAMES, limit=20, expected=0):
        clock = HangTime()

        class Fake(Worker):
            asked = []

            def take(self, part):
                super().take(part)
                clock.hangs |= "hangs" in part

            def command(self, names):
                Fake.asked.append(names)
                clock.hangs = False
                skips = [f"--skip={json.dumps(skip)}" for skip in self.skipped]
                return [sys.executable, "-c", FAKE_SESSION, json.dumps(plan), self.lines, *skips, *names]
        text, patch = io.StringIO(), unittest.mock.patch.object
        with patch(script, "Worker", Fake), patch(script, "time", clock), patch(workers, "time", clock):
            options = parse("--db=d", "--library=l", f"--output={self.output}", "--columns=ms", f"--limit={limit}", *arguments, *names)
            self.assertNotIsInstance(options, str)
            with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
                code = script.run(options)
        self.assertEqual(code, expected)
        self.asked, self.text = Fake.asked, text.getvalue()
        with open(self.output) as file:
            return json.load(file)

    def test_a_workload_is_one_line_of_the_file(self):
        self.run_with({})
        with open(self.output) as file:
            rows = [line for line in file if line.lstrip().startswith('{"name"') and '"entries"' in line]
        self.assertEqual([json.loads(line.rstrip(",\n"))["name"] for line in rows], self.NAMES)

    def test_crash_of_a_provider_costs_that_cell(self):
        found = self.run_with({"fkodom_32k": ["crash FA2", "died cuDNN"]})
        self.assertEqual([row["name"] for row in found["workloads"]], self.NAMES)
        self.assertEqual(found["workloads"][1]["failed"],
                         {"FA2": "the measuring process ended with 7", "cuDNN": "CUDA error: illegal memory access"})
        self.assertEqual(self.asked, [self.NAMES, self.NAMES[1:], self.NAMES[1:]])
        self.assertIn("FA2: the measuring process ended with 7", self.text)

    def test_hang_of_a_provider_costs_that_cell(self):
        found = self.run_with({"dilwin_32k": ["hang FA2"]}, limit=1)
        self.assertEqual(found["workloads"][2]["failed"], {"FA2": "still running after 1 s"})

    def test_crash_of_nothing_in_particular_costs_the_workload(self):
        found = self.run_with({"fkodom_32k": ["crash"]}, expected=1)
        self.assertEqual([row["name"] for row in found["workloads"]], [name for name in self.NAMES if name != "fkodom_32k"])
        self.assertEqual(found["not_measured"], {"fkodom_32k": "the measuring process ended with 7"})

    def test_several_processes(self):
        found = self.run_with({"fkodom_32k": ["crash"]}, "--processes=2", expected=1)
        self.assertEqual([row["name"] for row in found["workloads"]], [name for name in self.NAMES if name != "fkodom_32k"])

    def test_resume(self):
        self.run_with({"fkodom_32k": ["crash"]}, names=self.NAMES[:2], expected=1)
        found = self.run_with({}, "--resume")
        self.assertEqual(self.asked, [self.NAMES[1:]])
        self.assertEqual(([row["name"] for row in found["workloads"]], found["not_measured"]), (self.NAMES, {}))
        self.run_with({}, "--resume")
        self.assertEqual(self.asked, [])

    def test_resume_measures_rows_without_the_columns(self):
        self.run_with({}, names=self.NAMES[:1])
        results = files.Results(self.output, self.NAMES, columns.STANDARD, "", "")
        results.resume(self.output)
        self.assertEqual(results.missing(self.NAMES[:1]), self.NAMES[:1])

    def test_resume_refuses_another_machine(self):
        self.run_with({}, names=self.NAMES[:1])
        with self.assertRaisesRegex(files.FileError, "its rows are of another machine: GPU g and h"):
            self.run_with({"GPU": "h"}, "--resume")

    def test_time_is_over(self):
        found = self.run_with({"fkodom_32k": ["hang FA2"]}, "--stop-after=2", expected=1)
        self.assertEqual(([row["name"] for row in found["workloads"]], found["not_measured"]), (self.NAMES[:1], {}))

    def test_paths_of_the_machine_stay_out(self):
        store = os.path.join(self.folder.name, "stores")
        command = f"bench/peers.sh --plugin={EXAMPLE} --shard=1/1 {self.output} 20"
        found = self.run_with({"fkodom_32k": ["died FA2"], "reason": f"{store}/fkodom_32k.db: no kernel"}, f"--db={store}/", f"--plugin={EXAMPLE}",
                              f"--command={command}")
        self.assertEqual(found["command"], "bench/peers.sh --plugin=plugin_example.py --shard=1/1 out.json 20")
        self.assertEqual(found["workloads"][1]["failed"], {"FA2": "stores/fkodom_32k.db: no kernel"})
        with open(self.output[:-len("json")] + "md") as file:
            self.assertNotIn(self.folder.name, file.read())

    def test_merge(self):
        self.run_with({}, "--shard=2/2")
        second = self.output + ".2"
        os.rename(self.output, second)
        self.run_with({}, "--shard=1/2")
        merged = self.output + ".merged"
        options = parse(f"--output={merged}", "--columns=ms", "--json", f"--merge={self.output}", f"--merge={second}")
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            self.assertEqual(script.run(options), 0)
        self.assertEqual([row["name"] for row in json.loads(text.getvalue())["workloads"]], self.NAMES[::2] + self.NAMES[1::2])
        with self.assertRaisesRegex(files.FileError, "expected results of an earlier run"):
            files.read(SCRIPT)


class Shell(unittest.TestCase):
    """peers.sh hands everything on."""
    PEERS = os.path.join(ROOT, "bench", "peers.sh")

    def test_list(self):
        done = subprocess.run(["bash", self.PEERS, "--plugin=" + EXAMPLE, "--list", "example_window"], capture_output=True, text=True)
        self.assertEqual((done.stdout.splitlines()[0].split(), done.returncode), (["example_window", "1x4x4096x64", "patterns/sliding_window.mlir"], 0))

    def test_results_of_record_become_one_table(self):
        record = os.path.join(ROOT, "bench", "results", "h200-tuned.json")
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "out.json")
            done = subprocess.run(["bash", self.PEERS, f"--merge={record}", "--columns=ms", output], capture_output=True, text=True)
            self.assertEqual((done.stderr, done.returncode), ("", 0))
            with open(output) as file, open(record) as part:
                merged, part = json.load(file), json.load(part)
            fastest = min(part["workloads"][0]["entries"], key=lambda entry: entry["ms"])
            self.assertEqual(done.stdout.splitlines()[1].split(), [part["workloads"][0]["name"], *fastest["name"].split(), f"{fastest['ms']:.4f}"])
            self.assertEqual([merged[name] for name in ("date", "command", "machine")], [part[name] for name in ("date", "command", "machine")])

    def test_tables_of_record_are_those_of_their_files(self):
        folder = os.path.join(ROOT, "bench", "results")
        for name in ("h200-tuned", "h200-side-by-side", "h200-lists"):
            with self.subTest(name), open(os.path.join(folder, name + ".md")) as file:
                record = files.read(os.path.join(folder, name + ".json"))
                shown = columns.chosen(columns.STANDARD, [column["name"] for column in record["columns"]])
                self.assertEqual(report.markdown(record, shown), file.read())

    def test_portable_table_of_record_is_that_of_its_file(self):
        folder = os.path.join(ROOT, "bench", "results")
        with open(os.path.join(folder, "h200-portable.json")) as record, open(os.path.join(folder, "h200-portable.md")) as table:
            self.assertEqual(portable_table.markdown(json.load(record)), table.read())

    def test_portable_parts_become_one_table(self):
        """A part that could not be measured is empty."""
        row = {"pattern": "full", "batch": 1, "heads": 2, "seqlen_q": 64, "head_dim": 64, "median_us": 1500.0, "tflops": 300.4, "percent_of_roof": 40.0,
               "visited_percent_of_roof": 41.0, "max_error": 1e-3, "allowed_error": 2e-3, "ok": False, "roof_us": 1400.0,
               "config": "portable_forward block_m=128 block_n=64 chunk_n=32 stages=1 warps=4 raster_heads=8"}
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, f"{number}.json") for number in range(3)]
            for path, rows in zip(paths, ([row], None, [dict(row, ok=True)])):
                with open(path, "w") as file:
                    file.write("" if rows is None else json.dumps({"device": "g", "roof": "r", "rows": rows}))
            output = os.path.join(folder, "out.json")
            portable_table.write(portable_table.merged("c", "580", paths), output)
            with open(output) as file, open(output[:-len("json")] + "md") as table:
                self.assertEqual([each["ok"] for each in json.load(file)["rows"]], [False, True])
                lines = table.read().splitlines()
        self.assertEqual(lines[-2], "| full | 1 x 2 x 64 x 64 | 1.500 | 300 | 40.0 | 41.0 | 1.0e-03 | 2.0e-03 | **no** | "
                         "128x64, chunk 32, 1 stage, 4 warps, raster 8 |")

    def test_command_of_record(self):
        with tempfile.TemporaryDirectory() as folder:
            output, words = os.path.join(folder, "out.json"), "--measure --stop-after=1e-9"
            done = subprocess.run(["bash", self.PEERS, *words.split(), output, "1", "small_causal"], capture_output=True, text=True,
                                  env=dict(os.environ, HEDDLE_BENCH_DB=folder))
            self.assertEqual((done.stderr, done.returncode), ("not measured in time: small_causal\n", 1))
            self.assertEqual(files.read(output)["command"], f"bench/peers.sh {words} out.json 1 small_causal")

    def test_results_of_record_name_no_folders_of_a_machine(self):
        folder = os.path.join(ROOT, "bench", "results")
        for name in os.listdir(folder):
            with self.subTest(name), open(os.path.join(folder, name)) as file:
                self.assertEqual(re.findall(r"/(?:tmp|root|home|work)/\S*", file.read()), [])

    def test_usage(self):
        done = subprocess.run(["bash", self.PEERS], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.split()[:2]), (2, ["usage:", "bench/peers.sh"]))


if __name__ == "__main__":
    unittest.main()
