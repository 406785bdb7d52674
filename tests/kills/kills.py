"""kills.py HEDDLE LIBRARY KILLS [SEED]: kills every verb that writes, KILLS times in all, each at one of the calls by which it changes
files, also while it makes its file. LIBRARY, which is preloaded, counts these calls (tests/unit/support/CountedCalls.h): first in a run
that nobody disturbs, then up to the one that was drawn. Afterwards every verb that opens the file does so, whichever comes first; what is
there is whole; the same command goes through; and nothing that was begun is left behind. Exits with 1 at the first failure."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "lit", "cli", "Inputs"))
import counted  # noqa: E402
import store  # noqa: E402

HEDDLE, LIBRARY, KILLS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3])
SIDES = ("", "-wal", "-shm", "-journal")
NO_STORE, NO_ROWS = ("there is no such file", "the file is empty"), "there is nothing to report"


def heddle(*words):
    return subprocess.run([HEDDLE, *words], cwd=ROOT, capture_output=True, text=True, timeout=120)


def fail(what, ran=None):
    sys.exit("kills.py: " + what + (f"\n{ran.args}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}" if ran else ""))


def many(path, which, rows):
    """A database like `which` of store.py, with more kernels, so that writing it takes a moment."""
    store.make(path, which)
    database = store.Database.__new__(store.Database)
    database.file = store.sqlite3.connect(path)
    for row in range(rows):
        key = store.key(store.CAUSAL, 100 + row, "GPU of " + which)
        database.kernel(f"{which}{row:06}", store.CAUSAL, "block_m=64\n" + "x=1\n" * 2000)
        database.winner(f"{which}{row:06}", key, 10 + row)
        database.trial(key, f"block_m={row}", 10 + row)
    database.file.commit()
    database.file.close()


class Inputs:
    """What the verbs read, made once."""

    def __init__(self, folder):
        self.folder, self.counted = folder, counted.Counted(folder, LIBRARY)
        self.a, self.b = self.path("a.db"), self.path("b.db")
        many(self.a, "a", 60)
        many(self.b, "b", 60)
        tables = os.environ["HEDDLE_RECORDED"] = self.path("tables")  # of heddle-recorded, which the tests give as HEDDLE
        os.mkdir(tables)
        table = open(os.path.join(ROOT, "tests/data/tuner/h200_causal_8k_d128.csv")).readlines()[:40]
        open(os.path.join(tables, "causal.csv"), "w").writelines(table)
        causal = os.path.join(ROOT, "patterns/causal.mlir")
        self.plan, self.pack_plan, self.sweep = self.path("plan.json"), self.path("pack.json"), self.path("sweep")
        json.dump({"patterns": causal, "head_dims": 128, "problems": {"batch": 2, "heads": 16, "seqlen": 8192}}, open(self.plan, "w"))
        json.dump({"patterns": [causal], "head_dims": [64], "archs": ["sm_80"]}, open(self.pack_plan, "w"))
        ran = heddle("sweep", "run", self.plan, "--dir=" + self.sweep)
        if ran.returncode:
            fail("the sweep that is merged later does not run", ran)

    def path(self, name):
        return os.path.join(self.folder, name)


def verbs(inputs):
    """Command whose OUT is the file, whether that is a database, and the file that is there before."""
    causal = "patterns/causal.mlir"
    problem = [causal, "--batch=2", "--heads=16", "--seqlen=8192", "--head-dim=128"]
    yield ["tune", *problem, "--db=OUT"], True, None
    yield ["tune", *problem, "--db=OUT"], True, inputs.a
    yield ["sweep", "run", inputs.plan, "--dir=FOLDER"], True, None
    yield ["sweep", "merge", inputs.plan, "--dir=" + inputs.sweep, "-o", "OUT"], True, None
    yield ["cache", "merge", "OUT", inputs.a, inputs.b], True, None
    yield ["cache", "merge", "OUT", inputs.b], True, inputs.a
    yield ["cache", "import", "--yes", "--db=OUT", inputs.b], True, None
    yield ["cache", "import", "--yes", "--db=OUT", inputs.b], True, inputs.a
    yield ["cache", "prune", "--keep-generator=g0", "--db=OUT"], True, inputs.a
    yield ["cache", "export", "--db=" + inputs.a, "-o", "OUT"], True, None
    yield ["make-inputs", "--seqlen=4096", "--heads=4", "--head-dim=64", "-o", "OUT"], False, None
    yield ["show", causal, "--seqlen=512", "-o", "OUT"], False, None
    yield ["report", "--db=" + inputs.a, "--against=" + inputs.b, "-o", "OUT"], False, None
    compiled = heddle("compile", causal, "--arch=sm_80", "--emit=ptx", "-o", inputs.path("ptx"))
    if compiled.returncode == 3:
        print("kills.py: compile and pack are left out: " + compiled.stderr.strip())
        return
    yield ["compile", causal, "--arch=sm_80", "--db=OUT"], True, None
    yield ["compile", causal, "--arch=sm_80", "--db=OUT"], True, inputs.a
    yield ["compile", causal, "--arch=sm_80", "--emit=ptx", "-o", "OUT"], False, None
    yield ["pack", inputs.pack_plan, "-o", "OUT"], True, None


ENDINGS = {"show": "svg", "report": "html"}  # which these verbs ask for


class Case:
    def __init__(self, inputs, folder, words, is_database, before):
        self.inputs, self.folder, self.is_database, self.before = inputs, folder, is_database, before
        self.out = os.path.join(folder, "shard-0-of-1.db" if "FOLDER" in "".join(words) else "out." + ENDINGS.get(words[0], "db"))
        self.words = [word.replace("OUT", self.out).replace("FOLDER", folder) for word in words]
        # What may not be there before stays what it is: the undisturbed runs and those after a kill begin alike.
        self.is_new_only = words[0] == "pack" or words[:2] == ["cache", "export"]

    def clear(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder, 0o700)
        if self.before:
            shutil.copy(self.before, self.out)

    def run(self):
        ran = heddle(*self.words)
        if ran.returncode:
            fail("it does not go through", ran)

    def undisturbed(self):
        """How many calls of the command change a file, and what it writes where that is no database."""
        self.clear()
        code, calls = self.inputs.counted.run([HEDDLE, *self.words])
        if code or not calls:
            fail(f"{self.words}: exit {code} after {calls} calls that change a file")
        return calls, None if self.is_database else open(self.out, "rb").read()

    def readers(self):
        spare = os.path.join(self.folder, "spare.db")
        return [["cache", "ls", "--db=" + self.out], ["cache", "ls", "--trials", "--db=" + self.out], ["cache", "names", "--db=" + self.out],
                ["cache", "verify", "--db=" + self.out], ["cache", "diff", self.out, self.inputs.b],
                ["cache", "prune", "--dry-run", "--db=" + self.out], ["cache", "import", "--dry-run", "--db=" + self.out, self.inputs.b],
                ["cache", "import", "--dry-run", "--db=" + spare, self.out], ["cache", "merge", spare, self.out],
                ["report", "--db=" + self.out, "--json"], ["cache", "merge", self.out, self.inputs.b]]

    def check_database(self, chosen):
        """Each of the chosen verbs is the first to open what the kill left."""
        left = {side: open(self.out + side, "rb").read() for side in SIDES if os.path.exists(self.out + side)}
        for words in chosen:
            for side in SIDES:
                if os.path.exists(self.out + side):
                    os.remove(self.out + side)
                if side in left and side != "-shm":
                    open(self.out + side, "wb").write(left[side])
            ran = heddle(*words)
            is_no_store = ran.returncode == 1 and any(text in ran.stderr for text in NO_STORE)
            if ran.returncode and not is_no_store and NO_ROWS not in ran.stderr:
                fail("a verb does not open what the kill left", ran)
            if is_no_store and self.before:
                fail("what was there is gone", ran)
            verified = heddle("cache", "verify", "--db=" + self.out)
            if verified.returncode and not any(text in verified.stderr for text in NO_STORE):
                fail("damage after " + " ".join(words), verified)
            for spare in SIDES:
                if os.path.exists(os.path.join(self.folder, "spare.db" + spare)):
                    os.remove(os.path.join(self.folder, "spare.db" + spare))

    def check(self, expected, chosen):
        if self.is_database:
            self.check_database(chosen)
        elif os.path.exists(self.out) and open(self.out, "rb").read() != expected:
            fail("half a file: " + self.out)
        if not (self.is_new_only and os.path.exists(self.out)):
            self.run()
        left = [name for name in os.listdir(self.folder) if name.startswith(".heddle-part-")]
        if left and not self.is_new_only:
            fail(f"left behind after {self.words}: {left}")

    def kill(self, last):
        """At that call, or at an earlier one where threads shared the work so that there were fewer."""
        code = 0
        while code != -signal.SIGKILL:
            self.clear()
            code, calls = self.inputs.counted.run([HEDDLE, *self.words], last)
            if code not in (0, -signal.SIGKILL) or calls == 0:
                fail(f"{self.words}: exit {code} after {calls} calls, to be killed at {last}")
            last = (last + 1) // 2


def main():
    dice = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    with tempfile.TemporaryDirectory(prefix="heddle-kills-") as folder:
        inputs = Inputs(folder)
        cases = [Case(inputs, os.path.join(folder, "place"), *verb) for verb in verbs(inputs)]
        known = {}
        order = list(range(len(cases)))
        for kill in range(KILLS):
            if kill % len(cases) == 0:
                dice.shuffle(order)
            number = order[kill % len(cases)]
            case = cases[number]
            if number not in known:
                known[number] = case.undisturbed()
            calls, expected = known[number]
            case.kill(dice.randint(1, calls))
            case.check(expected, dice.sample(case.readers(), 3 if KILLS < 100 else 5))
        print(f"{KILLS} kills of {len(cases)} verbs at work: every verb opened what was left")


main()
