# tuned.py FROM TO: a copy in which somebody tuned the pattern named causal on a GPU, with the kernel that is there.
import shutil
import sqlite3
import sys

import store

source, target = sys.argv[1:]
shutil.copy(source, target)
database = store.Database.__new__(store.Database)
database.file = sqlite3.connect(target)
content, pattern, generator = database.file.execute(
    "SELECT content_key, pattern, generator FROM kernels JOIN names USING (pattern) WHERE name = 'causal' AND kernel_arch = 'sm_90a'").fetchone()
database.winner(content, {**store.key(pattern, 4, "NVIDIA H200"), "generator": generator}, 12.5)
database.file.commit()
