# killed-writer.py FILE: ends as one that is killed while it writes to the database, when the file has what the journal undoes.
import os
import signal
import sqlite3
import subprocess
import sys

if len(sys.argv) == 2:
    writer = subprocess.run([sys.executable, sys.argv[0], sys.argv[1], "write"])
    sys.exit(writer.returncode != -signal.SIGKILL or not os.path.getsize(sys.argv[1] + "-journal"))
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 1")
database.execute("BEGIN IMMEDIATE")
for table in ("winners", "kernels", "trials"):
    database.execute("DELETE FROM " + table)
for name in range(200):
    database.execute("INSERT INTO names VALUES (?, 'p', '', 1, ?)", (str(name), "x" * 4000))
os.kill(os.getpid(), signal.SIGKILL)
