#!/usr/bin/env python3
"""heddle beside its peers on one GPU: for each workload heddle's stored kernels, every peer that applies and the bf16
matrix product 8192^3, launched in rounds in one process. `peers.sh` calls this; `--help` lists the options.

    peers.py --db=FOLDER --library=libheddle_runtime.so --heddle=HEDDLE --build [--budget=20s] --output=OUT.json [workload...]

Writes OUT.json and OUT.md. Exits 1 if a heddle result is wrong or a workload could not be measured.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from peers import database, report
from peers.workloads import DEFAULT, GROUPS, WORKLOADS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
METHOD = ("Medians of {reps} single launches, CUDA events, {flush} MB written before each to empty the L2, all entries of a workload in random "
          "order in every round of one process; standard normal inputs, bf16. Rates count kept pairs only, 4 * head_dim FLOPs each. Errors are of sampled "
          "rows against fp64 from the definition, the largest over the rows, relative to the row's norm; heddle's results are NaN before the check and "
          "bitwise equal over 4 launches, else the entry is not right.")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="names, `library`, `library_8k` or `library_32k` for every pattern of patterns/; default: " + " ".join(DEFAULT))
    parser.add_argument("--output", help="OUT.json; OUT.md is written beside it")
    parser.add_argument("--db", required=True, help="folder of databases, NAME[.TAG].db")
    parser.add_argument("--library", help="libheddle_runtime.so")
    parser.add_argument("--heddle", help="the compiler, for --build")
    parser.add_argument("--build", action="store_true", help="compile the defaults first, and tune unless --budget=0")
    parser.add_argument("--budget", default="20s", help="of one search; 0: defaults only [20s]")
    parser.add_argument("--reps", type=int, default=20, help="timed launches of each entry [20]")
    parser.add_argument("--flex", action="store_true", help="FlexAttention and SDPA with a mask too: slow to build")
    parser.add_argument("--limit", type=float, default=180, help="seconds after which a workload counts as hanging [180]")
    parser.add_argument("--processes", type=int, default=1, help="processes that prepare workloads at the same time; one alone measures [1]")
    parser.add_argument("--command", default="", help="what the header calls the command")
    parser.add_argument("--lines", help=argparse.SUPPRESS)  # set for the processes that measure
    parser.add_argument("--turns", help=argparse.SUPPRESS)  # likewise, if there are several
    options = parser.parse_args()
    options.workloads = [name for word in options.workloads for name in GROUPS.get(word, [word])]
    unknown = [name for name in options.workloads if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload {', '.join(unknown)}; there are {' '.join(WORKLOADS)}")
    if options.build and not options.heddle:
        parser.error("expected --heddle with --build")
    if options.processes < 1:
        parser.error(f"expected at least 1 process, got {options.processes}")
    if options.output and not options.library:
        parser.error("expected --library with --output")
    options.workloads = options.workloads or list(DEFAULT)
    return options


def with_companions(names):
    result = list(names)
    for name in names:
        companion = WORKLOADS[name].companion
        if companion and companion not in result:
            result.append(companion)
    return [WORKLOADS[name] for name in result]


class Results:
    """What is known so far, written anew with every row, in the order asked for. Any number of threads adds."""

    def __init__(self, options):
        self.options, self.lock = options, threading.Lock()
        self.rows, self.machine = {}, {}

    def add(self, row):
        with self.lock:
            self.rows[row["name"]] = row
            self.write()

    def write(self):
        rows = [self.rows[name] for name in self.options.workloads if name in self.rows]
        measured = [row for row in rows if "entries" in row]
        broken = {row["name"]: row["verdict"] for row in rows if "entries" not in row}
        results = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
                   "command": self.options.command or " ".join(sys.argv), "machine": self.machine,
                   "method": METHOD.format(reps=self.options.reps, flush=256), "workloads": measured, "not_measured": broken}
        with open(self.options.output, "w") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
        with open(os.path.splitext(self.options.output)[0] + ".md", "w") as file:
            file.write(report.markdown(results) + "".join(f"- {name} was not measured: {reason}\n" for name, reason in broken.items()))

    def is_right(self):
        def right(row):
            own = [entry for entry in row.get("entries", ()) if report.is_heddle(entry)]
            return bool(own) and all(entry["ok"] for entry in own)
        return all(right(row) for row in self.rows.values())


class Worker:
    """Measures its workloads in a process of their own, and the rest in another one where a workload crashed it or hangs."""

    def __init__(self, options, results, scratch, number):
        self.options, self.results = options, results
        self.names = options.workloads[number::options.processes]
        self.lines = os.path.join(scratch, f"lines{number}")
        self.turns = [f"--turns={scratch}"] if options.processes > 1 else []
        self.seen, self.begun = 0, False
        open(self.lines, "w").close()

    def run(self):
        remaining = self.names
        while remaining:
            self.begun = False
            reason = self.attempt(remaining)
            if not self.begun and reason:
                raise SystemExit(f"peers.py: {reason} before the first workload")
            remaining = [name for name in remaining if name not in self.results.rows]
            if remaining:  # the first of them was under way
                print(f"{remaining[0]}: {reason}", file=sys.stderr, flush=True)
                self.results.add({"name": remaining[0], "verdict": reason})
                remaining = remaining[1:]

    def command(self, names):
        return [sys.executable, os.path.abspath(__file__), f"--lines={self.lines}", *self.turns, f"--db={self.options.db}",
                f"--library={self.options.library}", f"--reps={self.options.reps}", *(["--flex"] if self.options.flex else []), *names]

    def attempt(self, names):
        child = subprocess.Popen(self.command(names))
        last = time.time()
        while child.poll() is None:
            time.sleep(0.2)
            if self.read():
                last = time.time()
            if time.time() - last > self.options.limit:
                child.kill()
                child.wait()
                return f"still running after {self.options.limit:.0f} s"
        self.read()
        return f"the measuring process ended with {child.returncode}" if child.returncode else ""

    def read(self):
        """What the measuring process wrote since; whether there was any."""
        with open(self.lines) as file:
            file.seek(self.seen)
            whole = file.read()
        whole = whole[:whole.rfind("\n") + 1]
        self.seen += len(whole)
        for line in whole.splitlines():
            part = json.loads(line)
            self.results.machine.update(part.get("machine", {}))
            self.begun = self.begun or "begin" in part
            if "row" in part:
                print(report.summary_line(part["row"]), flush=True)
                self.results.add(part["row"])
        return bool(whole)


def measure(options, worker=Worker):
    """True if every workload was measured and heddle is right in all."""
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.processes) as pool:
        results = Results(options)
        workers = [worker(options, results, scratch, number) for number in range(options.processes)]
        for running in [pool.submit(worker.run) for worker in workers]:
            running.result()
    return results.is_right()


def main():
    options = parse()
    if options.lines:
        from peers import session  # torch is needed from here on
        session.run(options)
        return 0
    if options.build:
        budget = "" if options.budget in ("0", "0s") else options.budget
        database.build(options.heddle, ROOT, options.db, with_companions(options.workloads), budget)
    if not options.output:
        return 0
    return 0 if measure(options) else 1


if __name__ == "__main__":
    sys.exit(main())
