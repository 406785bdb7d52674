"""What the process says of itself: counters before and after calls, as numbers and as metrics."""
import importlib.util
import os
import re
import subprocess
import sys

import heddle
import pytest
from heddle import _structs as S

np = pytest.importorskip("numpy")
import device_arrays  # noqa: E402

PACKAGE = os.environ.get("HEDDLE_HOST_PACKAGE", "")
pytestmark = [pytest.mark.skipif(not PACKAGE, reason="HEDDLE_HOST_PACKAGE is not set"),
              pytest.mark.skipif(heddle.has_compiler(), reason="names of the packed file are for the runtime alone")]


@pytest.fixture(autouse=True)
def package():
    heddle.configure(database=PACKAGE, immutable=True)
    yield
    heddle.sample(0)


def draw(n=37, head_dim=64):
    generator = np.random.default_rng(3)
    return [device_arrays.bf16(generator.standard_normal((1, n, heads, head_dim)), 0) for heads in (2, 1, 1)]


def test_launches_of_calls_and_of_prepared_calls():
    tensors = draw()
    before = heddle.stats()
    heddle.attention(*tensors, "causal")
    prepared = heddle.prepare(*tensors, "causal")
    prepared.count_pairs(37 * 38)
    for _ in range(3):
        prepared()
    after = heddle.stats()
    assert after["launches"] - before["launches"] == 4
    assert after["pairs"] - before["pairs"] == 3 * 37 * 38
    row = next(each for each in after["by_kernel"] if each["kernel"] == prepared.kernel.content_key)
    assert row["launches"] >= 4 and row["kind"] == "forward" and row["device"] == "Fake GPU"
    assert sum(after["found"].values()) > 0 and set(after["found"]) == {"exact", "nearest bucket", "same architecture", "untuned default", "none"}
    assert after["slow"] == []


def test_refusals_by_reason():
    before = heddle.stats()["refusals"]
    with pytest.raises(heddle.NotFoundError):
        heddle.attention(*draw(head_dim=32), "causal")
    after = heddle.stats()["refusals"]
    assert after["not_found"] == before["not_found"] + 1 and len(after) == 9 and "ok" not in after
    assert heddle.stats()["refusals"] == after  # to ask for counters is none


def test_samples():
    prepared = heddle.prepare(*draw(), "causal")
    before = heddle.stats()["samples"]
    heddle.sample(2)
    for _ in range(20):
        prepared()
    assert heddle.stats()["samples"] - before == 10
    with pytest.raises(heddle.InvalidArgumentError, match="sample: every: expected 0 to 4294967295, got -1"):
        heddle.sample(-1)
    with pytest.raises(heddle.InvalidArgumentError, match="sample: every: expected a whole number, got 1.5"):
        heddle.sample(1.5)


def test_who_is_told_of_drifts():
    told = []
    heddle.on_drift(told.append)
    heddle._stats._listeners[-1](None, S.sized(S.Drift, kernel=b"k", problem=b"1x2x3", samples=30, factor=1.25))
    heddle.on_drift(None)
    assert told == [{"samples": 30, "kernel": "k", "pattern": None, "device": None, "bus": None, "problem": "1x2x3", "expected_us": 0.0,
                     "median_us": 0.0, "spread_us": 0.0, "factor": 1.25, "since_unix": 0}]
    with pytest.raises(heddle.InvalidArgumentError, match="on_drift: found: expected a function or None, got 5"):
        heddle.on_drift(5)


def test_the_text_says_what_the_numbers_say():
    heddle.attention(*draw(), "causal")
    text, stats = heddle.stats_text(), heddle.stats()
    launches = [int(each) for each in re.findall(r"^heddle_launches_total\{.*\} (\d+)$", text, re.M)]
    assert sum(launches) == stats["launches"] and text.endswith("\n# EOF\n")
    assert f'heddle_refusals_total{{reason="notFound"}} {stats["refusals"]["not_found"]}\n' in text


@pytest.mark.skipif(not importlib.util.find_spec("prometheus_client"), reason="no prometheus_client")
def test_metrics_of_the_default_registry_of_prometheus_client():
    from prometheus_client import REGISTRY
    heddle.attention(*draw(), "causal")
    families = {family.name: family for family in REGISTRY.collect() if family.name.startswith("heddle_")}
    assert families["heddle_launches"].type == "counter" and families["heddle_kernel_seconds"].type == "summary"
    assert families["heddle_workspace_bytes"].type == "gauge" and families["heddle_workspace_bytes"].unit == "bytes"
    assert sum(sample.value for sample in families["heddle_launches"].samples) == heddle.stats()["launches"]


def test_importing_neither_loads_a_library_nor_registers():
    code = "import sys, heddle; assert 'prometheus_client' not in sys.modules"
    environment = {**os.environ, "HEDDLE_LIBRARY": "/nowhere", "PYTHONPATH": os.path.dirname(os.path.dirname(heddle.__file__))}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
