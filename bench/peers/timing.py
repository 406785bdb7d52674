"""Rounds of single launches in one process: every entry once a round, in an order drawn anew, the L2 flushed before each. No torch
here: `gpu` is a Gpu (gpu.py), or what a test puts in its place."""
import os
import random
import statistics
import subprocess
import tempfile

from peers.launch import Launch


class Rounds:
    def __init__(self, gpu, seed=1):
        self.gpu, self.random = gpu, random.Random(seed)

    def measure(self, launches, repetitions, warmups=2):
        """name -> Launch; milliseconds of each, in the order of the rounds."""
        times = {name: [] for name in launches}
        for round_number in range(warmups + repetitions):
            order = list(launches)
            self.random.shuffle(order)
            for name in order:
                with launches[name].context():
                    milliseconds = self.gpu.launch_ms(launches[name].run)
                if round_number >= warmups:
                    times[name].append(milliseconds)
        return times

    def medians(self, calls, repetitions):
        """name -> what enqueues work; milliseconds of each."""
        times = self.measure({name: Launch(call) for name, call in calls.items()}, repetitions, warmups=3)
        return {name: statistics.median(each) for name, each in times.items()}


def number():
    """Of the GPU in use, as nvidia-smi counts them."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"


class Clock:
    """nvidia-smi in a process of its own, ten readings a second; nothing where it cannot be started."""
    FIELDS = {"sm_mhz": "clocks.sm", "power_w": "power.draw", "temperature_c": "temperature.gpu"}

    def __enter__(self):
        self.file = tempfile.TemporaryFile("w+")
        try:
            self.process = subprocess.Popen(
                ["nvidia-smi", "-i", number(), "--query-gpu=" + ",".join(self.FIELDS.values()), "--format=csv,noheader,nounits", "-lms", "100"],
                stdout=self.file, stderr=subprocess.DEVNULL)
        except OSError:
            self.process = None
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait()
        self.file.seek(0)
        rows = []
        for line in self.file:
            try:
                rows.append([float(word) for word in line.split(",")])
            except ValueError:
                continue
        rows = [row for row in rows if len(row) == len(self.FIELDS)]
        self.file.close()
        self.median = {name: sorted(row[i] for row in rows)[len(rows) // 2] for i, name in enumerate(self.FIELDS)} if rows else {}
