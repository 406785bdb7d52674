"""What is written down runs: docstrings, docs/python.md, the examples."""
import doctest
import importlib
import os
import re
import runpy
import socket
import subprocess
import sys

import heddle
import pytest


@pytest.mark.parametrize("name", ["words", "patterns", "calls", "nn", "flex", "_engine"])
def test_docstrings(name):
    if name in ("nn", "flex"):
        pytest.importorskip("torch")
    failed, tried = doctest.testmod(importlib.import_module(f"heddle.{name}"))
    assert not failed and (tried or name in ("calls", "flex", "_engine"))


def python_blocks(root):
    text = open(os.path.join(root, "docs", "python.md"), encoding="utf-8").read()
    return re.findall(r"```python( needs-gpu)?\n(.*?)```", text, re.S)


@pytest.mark.compiler
def test_the_guide(root, tmp_path, monkeypatch):
    """Its blocks in one go; those for a GPU must at least be Python."""
    pytest.importorskip("torch")
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(root)
    assert len(blocks) > 8
    space = {}
    for gpu, block in blocks:
        code = compile(block, "docs/python.md", "exec")
        if not gpu:
            exec(code, space)


def test_every_public_name_is_in_the_guide(root):
    text = open(os.path.join(root, "docs", "python.md"), encoding="utf-8").read()
    missing = [name for name in (*heddle.__all__, *heddle.words.__all__) if not re.search(rf"\b{name}\b", text)]
    assert not missing


@pytest.mark.compiler
def test_the_page_of_words_is_what_its_program_writes(root, tmp_path):
    subprocess.run([sys.executable, os.path.join(root, "docs", "make-words.py"), str(tmp_path)], check=True)
    pictures = sorted(os.listdir(tmp_path / "words"))
    assert len(pictures) > 15
    for file in ["words.md", *(f"words/{each}" for each in pictures)]:
        assert (tmp_path / file).read_text() == open(os.path.join(root, "docs", file), encoding="utf-8").read(), f"docs/{file}: run docs/make-words.py"


def with_package(root):
    return dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.join(root, "runtime", "Python"), os.environ.get("PYTHONPATH", "")]))


def run(root, *words):
    done = subprocess.run([sys.executable, os.path.join(root, "examples", "python", words[0]), *words[1:]], capture_output=True, text=True,
                          env=with_package(root))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.compiler
def test_draw_and_time(root, tmp_path):
    pytest.importorskip("numpy")
    picture = tmp_path / "x.svg"
    said = run(root, "draw_and_time.py", "causal & window(left=3)", "--seqlen", "64", "--heads", "2", "--repeats", "1", "-o", str(picture))
    assert "x.svg: 500 pairs of 2 heads" in said and " ms on " in said and picture.read_text().startswith("<svg")


@pytest.mark.compiler
def test_byte_model(root):
    pytest.importorskip("torch")
    said = run(root, "byte_model.py", "--steps", "40", "--length", "300", "--dim", "64", "--layers", "2", "--rate", "0.003", "--e4m3")
    losses = [float(each) for each in re.findall(r"loss ([\d.]+) nats a byte", said)]
    assert len(losses) == 3 and 5 < losses[0] < 6.5 and max(losses[1:]) < losses[0] - 1.5
    high, low = map(float, re.search(r"loss ([\d.]+) in bf16, ([\d.]+) with attention in e4m3", said).groups())
    assert high < losses[0] - 1.5 and abs(low / high - 1) < 0.005


def fully_sharded():
    """Skips where PyTorch cannot."""
    pytest.importorskip("torch")
    if not hasattr(pytest.importorskip("torch.distributed.fsdp"), "fully_shard"):
        pytest.skip("torch.distributed.fsdp has no fully_shard")


LONG_CONTEXT = ["--length=150", "--steps=2", "--dim=16", "--layers=1", "--limit=600"]


@pytest.fixture(scope="module")
def losses_alone(root):
    """Of one process that has all rows."""
    fully_sharded()
    import torch
    run = runpy.run_path(os.path.join(root, "examples", "python", "long_context.py"))
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    losses = run["train"](run["options_of"](LONG_CONTEXT), torch.device("cpu"))
    torch.distributed.destroy_process_group()
    assert losses[1] < losses[0]
    return losses


def losses_in(said):
    return [float(each) for each in re.findall(r"([\d.]+) nats a byte", said)]


@pytest.mark.compiler
def test_long_context(root, tmp_path, losses_alone):
    """Two processes learn what one does."""
    program = os.path.join(root, "examples", "python", "long_context.py")
    script = ("import runpy, sys, torch\n"
              "run = runpy.run_path(sys.argv[1])\n"
              "torch.distributed.init_process_group('gloo', init_method='file://' + sys.argv[2], rank=int(sys.argv[3]), world_size=2)\n"
              "run['train'](run['options_of'](sys.argv[4:]), torch.device('cpu'))\n"
              "torch.distributed.destroy_process_group()\n")
    both = [subprocess.Popen([sys.executable, "-c", script, program, str(tmp_path / "meet"), str(rank), *LONG_CONTEXT], stdout=subprocess.PIPE, text=True,
                             env=with_package(root)) for rank in range(2)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert losses_in(said[0]) == pytest.approx(losses_alone, abs=2e-4)


STAND_INS = {  # of Slurm: two machines of a job are this one, and srun starts a task on each
    "scontrol": '[ "$*" = "show hostnames localhost,localhost" ] && printf "localhost\\nlocalhost\\n"',
    "srun": '"$@" & first=$!; "$@" & second=$!; wait $first && wait $second',
    "torchrun": f'exec "{sys.executable}" -m torch.distributed.run --local-addr=localhost "$@"',
}


@pytest.mark.compiler
def test_long_context_started_by_slurm(root, tmp_path, losses_alone):
    """The batch script, whose two tasks of one process each learn what one process does."""
    for name, body in STAND_INS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("", 0))
        job = probe.getsockname()[1]
    environment = dict(with_package(root), PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", CUDA_VISIBLE_DEVICES="", SLURM_JOB_ID=str(job),
                       SLURM_JOB_NODELIST="localhost,localhost", SLURM_JOB_NUM_NODES="2", SLURM_GPUS_ON_NODE="1", SLURM_SUBMIT_DIR=root)
    script = os.path.join(root, "examples", "long_context.sbatch")
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", open(script, encoding="utf-8").read(), re.M))
    assert options["ntasks-per-node"] == "1" and int(options["nodes"]) > 1  # torchrun starts the processes of a machine
    done = subprocess.run(["bash", script, *LONG_CONTEXT], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert losses_in(done.stdout) == pytest.approx(losses_alone, abs=2e-4)
