"""Runs the measuring processes (session.py) and reads what they write. No torch here."""
import json
import os
import subprocess
import sys
import time

from peers import report


class Worker:
    """Measures its workloads in a process of its own. Where that crashes or hangs, what was under way is left out, one provider or one
    of its columns, and another process goes on; with nothing named as under way the workload is."""

    def __init__(self, options, results, scratch, number, names):
        self.options, self.results, self.names = options, results, names
        self.began = time.time()
        self.lines = os.path.join(scratch, f"lines{number}")
        self.turns = [f"--turns={scratch}"] if options.processes > 1 else []
        self.seen, self.begun, self.doing, self.died, self.skipped = 0, False, None, "", []
        open(self.lines, "w").close()

    def run(self):
        remaining = self.names
        while remaining and not self.is_late():
            self.begun, self.doing, self.died = False, None, ""
            reason = self.attempt(remaining)
            remaining = self.results.missing(remaining)
            if not remaining or self.is_late():
                break
            if not self.begun:
                raise RuntimeError(f"{reason or 'the measuring process ended'} before the first workload")
            remaining = self.without_cause(remaining, self.died or reason or "the measuring process ended early")

    def without_cause(self, remaining, reason):
        """What is left to do, the first of it being under way when `reason` ended the process."""
        known = [skip[:3] for skip in self.skipped]
        if self.doing and self.doing[0] == remaining[0] and self.doing not in known:
            self.say(f"{' / '.join(self.doing)}: {reason}: left out")
            self.skipped.append([*self.doing, reason])
            return remaining
        self.say(f"{remaining[0]}: {reason}")
        self.results.add({"name": remaining[0], "verdict": reason})
        return remaining[1:]

    def is_late(self):
        return time.time() > self.options.until

    def say(self, text):
        print(f"{time.time() - self.began:6.1f} s  {text}", file=sys.stderr, flush=True)

    def command(self, names):
        return [*self.options.self_command, f"--lines={self.lines}", *self.turns, *(f"--skip={json.dumps(skip)}" for skip in self.skipped), *names]

    def attempt(self, names):
        """Why the process ended; empty if it came to its end."""
        child = subprocess.Popen(self.command(names))
        try:
            return self.watch(child)
        finally:
            child.kill()
            child.wait()

    def watch(self, child):
        last = time.time()
        while child.poll() is None:
            time.sleep(0.05)
            if self.read():
                last = time.time()
            if self.is_late():
                return "no time is left"
            if time.time() - last > self.options.limit:
                return f"still running after {self.options.limit:.0f} s"
        self.read()
        return _ending(child.returncode) if child.returncode else ""

    def read(self):
        """What the measuring process wrote since; whether there was any."""
        with open(self.lines) as file:
            file.seek(self.seen)
            whole = file.read()
        whole = whole[:whole.rfind("\n") + 1]
        self.seen += len(whole)
        for line in whole.splitlines():
            self.take(json.loads(line))
        return bool(whole)

    def take(self, part):
        if "machine" in part:
            self.results.set_machine(part["machine"])
        if "begin" in part:
            self.begun = True
            self.say(f"{part['begin']} ...")
        if "doing" in part:
            self.doing = part["doing"]
            if self.doing and self.options.verbose:
                self.say(f"  {self.doing[1]}: {self.doing[2]}")
        self.died = part.get("died", self.died)
        if "row" in part:
            self.doing = None
            self.results.add(part["row"])
            self.say(report.summary_line(part["row"]))


def _ending(code):
    return f"the measuring process ended with {code}" if code > 0 else f"the measuring process was ended by signal {-code}"
