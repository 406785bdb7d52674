# trials.py [--no-times] DATABASE: the trials of a database, a line each, sorted: session, configuration, when it was recorded.
import sqlite3
import sys

with_times = sys.argv[1] != "--no-times"
database = sqlite3.connect("file:" + sys.argv[-1] + "?mode=ro", uri=True, timeout=30)
columns = "pattern, head_dim, work_per_sm, tiles_per_row, gqa_ratio, batch, seqlen_q, device_name, config" + (", created_unix" if with_times else "")
lines = sorted("|".join(map(str, row)) for row in database.execute("SELECT " + columns + " FROM trials"))
if len(set(lines)) != len(lines):
    sys.exit("trials.py: " + sys.argv[-1] + " has a trial twice")
if lines:
    print("\n".join(lines))
