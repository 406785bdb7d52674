"""Measures workloads one after the other in this process and writes JSON lines of what it does and finds, so that a parent
process sees how far it came, and a crash or a hang costs what was under way. worker.py is the parent."""
import json
import subprocess

import torch

from peers import gpu as gpus
from peers import report
from peers.cell import Cell, describe, fill
from peers.first_call import FirstCalls
from peers.launch import Launch, results
from peers.own import Runtime
from peers.plugins import Bench
from peers.providers import Providers
from peers.gradients import GradientReference
from peers.reference import Reference
from peers.timing import Clock, Rounds, number
from peers.turns import Turns


class Lines:
    """One JSON object a line, at once."""

    def __init__(self, file):
        self.file = file

    def write(self, **line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def doing(self, workload, provider, stage):
        """What is under way from now on; None: nothing that could be left out."""
        self.write(doing=[workload, provider, stage] if stage else None)


class Session:
    def __init__(self, options, lines, gpu=None):
        self.options, self.lines = options, lines
        self.gpu = gpu or gpus.Gpu()
        self.bench = Bench(options.plugin)
        self.columns = options.chosen_columns
        self.skipped = {(workload, provider, stage): reason for workload, provider, stage, reason in map(json.loads, options.skip)}
        self.turns = Turns(options.turns)
        with self.turns.preparing():
            self.start()

    def start(self):
        self.gpu.start()
        self.runtime = Runtime(self.options.library) if self.options.library else None
        self.providers = Providers(self.runtime, self.options.db, self.options.providers, self.bench.providers)
        request = {"plugins": self.options.plugin, "library": self.options.library, "db": self.options.db}
        self.first_calls = FirstCalls(request)
        self.rounds, self.product = Rounds(self.gpu), Launch(self.gpu.product())
        self.gpu.synchronize()

    def machine(self):
        try:
            driver = subprocess.run(["nvidia-smi", "-i", number(), "--query-gpu=driver_version,power.limit", "--format=csv,noheader"],
                                    capture_output=True, text=True).stdout.strip()
        except OSError:
            driver = "unknown"
        return {"GPU": self.gpu.name(), "driver, power limit": driver, "torch": torch.__version__, "CUDA of torch": torch.version.cuda,
                "cuDNN": torch.backends.cudnn.version(), "heddle runtime": self.runtime.library.version() if self.runtime else "-"}

    def measure(self, workload):
        with self.turns.preparing():
            launches, entries, failed = self.prepare_all(workload)
            self.gpu.synchronize()
        with self.turns.measuring():
            with Clock() as clock:
                times = self.rounds.measure(dict(launches, product=self.product), self.options.reps)
            rows = self.rows(workload, launches, entries, times)
        return self.row(workload, rows, times, failed, clock)

    def prepare_all(self, workload):
        """Launches and what is known about them by label, and why others failed; the launches keep their tensors alive."""
        q, k, v = self.gpu.inputs(workload)
        launches, entries, failed = {}, {}, {}
        for member in self.group(workload):
            reference = (GradientReference if member.backward else Reference)(member, q, k, v)
            for provider in self.providers.of(member):
                if member is not workload and not report.is_heddle({"name": provider.name}):
                    continue  # of a companion, what its workload is compared with
                label = provider.name if member is workload else f"{member.name}: {provider.name}"
                if (workload.name, label, "run") in self.skipped:
                    failed[label] = self.skipped[workload.name, label, "run"]
                    continue
                self.lines.doing(workload.name, label, "run")
                try:
                    made = provider.make(member, q, k, v)
                    if made is not None:
                        entries[label] = dict(name=provider.name, provider=provider, workload=member, **self.checked(made, reference))
                        launches[label] = made
                except Exception as error:
                    failed[label] = describe(error)
                    made = error = None
                    self.gpu.synchronize()  # an error that the GPU keeps ends this process, while the provider is named as under way
                    self.gpu.empty_cache()
                self.lines.doing(workload.name, label, None)
        return launches, entries, failed

    def group(self, workload):
        return [workload] + ([self.bench.find(workload.companion)] if workload.companion else [])

    def checked(self, made, reference):
        """The check of a launch's results, and what is known about it."""
        with made.context():
            if made.poison:
                made.poison()
            returned, is_exact = made.run(), made.is_exact or made.sums_in_any_order
            check, info = reference.check_call(returned, is_exact), dict(made.info)
            if is_exact and not check["nan"] and not self.repeats(made, results(returned)):
                check = dict(check, ok=check["ok"] and made.sums_in_any_order)
                info["note"] = (info.get("note", "") + " results differ between launches").strip()
        return {"check": check, "extra": info}

    @staticmethod
    def repeats(made, returned):
        first = [tensor.clone() for tensor in returned if tensor is not None]
        for _ in range(3):
            if made.poison:
                made.poison()
            if not all(map(torch.equal, first, results(made.run()))):
                return False
        return True

    def rows(self, workload, launches, entries, times):
        """Entries with their columns."""
        product, rows = median(times["product"]), []
        for label, known in entries.items():
            row = report.entry(known["name"], known["workload"], times[label], product, known["check"], known["extra"])
            rows.append(row)
            if known["workload"] is workload:
                row["values"], row["no_value"] = self.filled(workload, known["provider"], row, launches[label])
        return rows

    def filled(self, workload, provider, row, launch):
        cell = Cell(workload, provider, row, launch, self.gpu, self.first_calls)
        skipped = {column.name: self.skipped.get((workload.name, provider.name, column.name)) for column in self.columns}
        if not row["ok"]:
            skipped = {column.name: "the result is wrong" for column in self.columns if column.is_measured}
        return fill(cell, self.columns, {name: reason for name, reason in skipped.items() if reason},
                    lambda column: self.lines.doing(workload.name, provider.name, column))

    def row(self, workload, rows, times, failed, clock):
        product = median(times["product"])
        return {"name": workload.name, "shape": workload.shape_text(), "pattern": workload.pattern, "sizes": dict(workload.sizes),
                "kept_pairs": workload.kept_pairs, "flops": workload.flops, "product_ms": product,
                "product_tflops": report.product_tflops(product), "clock": clock.median, "entries": rows, "failed": failed,
                "judged": report.judge(workload, rows)}


def median(values):
    return sorted(values)[len(values) // 2]


def run(options, gpu=None):
    with open(options.lines, "a") as file:
        lines = Lines(file)
        session = Session(options, lines, gpu)
        lines.write(machine=session.machine())
        try:
            for name in options.workloads:
                lines.write(begin=name)
                lines.write(row=session.measure(session.bench.find(name)))
                session.gpu.empty_cache()
        except Exception as error:
            lines.write(died=f"{type(error).__name__}: {describe(error)}")
            raise
