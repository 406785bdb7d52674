"""One kernel database for each workload and tag: NAME.db holds what `heddle tune` chose, NAME.default.db the default
configuration, compiled without a GPU. Any other NAME.TAG.db in the folder is measured too. Those of gradients also have
the default forward kernel, whose results gradients are computed from."""
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from peers import operands

ARCH = "sm_90a"


def sizes_options(workload):
    return [word for name, value in workload.sizes for word in ("--set", f"{name}={value}")]


def operand_options(workload, folder):
    """The tensors of the pattern in a file of the folder, which is written; those that are drawn heddle makes itself."""
    written = {name: operand for name, operand in workload.operands.items() if isinstance(operand, operands.Operand)}
    if not written:
        return []
    path = os.path.join(folder, f"{workload.name}.operands.safetensors")
    operands.write(path, written)
    return [word for name in written for word in ("--operand", f"{name}={path}")]


def length_options(workload, seqlen=0):
    keys = seqlen or workload.seqlen
    return [f"--seqlen={workload.queries}", f"--seqlen-k={keys}"] if workload.queries else [f"--seqlen={keys}"]


def kind_of(workload):
    return "backward" if workload.backward else "forward"


def compile_command(heddle, root, workload, database, kind=None):
    return [heddle, "compile", os.path.join(root, workload.pattern), f"--arch={ARCH}", f"--kind={kind or kind_of(workload)}", "--dtype=bf16",
            f"--head-dim={workload.head_dim}", f"--db={database}", f"--name={workload.name}", "--json"]


def tune_command(heddle, root, workload, database, budget):
    return [heddle, "tune", os.path.join(root, workload.pattern), f"--kind={kind_of(workload)}", "--dtype=bf16", f"--head-dim={workload.head_dim}", f"--batch={workload.batch}",
            f"--heads={workload.heads}", f"--kv-heads={workload.kv}", *length_options(workload, workload.tune_seqlen),
            *sizes_options(workload), *operand_options(workload, os.path.dirname(database)), f"--budget={budget}", f"--db={database}", f"--name={workload.name}", "--json"]


def path_of(folder, workload, tag=""):
    return os.path.join(folder, f"{workload.name}.{tag + '.' if tag else ''}db")


def find(folder, workload):
    """tag -> file; the tuned one has the tag ''."""
    found = {}
    for file in sorted(os.listdir(folder)):
        if file.startswith(workload.name + ".") and file.endswith(".db"):
            found[file[len(workload.name) + 1:-len(".db")] if file != workload.name + ".db" else ""] = os.path.join(folder, file)
    return found


def _run(command, what):
    start = time.time()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{what}: failed: {done.stderr.strip().splitlines()[-1:] or done.returncode}", file=sys.stderr, flush=True)
        return None
    result = json.loads(done.stdout)
    winner = result.get("winner") or result
    figures = f", {winner['median_us']:.1f} us, {winner['config']}" if "median_us" in winner else ""
    print(f"{what}: {time.time() - start:.1f} s{figures}", file=sys.stderr, flush=True)
    return result


def build(heddle, root, folder, workloads, budget):
    """Compiles the default of every workload, all processors at work, and tunes each for `budget` unless that is empty.
    Databases that are there are kept and searched further."""
    os.makedirs(folder, exist_ok=True)
    def compile_into(tag, workload, kind):
        _run(compile_command(heddle, root, workload, path_of(folder, workload, tag), kind), f"compile {workload.name}, {kind}")

    def compile_defaults(workload):
        for kind in dict.fromkeys(("forward", kind_of(workload))):
            compile_into("default", workload, kind)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(compile_defaults, workloads))
    if budget:
        for workload in workloads:
            if workload.backward:
                compile_into("", workload, "forward")
            _run(tune_command(heddle, root, workload, path_of(folder, workload), budget), f"tune {workload.name}")
