# hold.py FILE COMMAND...: runs the command while this process holds the database, until the command has said something about that.
import sqlite3
import subprocess
import sys

database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
command = subprocess.Popen(sys.argv[2:], stderr=subprocess.PIPE, text=True)
said = command.stderr.readline()
database.execute("COMMIT")
sys.stderr.write(said + command.stderr.read())
sys.exit(command.wait())
