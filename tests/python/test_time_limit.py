"""The time limit of checks on a GPU."""
import os
import subprocess
import sys

PRELUDE = "import ctypes, time\nfrom time_limit import time_limit\n"


def run(text):
    return subprocess.run([sys.executable, "-c", PRELUDE + text], cwd=os.path.dirname(os.path.abspath(__file__)), timeout=60,
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
