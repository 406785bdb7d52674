"""docs/operations.md: its example as it stands, and its table of metrics against the text."""
import os
import re

import heddle
import pytest

np = pytest.importorskip("numpy")
import device_arrays  # noqa: E402

PACKAGE = os.environ.get("HEDDLE_HOST_PACKAGE", "")
pytestmark = [pytest.mark.skipif(not PACKAGE, reason="HEDDLE_HOST_PACKAGE is not set"),
              pytest.mark.skipif(heddle.has_compiler(), reason="names of the packed file are for the runtime alone")]


@pytest.fixture
def page(root):
    with open(os.path.join(root, "docs", "operations.md"), encoding="utf-8") as file:
        return file.read()


def test_the_example(page, capsys):
    heddle.configure(database=PACKAGE, immutable=True)
    batch, rows, heads = 1, 37, 2
    generator = np.random.default_rng(3)
    q, k, v = (device_arrays.bf16(generator.standard_normal((batch, rows, each, 64)), 0) for each in (heads, 1, 1))
    before = heddle.stats()
    try:
        exec(re.search(r"```python watch\.py\n(.*?)```", page, re.S).group(1), {**locals()})
    finally:
        heddle.sample(0)
    first, *text = capsys.readouterr().out.splitlines()
    launches, samples, pairs, slow = map(int, re.findall(r"\d+", first))
    assert launches - before["launches"] == 128 and samples - before["samples"] == 2 and slow == 0
    assert pairs - before["pairs"] == 128 * 2 * 37 * 38 // 2
    assert "# EOF" in text


def test_the_table_has_every_metric(page):
    table = re.findall(r"^\| (`heddle_.*?) \|", page, re.M)
    assert sorted(re.findall(r"heddle_\w+", " ".join(table))) == sorted(re.findall(r"^# TYPE (\w+)", heddle.stats_text(), re.M))
