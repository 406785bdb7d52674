# hold.py FILE SECONDS COMMAND...: runs the command while this process holds the database, for that long.
import sqlite3
import subprocess
import sys
import time

database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
command = subprocess.Popen(sys.argv[3:])
time.sleep(float(sys.argv[2]))
database.execute("COMMIT")
sys.exit(command.wait())
