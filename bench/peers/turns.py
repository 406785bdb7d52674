"""Turns on one GPU: processes prepare at the same time, and one that measures is alone. No torch here."""
import contextlib
import fcntl
import os


class Turns:
    """Two locked files of a folder. Whoever wants to measure holds the door, so that nobody begins to prepare, until those
    who prepare are through. Without a folder there is nobody else."""

    def __init__(self, folder=None):
        self.door, self.room = (folder and os.path.join(folder, name) for name in ("door", "room"))

    @contextlib.contextmanager
    def preparing(self):
        with contextlib.ExitStack() as held:
            with _locked(self.door, fcntl.LOCK_SH):
                held.enter_context(_locked(self.room, fcntl.LOCK_SH))
            yield

    @contextlib.contextmanager
    def measuring(self):
        with _locked(self.door, fcntl.LOCK_EX), _locked(self.room, fcntl.LOCK_EX):
            yield


@contextlib.contextmanager
def _locked(path, kind):
    if not path:
        yield
        return
    with open(path, "a") as file:  # closing it unlocks it, also when the process dies
        fcntl.flock(file, kind)
        yield
