"""The time limit of checks on a GPU."""
import faulthandler
import os
import subprocess
import sys

import pytest

from time_limit import time_limit

HERE = os.path.dirname(os.path.abspath(__file__))
PRELUDE = "import ctypes, time\nfrom time_limit import time_limit\n"


def run(text):
    return subprocess.run([sys.executable, "-c", PRELUDE + text], cwd=HERE, timeout=600,
                          capture_output=True, text=True)


def test_a_call_that_never_returns_ends_the_program():
    done = run("def hangs():\n    ctypes.CDLL(None).sleep(86400)\nwith time_limit(2):\n    hangs()\n")
    assert done.returncode == 1
    assert "Timeout" in done.stderr and "in hangs" in done.stderr


@pytest.fixture
def asked(monkeypatch):
    """What the interpreter is asked to watch, without its watching."""
    asked = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda seconds, **_: asked.append(seconds))
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: asked.append("nothing"))
    return asked


def test_a_check_in_time_leaves_no_limit_behind(asked):
    with time_limit(30):
        assert asked == [30]
    assert asked == [30, "nothing"]


def test_a_check_that_fails_leaves_no_limit_behind(asked):
    with pytest.raises(ZeroDivisionError), time_limit(30):
        1 / 0
    assert asked == [30, "nothing"]


CONFTEST = """
import importlib.util, sys
sys.path.insert(0, {here!r})
spec = importlib.util.spec_from_file_location("limited", {here!r} + "/device/conftest.py")
limited = importlib.util.module_from_spec(spec)
spec.loader.exec_module(limited)
limited.LIMIT = 5
for name in dir(limited):
    if not name.startswith("_"):
        globals()[name] = getattr(limited, name)
"""


def test_a_test_on_a_gpu_that_never_returns_ends_pytest(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST.format(here=HERE))
    (tmp_path / "test_it.py").write_text("import time\ndef test_hangs():\n    time.sleep(86400)\n")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)], capture_output=True, text=True,
                          timeout=600, env=environment)
    assert done.returncode == 1
    assert "Timeout" in done.stderr and "in test_hangs" in done.stderr
