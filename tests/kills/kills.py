"""kills.py HEDDLE KILLS [SEED]: kills every verb that writes, KILLS times in all, at random moments of its run, also while it makes
its file. Afterwards every verb that opens the file does so, whichever comes first; what is there is whole; the same command goes
through; and nothing that was begun is left behind. Says how many were killed at work, and exits with 1 at the first failure."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "lit", "cli", "Inputs"))
import store  # noqa: E402

HEDDLE, KILLS = os.path.abspath(sys.argv[1]), int(sys.argv[2])
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
        self.folder = folder
        self.a, self.b = self.path("a.db"), self.path("b.db")
        many(self.a, "a", 60)
        many(self.b, "b", 60)
        self.tables = self.path("tables")
        os.mkdir(self.tables)
        table = open(os.path.join(ROOT, "tests/data/tuner/h200_causal_8k_d128.csv")).readlines()[:40]
        open(os.path.join(self.tables, "causal.csv"), "w").writelines(table)
        causal = os.path.join(ROOT, "patterns/causal.mlir")
        self.plan, self.pack_plan, self.sweep = self.path("plan.json"), self.path("pack.json"), self.path("sweep")
        json.dump({"patterns": causal, "head_dims": 128, "problems": {"batch": 2, "heads": 16, "seqlen": 8192}}, open(self.plan, "w"))
        json.dump({"patterns": [causal], "head_dims": [64], "archs": ["sm_80"]}, open(self.pack_plan, "w"))
        ran = heddle("sweep", "run", self.plan, "--dir=" + self.sweep, "--recorded=" + self.tables)
        if ran.returncode:
            fail("the sweep that is merged later does not run", ran)

    def path(self, name):
        return os.path.join(self.folder, name)


def verbs(inputs):
    """Name, command whose OUT is the file, whether that is a database, and the file that is there before."""
    causal = "patterns/causal.mlir"
    problem = [causal, "--batch=2", "--heads=16", "--seqlen=8192", "--head-dim=128"]
    yield "tune --recorded, a new database", ["tune", *problem, "--recorded=" + inputs.tables, "--db=OUT"], True, None
    yield "tune --recorded", ["tune", *problem, "--recorded=" + inputs.tables, "--db=OUT"], True, inputs.a
    yield "sweep run --recorded", ["sweep", "run", inputs.plan, "--dir=FOLDER", "--recorded=" + inputs.tables], True, None
    yield "sweep merge", ["sweep", "merge", inputs.plan, "--dir=" + inputs.sweep, "-o", "OUT"], True, None
    yield "cache merge, a new database", ["cache", "merge", "OUT", inputs.a, inputs.b], True, None
    yield "cache merge", ["cache", "merge", "OUT", inputs.b], True, inputs.a
    yield "cache import, a new database", ["cache", "import", "--yes", "--db=OUT", inputs.b], True, None
    yield "cache import", ["cache", "import", "--yes", "--db=OUT", inputs.b], True, inputs.a
    yield "cache prune", ["cache", "prune", "--keep-generator=g0", "--db=OUT"], True, inputs.a
    yield "cache export", ["cache", "export", "--db=" + inputs.a, "-o", "OUT"], True, None
    yield "make-inputs", ["make-inputs", "--seqlen=4096", "--heads=4", "--head-dim=64", "-o", "OUT"], False, None
    yield "show", ["show", causal, "--seqlen=512", "-o", "OUT"], False, None
    yield "report", ["report", "--db=" + inputs.a, "--against=" + inputs.b, "-o", "OUT"], False, None
    compiled = heddle("compile", causal, "--arch=sm_80", "--emit=ptx", "-o", inputs.path("ptx"))
    if compiled.returncode == 3:
        print("kills.py: compile and pack are left out: " + compiled.stderr.strip())
        return
    yield "compile, a new database", ["compile", causal, "--arch=sm_80", "--db=OUT"], True, None
    yield "compile", ["compile", causal, "--arch=sm_80", "--db=OUT"], True, inputs.a
    yield "compile -o", ["compile", causal, "--arch=sm_80", "--emit=ptx", "-o", "OUT"], False, None
    yield "pack", ["pack", inputs.pack_plan, "-o", "OUT"], True, None


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
        """How long the command takes, and what it writes where that is no database."""
        self.clear()
        begin = time.time()
        self.run()
        return time.time() - begin, None if self.is_database else open(self.out, "rb").read()

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

    def kill(self, whole, moment):
        """True if it was at work."""
        self.clear()
        process = subprocess.Popen([HEDDLE, *self.words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(moment * whole)
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


def main():
    dice = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    with tempfile.TemporaryDirectory(prefix="heddle-kills-") as folder:
        inputs = Inputs(folder)
        cases = [(name, Case(inputs, os.path.join(folder, "place"), words, is_database, before))
                 for name, words, is_database, before in verbs(inputs)]
        known, at_work = {}, 0
        order = list(range(len(cases)))
        for kill in range(KILLS):
            if kill % len(cases) == 0:
                dice.shuffle(order)
            number = order[kill % len(cases)]
            name, case = cases[number]
            whole, expected = known[number] if number in known else known.setdefault(number, case.undisturbed())
            at_work += case.kill(whole, dice.uniform(0.1, 1))
            case.check(expected, dice.sample(case.readers(), 3 if KILLS < 100 else 5))
        print(f"{KILLS} kills of {len(cases)} verbs, {at_work} at work: every verb opened what was left")
        if at_work * 2 < KILLS:
            fail("too few were killed at work to say anything")


main()
