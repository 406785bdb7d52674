# journal.py FOLDER: the journals of two shards; of one item the last of two ends counts, and a line was cut by a kill.
import json
import os
import sys


def line(item, done, message, us):
    return json.dumps({"item": item, "done": done, "message": message, "device": "Some GPU", "host": "node", "median_us": us,
                       "seconds": 3.5, "ended_unix": 1795305600}) + "\n"


causal = "../../../../patterns/causal.mlir bf16 head_dim=64 1x16x8192"
window = "../../../../patterns/sliding_window.mlir as window_1k left=1023 bf16 head_dim=64 1x16x8192"
with open(os.path.join(sys.argv[1], "shard-0-of-2.jsonl"), "w") as journal:
    journal.write(line(causal, True, "", 12.5) + line(window, False, "no luck", 0) + line(window, False, "no luck twice", 0))
with open(os.path.join(sys.argv[1], "shard-1-of-2.jsonl"), "w") as journal:
    journal.write(line("another plan's item", True, "", 1)[:40])
