"""kill-sweep.py FOLDER COMMAND...: starts the command, a sweep into FOLDER, three times, and kills it with SIGKILL once it has
recorded more than before; it alone, as the kernel does that runs out of memory. Fails if a process that it started lives on,
or if what an earlier run recorded is gone or was recorded again."""
import glob
import os
import signal
import sqlite3
import subprocess
import sys
import time

folder, command = sys.argv[1], sys.argv[2:]


def trials():
    rows = {}
    for path in glob.glob(folder + "/shard-*.db"):
        try:
            database = sqlite3.connect("file:" + path + "?mode=ro", uri=True, timeout=30)
            rows.update({row[:-1]: row[-1] for row in database.execute("SELECT pattern, head_dim, tiles_per_row, batch, seqlen_q, config, created_unix FROM trials")})
        except sqlite3.OperationalError:
            pass  # not made yet
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


def until(what, holds, seconds=60):
    end = time.time() + seconds
    while not holds():
        if time.time() > end:
            sys.exit("waited for ever: " + what)
        time.sleep(0.05)


def lives(process):
    try:
        with open("/proc/%d/stat" % process) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


before = {}
for kill in range(3):
    sweep = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until("a trial more than %d" % len(before), lambda: len(trials()) > len(before) or sweep.poll() is not None)
    if sweep.poll() is not None:
        sys.exit("the sweep ended by itself")
    started = children(sweep.pid)
    if not started:
        sys.exit("the sweep has started no process")
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    until("the end of what the sweep had started", lambda: not any(map(lives, started)), 10)
    now = trials()
    if any(now.get(row) != when for row, when in before.items()):
        sys.exit("trials were lost or recorded again")
    before = now
print(len(before), "trials before the last kill")
