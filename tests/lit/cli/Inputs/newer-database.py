# newer-database.py <file>: a database of ours whose schema version is of the far future.
import os
import sqlite3
import sys

if os.path.exists(sys.argv[1]):
    os.remove(sys.argv[1])
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA application_id = 0x68656464")
database.execute("PRAGMA user_version = 1000000")
database.execute("CREATE TABLE later (x)")
database.commit()
database.close()
