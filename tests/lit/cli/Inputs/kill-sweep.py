"""kill-sweep.py LIBRARY FOLDER COMMAND...: starts the command, a sweep into FOLDER, three times, and kills it with SIGKILL when a process
that it started has come to a call by which it records trials, and waits there (LIBRARY, tests/kills/counted.py); the sweep alone is killed,
as the kernel does that runs out of memory. Fails if a process that it started lives on, or if what an earlier run recorded is gone or was
recorded again."""
import glob
import os
import signal
import sqlite3
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "kills"))
import counted  # noqa: E402

KILLS, HANG_SECONDS = 3, 600
library, folder, command = sys.argv[1], sys.argv[2], sys.argv[3:]


def trials():
    rows = {}
    for path in glob.glob(folder + "/shard-*.db"):
        database = sqlite3.connect("file:" + path + "?mode=ro", uri=True, timeout=30)
        rows.update({row[:-1]: row[-1] for row in database.execute("SELECT pattern, head_dim, tiles_per_row, batch, seqlen_q, config, created_unix FROM trials")})
    return rows


def children(parent):
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == parent:
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def until(what, holds):
    end = time.time() + HANG_SECONDS
    while not holds():
        if time.time() > end:
            sys.exit("waited for ever: " + what)
        time.sleep(0.02)


def lives(process):
    try:
        with open("/proc/%d/stat" % process) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def main():
    with tempfile.TemporaryDirectory() as scratch:
        calls = counted.Counted(scratch, library)
        code, whole = calls.run([word.replace(folder, os.path.join(scratch, "undisturbed")) for word in command])
        if code:
            sys.exit("the sweep that nobody disturbs ends with %d" % code)
        last, before = whole // (KILLS + 1), {}
        for _ in range(KILLS):
            sweep = calls.start(command, last, HEDDLE_WAITS_AT_CALL="1")
            until("call %d" % last, lambda: calls.made() >= last or sweep.poll() is not None)
            if sweep.poll() is not None:
                sys.exit("the sweep ended by itself")
            started = children(sweep.pid)
            if not started:
                sys.exit("the sweep has started no process")
            os.kill(sweep.pid, signal.SIGKILL)
            sweep.wait()
            until("the end of what the sweep had started", lambda: not any(map(lives, started)))
            now = trials()
            if len(now) <= len(before):
                sys.exit("no trial was recorded")
            if any(now.get(row) != when for row, when in before.items()):
                sys.exit("trials were lost or recorded again")
            before = now
        print(len(before), "trials before the last kill")


main()
