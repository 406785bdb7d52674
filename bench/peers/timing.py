"""Rounds of single launches in one process: every entry once a round, in an order drawn anew, the L2 flushed before each."""
import random
import subprocess
import tempfile

import torch

FLUSH_BYTES = 256 << 20
SLEEP_CYCLES = 500_000  # about 0.3 ms: the host is ahead of the GPU when the timed launch comes


class Rounds:
    def __init__(self, seed=1):
        self.flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        self.random = random.Random(seed)

    def measure(self, launches, repetitions, warmups=2):
        """name -> Launch; milliseconds of each, in the order of the rounds."""
        times = {name: [] for name in launches}
        for round_number in range(warmups + repetitions):
            order = list(launches)
            self.random.shuffle(order)
            for name in order:
                milliseconds = self.once(launches[name])
                if round_number >= warmups:
                    times[name].append(milliseconds)
        return times

    def once(self, launch):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with launch.context():
            torch.cuda._sleep(SLEEP_CYCLES)
            self.flush.zero_()
            start.record()
            result = launch.run()
            stop.record()
        stop.synchronize()
        del result
        return start.elapsed_time(stop)


class Clock:
    """nvidia-smi in a process of its own, ten readings a second; nothing where it cannot be started."""
    FIELDS = {"sm_mhz": "clocks.sm", "power_w": "power.draw", "temperature_c": "temperature.gpu"}

    def __enter__(self):
        self.file = tempfile.TemporaryFile("w+")
        try:
            self.process = subprocess.Popen(
                ["nvidia-smi", "-i", "0", "--query-gpu=" + ",".join(self.FIELDS.values()), "--format=csv,noheader,nounits", "-lms", "100"],
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
