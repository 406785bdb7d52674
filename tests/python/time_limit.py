"""Ends the program when a check runs too long, also inside a call that never returns, such as a wait for a kernel that hangs."""
import contextlib
import faulthandler
import sys


@contextlib.contextmanager
def time_limit(seconds, file=sys.__stderr__):
    """Exit code 1 behind the limit; `file` says 'Timeout' and where every thread stood."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=file)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
