"""What is written down runs: docstrings, docs/python.md, the examples."""
import doctest
import importlib
import os
import re
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


def run(root, *words):
    environment = dict(os.environ, PYTHONPATH=os.path.join(root, "runtime", "Python"))
    done = subprocess.run([sys.executable, os.path.join(root, "examples", "python", words[0]), *words[1:]], capture_output=True, text=True,
                          env=environment)
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
    said = run(root, "byte_model.py", "--steps", "40", "--length", "300", "--dim", "64", "--layers", "2", "--rate", "0.003")
    losses = [float(each) for each in re.findall(r"loss ([\d.]+) nats a byte", said)]
    assert len(losses) == 3 and 5 < losses[0] < 6.5 and max(losses[1:]) < losses[0] - 1.5
