#!/usr/bin/env python3
"""heddle side by side with what else a machine offers, on one GPU: for each workload heddle's kernels through C and through its Python
package, every peer that applies and the bf16 matrix product 8192^3, launched in rounds in one process, and what each costs beside its
time. bench/README.md says what the columns mean. `peers.sh` calls this.

    peers.py --db=FOLDER --library=libheddle_runtime.so --heddle=HEDDLE --build --output=OUT.json [workload...]

Writes OUT.json and OUT.md, anew after every workload. Exits 1 if a heddle result is wrong or a workload could not be measured,
2 if the command is wrong.
"""
import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from peers import columns, database, files, report, workloads
from peers.plugins import Bench, PluginError
from peers.worker import Worker

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
METHOD = ("Medians of {reps} single launches, CUDA events, {flush} MB written before each to empty the L2, all entries of a workload in random "
          "order in every round of one process; standard normal inputs, bf16. Rates count kept pairs only, 4 * head_dim FLOPs each, 10 of gradients, of which delta, clears and every launch are timed. Errors are of sampled "
          "rows against fp64 from the definition, the largest over the rows, relative to the row's norm; heddle's results are NaN before the check and "
          "bitwise equal over 4 launches, else the entry is not right. Gradients: errors of two heads against fp32 autograd of the definition, relative to the norm; "
          "bits that differ between launches are noted. Memory: what a call needs beyond inputs and results, workspace included. Set-up: "
          "masks and copies made before the first call, again, compilers being warm. First call: in a fresh process, libraries, masks and compilation in "
          "it; cold: no caches, empty database; warm: those of another process. Host: time of the calling thread in each of many calls.")


def parser():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("workloads", nargs="*", help="names, globs, or groups (--list); default: marks, the named ones with a target ratio")
    made.add_argument("--list", action="store_true", help="workloads (the chosen ones, if any are), groups and columns; measures nothing")
    choice = made.add_argument_group("what is measured")
    choice.add_argument("--columns", default="all", help="names and globs with commas, or `times` [all]")
    choice.add_argument("--providers", default="*", help="names and globs with commas; `fast`: without FlexAttention and dense masks [*]")
    choice.add_argument("--backward", action="store_true", help="gradients: NAME_backward of each workload; default: marks_backward")
    choice.add_argument("--plugin", action="append", default=[], metavar="FILE.py", help="further workloads, columns, providers; repeatable")
    choice.add_argument("--reps", type=int, default=20, help="timed launches of each entry [20]")
    choice.add_argument("--shard", default="1/1", metavar="I/N", help="every N-th workload from the I-th on [1/1]")
    output = made.add_argument_group("results")
    output.add_argument("--output", metavar="OUT.json", help="OUT.md is written beside it")
    output.add_argument("--resume", action="store_true", help="measures what OUT.json does not have yet")
    output.add_argument("--merge", action="append", default=[], metavar="FILE.json", help="measures nothing: OUT.json becomes the rows of these; repeatable")
    output.add_argument("--json", action="store_true", help="the results on stdout as JSON, else as a table")
    output.add_argument("--verbose", action="store_true", help="every step on stderr")
    output.add_argument("--command", default="", help="what the header calls the command, with file names in place of its paths")
    run = made.add_argument_group("how")
    run.add_argument("--db", help="folder of databases, NAME[.TAG].db")
    run.add_argument("--library", help="libheddle_runtime.so")
    run.add_argument("--heddle", help="the compiler, for --build")
    run.add_argument("--build", action="store_true", help="compile the defaults first, and tune unless --budget=0")
    run.add_argument("--budget", default="20s", help="of one search; 0: defaults only [20s]")
    run.add_argument("--limit", type=float, default=180, help="seconds without a sign of life after which a step counts as hanging [180]")
    run.add_argument("--stop-after", type=float, default=0, metavar="SECONDS", help="ends then, with what was measured; --resume goes on [0: never]")
    run.add_argument("--processes", type=int, default=1, help="processes that prepare workloads at the same time; one alone measures [1]")
    for hidden in ("--lines", "--turns"):  # set for the processes that measure
        run.add_argument(hidden, help=argparse.SUPPRESS)
    run.add_argument("--skip", action="append", default=[], help=argparse.SUPPRESS)
    return made


def parse(arguments=None):
    commands = parser()
    options = commands.parse_args(arguments)
    try:
        bench = Bench(options.plugin)
        options.chosen_columns = columns.chosen(bench.columns, options.columns.split(","))
        default = ["marks_backward"] if options.backward else [] if options.list else ["marks"]
        names = bench.names(options.workloads or default)
        if options.backward:
            names = list(dict.fromkeys(workloads.backward_of(bench.find(name)).name for name in names))
        options.workloads = shard(names, options.shard)
    except (PluginError, ValueError) as error:
        commands.error(str(error))
    options.bench, options.providers = bench, options.providers.split(",")
    options.until = time.time() + options.stop_after if options.stop_after else float("inf")
    if problem := what_is_missing(options):
        commands.error(problem)
    return options


def what_is_missing(options):
    if options.build and not options.heddle:
        return "expected --heddle with --build"
    if options.processes < 1:
        return f"expected at least 1 process, got {options.processes}"
    if options.reps < 1:
        return f"expected at least 1 timed launch, got --reps={options.reps}"
    if (options.merge or options.resume) and not options.output:
        return "expected --output with --merge and --resume"
    if (options.build or options.output) and not (options.db or options.merge or options.list):
        return "expected --db, a folder of databases"
    if options.output and not (options.library or options.merge or options.list):
        return "expected --library with --output"
    return ""


def shard(names, text):
    """Every N-th of them, of "I/N", I from 1."""
    try:
        number, count = map(int, text.split("/"))
    except ValueError:
        raise ValueError(f"--shard: expected I/N, got {text}") from None
    if not 1 <= number <= count:
        raise ValueError(f"--shard: expected 1 to {count}, got {number}")
    return names[number - 1::count]


def with_companions(bench, names):
    """The workloads, and those that are launched beside them."""
    found = [bench.find(name) for name in names]
    return list({workload.name: workload for workload in found + [bench.find(each.companion) for each in found if each.companion]}.values())


def listing(options):
    """Workloads with their shapes, and what else can be chosen."""
    bench = options.bench
    names = options.workloads or list(bench.workloads)
    width = max(map(len, names))
    lines = [f"{name:{width}}  {bench.find(name).shape_text():20}  {bench.find(name).pattern}" for name in names]
    lines += ["", "groups: " + ", ".join(f"{name} ({len(members)})" for name, members in bench.groups.items()),
              "any pattern of the library: library_PATTERN_LENGTH[_d64|_d128|_d256][_gqa], LENGTH from 2k to 512k by powers of 2, and 1m", "columns:"]
    return lines + [f"  {column.name}: {column.title}" + (f", {column.unit}" if column.unit else "") for column in bench.columns]


def self_command(options):
    """Of the processes that measure, without the workloads."""
    return [sys.executable, os.path.abspath(__file__), f"--db={options.db}", f"--library={options.library}", f"--reps={options.reps}",
            f"--columns={options.columns}", f"--providers={','.join(options.providers)}", *(f"--plugin={file}" for file in options.plugin)]


def measure(options, results):
    """Measures what the results do not have yet."""
    names = results.missing(options.workloads)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.processes) as pool:
        workers = [Worker(options, results, scratch, number, names[number::options.processes]) for number in range(options.processes)]
        for running in [pool.submit(each.run) for each in workers]:
            running.result()


def finish(options, results):
    """The results on stdout."""
    content = results.content()
    print(files.text(content) if options.json else report.compact(content, results.columns), end="")
    left = results.missing(options.workloads)
    if left and not options.merge:
        print(f"not measured in time: {' '.join(left)}", file=sys.stderr)
    return 0 if results.is_right() and (options.merge or not left) else 1


def given_paths(options):
    """The paths of the command line."""
    return [path for path in (sys.argv[0], options.output, options.db, options.library, options.heddle, *options.plugin, *options.merge) if path]


def run(options):
    results = files.Results(options.output, options.workloads, options.chosen_columns, options.command or " ".join(sys.argv),
                            METHOD.format(reps=options.reps, flush=256), given_paths(options))
    if options.merge:
        results.names = []
        files.merge(results, options.merge)
        return finish(options, results)
    if options.resume and os.path.exists(options.output):
        results.resume(options.output)
    build(options, results.missing(options.workloads))
    options.self_command = self_command(options)
    measure(options, results)
    results.write()
    return finish(options, results)


def build(options, names):
    if options.build:
        budget = "" if options.budget in ("0", "0s") else options.budget
        database.build(options.heddle, ROOT, options.db, with_companions(options.bench, names), budget)


def main():
    options = parse()
    if options.lines:
        from peers import session  # torch is needed from here on
        session.run(options)
        return 0
    if options.list:
        print("\n".join(listing(options)))
        return 0
    if not options.output:
        build(options, options.workloads)
        return 0
    try:
        return run(options)
    except (files.FileError, RuntimeError) as error:
        print(f"peers.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
