"""The time limit of checks on a GPU."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PRELUDE = "import ctypes, time\nfrom time_limit import time_limit\n"


def run(text):
    return subprocess.run([sys.executable, "-c", PRELUDE + text], cwd=HERE, timeout=60,
                          capture_output=True, text=True)


def test_a_call_that_never_returns_ends_the_program():
    done = run("def hangs():\n    ctypes.CDLL(None).sleep(50)\nwith time_limit(0.2):\n    hangs()\n")
    assert done.returncode == 1
    assert "Timeout" in done.stderr and "in hangs" in done.stderr


def test_a_check_in_time_leaves_no_limit_behind():
    done = run("with time_limit(0.2):\n    pass\ntime.sleep(0.5)\nprint('done')\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_check_that_fails_leaves_no_limit_behind():
    done = run("try:\n    with time_limit(0.2):\n        1 / 0\nexcept ZeroDivisionError:\n    time.sleep(0.5)\nprint('done')\n")
    assert (done.returncode, done.stdout) == (0, "done\n")


CONFTEST = """
import importlib.util, sys
sys.path.insert(0, {here!r})
spec = importlib.util.spec_from_file_location("limited", {here!r} + "/device/conftest.py")
limited = importlib.util.module_from_spec(spec)
spec.loader.exec_module(limited)
limited.LIMIT = 0.5
for name in dir(limited):
    if not name.startswith("_"):
        globals()[name] = getattr(limited, name)
"""


def test_a_test_on_a_gpu_that_never_returns_ends_pytest(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST.format(here=HERE))
    (tmp_path / "test_it.py").write_text("import time\ndef test_hangs():\n    time.sleep(50)\n")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)], capture_output=True, text=True,
                          timeout=60, env=environment)
    assert done.returncode == 1
    assert "Timeout" in done.stderr and "in test_hangs" in done.stderr
