"""examples.py FOLDER: runs every example of every help text in the folder, those that make inputs first."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))
import verb_tree

PLAN = '{"patterns": ["causal", {"file": "sliding_window", "set": {"left": "1k"}}], "problems": {"heads": 16, "seqlen": "8k"}, "archs": "sm_90a", "head_dims": 64}'
# What may lack something here: a GPU or NVRTC (3); trials, a kernel of that key or name, shards, the table of the trials (1).
MAY_FAIL = {"tune": (3,), "bench": (3,), "compile": (3,), "pack": (3,), "sweep run": (3,), "run": (3,), "ring links": (3,), "model table": (1,), "model fit": (1,),
            "cache show": (1,), "cache export": (1,), "cache import": (1,), "cache merge": (1,), "cache diff": (1,), "sweep merge": (1,)}

TRAINING = """{"model": {"layers": 32, "width": 4096, "heads": 32, "ffn": 11008, "vocabulary": 32000}, "attention": "causal", "context": "8k",
 "batch_tokens": "1M", "cluster": {"gpu": "h100", "gpus": 16, "inside": {"gbps": 450}, "between": {"gbps": 50}}}"""

os.chdir(sys.argv[1])
open("plan.json", "w").write(PLAN)
open("training.json", "w").write(TRAINING)
examples = []
for leaf in verb_tree.leaves():
    found = re.findall(r"^  (heddle .*?)(?:  +#.*)?$", verb_tree.run(*leaf, "--help").stdout, re.M)
    assert found, f"heddle {' '.join(leaf)} has no example"
    examples += [(leaf, example) for example in found]
examples.sort(key=lambda one: one[0] != ("make-inputs",))
refused = []
for leaf, example in examples:
    done = subprocess.run(["sh", "-c", example], capture_output=True, text=True)
    print(done.returncode, example)
    if done.returncode and done.returncode not in MAY_FAIL.get(" ".join(leaf), ()):
        refused.append(f"{example}: exit code {done.returncode}: {done.stderr}")
print("\n".join(refused))
print(len(examples), "examples,", f"{len(refused)} refused" if refused else "none refused")
sys.exit(bool(refused))
