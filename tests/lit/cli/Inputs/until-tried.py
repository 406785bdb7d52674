"""until-tried.py FILE COMMAND...: runs the command, a search into FILE, and interrupts it as soon as it has recorded a trial."""
import os
import signal
import sqlite3
import subprocess
import sys
import time


def is_tried(path):
    if not os.path.exists(path):
        return False
    try:
        database = sqlite3.connect("file:" + path + "?mode=ro", uri=True, timeout=30)
        return database.execute("SELECT count(*) FROM trials").fetchone()[0] > 0
    except sqlite3.OperationalError:  # a file without tables yet
        return False


# Without kept results of NVRTC: a search that ends leaves a compilation running, which must not be the first real one of the
# process, as NVRTC then loads what is unloaded under it.
search = subprocess.Popen(sys.argv[2:], env=dict(os.environ, HEDDLE_NVRTC_CACHE=""))
while search.poll() is None and not is_tried(sys.argv[1]):
    time.sleep(0.05)
if search.poll() is None:
    search.send_signal(signal.SIGINT)
sys.exit(search.wait())
