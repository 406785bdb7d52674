"""Processes whose calls that change files are counted, with those of the processes that they start, and end at one of them."""
import mmap
import os
import struct
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Counted:
    """`folder` is for the count; `library` is that of tests/unit/support/CountedCalls.h."""

    def __init__(self, folder, library):
        self.path, self.library = os.path.join(folder, "calls"), library
        open(self.path, "wb").write(bytes(16))
        self.memory = mmap.mmap(os.open(self.path, os.O_RDWR), 16)

    def made(self):
        return struct.unpack("qq", self.memory[:])[0]

    def start(self, command, last=0, **more):
        """Call `last`, if any, is where a process dies with its session, or waits with HEDDLE_WAITS_AT_CALL in `more`."""
        self.memory[:] = struct.pack("qq", 0, last)
        # Without kept results of NVRTC (tests/unit/kept_nvrtc): the calls that file them would count, in the first run alone.
        environment = dict(os.environ, LD_PRELOAD=self.library, HEDDLE_COUNTED_CALLS=self.path, HEDDLE_NVRTC_CACHE="", **more)
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, start_new_session=True)

    def run(self, command, last=0):
        """The exit code, as Popen has it, and how many calls there were."""
        return self.start(command, last).wait(), self.made()
