"""Measures workloads one after the other in this process and writes one JSON line for each, so that a parent process
sees how far it came and a crash or a hang costs one workload."""
import json
import os
import subprocess

import torch

from peers import database, report
from peers.heddle import HeddleError, Library
from peers.peers import PEERS, SLOW_PEERS, Launch
from peers.reference import COMPOSED_TOLERANCE, Reference, tensor_of
from peers.timing import Clock, Rounds
from peers.turns import Turns
from peers.workloads import WORKLOADS


class Product:
    """The bf16 matrix product 8192^3 of the same rounds."""

    def __init__(self):
        self.a, self.b = (torch.randn(8192, 8192, device="cuda", dtype=torch.float32).to(torch.bfloat16) for _ in range(2))
        self.c = torch.empty_like(self.a)

    def __call__(self):
        return torch.mm(self.a, self.b, out=self.c)


class HeddleEntry:
    """A stored kernel on the given tensors, with results of its own."""

    def __init__(self, library, device, path, workload, q, k, v):
        store = library.open_store(path)
        self.kernel = library.find_kernel(store, device, workload)
        store.close()
        self.inputs = q, k, v
        self.out = torch.empty_like(q)
        self.lse = torch.empty(workload.batch, workload.heads, workload.rows, dtype=torch.float32, device=q.device)
        self.tensors = [(tensor_of(operand, q.device), operand.length) for operand in workload.operands.values()]
        args = self.kernel.arguments(q, k, v, self.out, self.lse, [value for _, value in workload.sizes], tensors=self.tensors)
        needed = self.kernel.workspace_bytes(args)
        self.workspace = torch.empty(max(256, needed), dtype=torch.uint8, device=q.device)
        args.workspace, args.workspace_bytes = (self.workspace.data_ptr(), needed) if needed else (None, 0)
        self.launch = self.kernel.prepare(args, torch.cuda.current_stream().cuda_stream)

    def run(self):
        self.launch()
        return self.out

    def poison(self):
        self.out.fill_(float("nan"))
        self.lse.fill_(float("nan"))


class Session:
    def __init__(self, options):
        self.options = options
        self.turns = Turns(options.turns)
        with self.turns.preparing():
            self.start(options)

    def start(self, options):
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.library = Library(os.path.abspath(options.library))
        self.device = self.library.open_device()
        self.rounds = Rounds()
        self.product = Product()
        torch.cuda.synchronize()

    def machine(self):
        try:
            driver = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=driver_version,power.limit", "--format=csv,noheader"],
                                    capture_output=True, text=True).stdout.strip()
        except OSError:
            driver = "unknown"
        return {"GPU": torch.cuda.get_device_name(), "driver, power limit": driver, "torch": torch.__version__,
                "CUDA of torch": torch.version.cuda, "cuDNN": torch.backends.cudnn.version(), "heddle runtime": self.library.version()}

    def measure(self, workload):
        with self.turns.preparing():
            launches, entries, failed = self.prepare_all(workload)
            torch.cuda.synchronize()
        with self.turns.measuring(), Clock() as clock:
            times = self.rounds.measure(dict(launches, product=Launch(self.product)), self.options.reps)
        return self.row(workload, entries, times, failed, clock)

    def prepare_all(self, workload):
        """Launches and what is known about them by label, and why others failed; the launches keep their tensors alive."""
        q, k, v = self.inputs(workload)
        group = [workload] + ([WORKLOADS[workload.companion]] if workload.companion else [])
        launches, entries, failed = {}, {}, {}
        for member in group:
            reference = Reference(member, q, k, v)
            for name, make in self.makers(member, q, k, v).items():
                label = name if member is workload else f"{member.name}: {name}"
                try:
                    launches[label], entries[label] = self.prepare(make, member, name, reference)
                except (RuntimeError, HeddleError, NotImplementedError, ValueError, TypeError) as error:
                    failed[label] = str(error).strip().split("\n")[0][:300]
                    launches.pop(label, None)
                if launches.get(label, True) is None:
                    del launches[label], entries[label]
        return launches, entries, failed

    def inputs(self, workload):
        generator = torch.Generator(device="cuda").manual_seed(0)

        def normal(rows, heads):
            whole = torch.empty(workload.batch, rows, heads, workload.head_dim, dtype=torch.bfloat16, device="cuda")
            for part in whole.view(-1).split(1 << 26):
                part.copy_(torch.randn(part.shape, generator=generator, device="cuda"))
            return whole

        return normal(workload.rows, workload.heads), normal(workload.seqlen, workload.kv), normal(workload.seqlen, workload.kv)

    def makers(self, workload, q, k, v):
        """name -> function that gives an entry, or None where it does not apply."""
        found = {}
        for tag, path in database.find(self.options.db, workload).items():
            found[f"heddle {tag}".strip()] = lambda path=path: HeddleEntry(self.library, self.device, path, workload, q, k, v)
        peers = dict(PEERS, **(SLOW_PEERS if self.options.flex else {}))
        for name, make in peers.items():
            found[name] = lambda make=make: make(workload, q, k, v)
        return found

    def prepare(self, make, workload, name, reference):
        """The launch of an entry and what is known about it; None twice where it does not apply."""
        made = make()
        if made is None:
            return None, None
        if isinstance(made, Launch):
            with made.context():
                check = reference.check(made.run(), tolerance=COMPOSED_TOLERANCE)
            return made, dict(name=name, workload=workload, check=check, extra={})
        made.poison()
        made.run()
        check = reference.check(made.out, made.lse)
        info = made.kernel.info()
        first = made.out.clone()
        for _ in range(3):
            made.poison()
            made.run()
            if not torch.equal(first, made.out) and not check["nan"]:
                check = dict(check, ok=False)
                info["note"] = (info["note"] + " results differ between launches").strip()
        return Launch(made.run), dict(name=name, workload=workload, check=check, extra=info)

    def row(self, workload, entries, times, failed, clock):
        product = sorted(times["product"])[len(times["product"]) // 2]
        rows = [report.entry(e["name"], e["workload"], times[label], product, e["check"], e["extra"]) for label, e in entries.items()]
        return {"name": workload.name, "shape": workload.shape_text(), "pattern": workload.pattern, "sizes": dict(workload.sizes),
                "kept_pairs": workload.kept_pairs, "flops": workload.flops, "product_ms": product,
                "product_tflops": report.product_tflops(product), "clock": clock.median, "entries": rows, "failed": failed,
                "judged": report.judge(workload, rows)}


def run(options):
    session = Session(options)
    with open(options.lines, "a") as lines:
        def write(line):
            lines.write(json.dumps(line) + "\n")
            lines.flush()

        write({"machine": session.machine()})
        for name in options.workloads:
            write({"begin": name})
            write({"row": session.measure(WORKLOADS[name])})
            torch.cuda.empty_cache()
