"""The shared library: where it is, what it exports, how a failing call becomes an exception.

Asked in this order: $HEDDLE_LIBRARY, the library of the wheel (heddle/lib), the library of an installation that the loader knows.
libheddle.so has the compiler; libheddle_runtime.so launches kernels of a database or a packed file and nothing else.
"""
import ctypes as C
import os
import threading

from . import _structs as S
from . import errors

# Short ones, called with the interpreter's lock held: letting it go and taking it back costs more than they do.
_QUICK = ("heddle_kernel_launch", "heddle_prepared_launch", "heddle_kernel_workspace")


class Library:
    """The functions of one library file: `call` checks, `quick` is the bare function for launches."""

    def __init__(self, path):
        self.path = path
        self._functions = C.CDLL(path)
        self._quick = C.PyDLL(path)
        self.has_compiler = hasattr(self._functions, "heddle_pattern_parse")
        declared = {**S.runtime_functions, **(S.compiler_functions if self.has_compiler else {})}
        for name, (result, parameters) in declared.items():
            for functions in (self._functions, self._quick):
                getattr(functions, name).restype, getattr(functions, name).argtypes = result, parameters

    def version(self):
        return self._functions.heddle_version().decode()

    def tables(self):
        return self._functions.heddle_tables().decode()

    def last_message(self):
        return self._functions.heddle_last_message().decode(errors="replace")

    def error(self, status):
        """The exception for what the last call of this thread returned."""
        return errors.of_status(status, self.last_message())

    def call(self, name, *arguments):
        status = getattr(self._functions, name)(*arguments)
        if status:
            raise self.error(status)

    def opened(self, name, *arguments):
        """Calls a function whose last parameter takes a new handle, and returns that."""
        handle = C.c_void_p()
        self.call(name, *arguments, C.byref(handle))
        return handle.value

    def close(self, kind, handle):
        getattr(self._functions, f"heddle_{kind}_close")(handle)

    def cancel(self, task):
        self._functions.heddle_task_cancel(task)

    def quick(self, name):
        assert name in _QUICK
        return getattr(self._quick, name)


def package_folder():
    return os.path.dirname(os.path.abspath(__file__))


def candidates():
    """What is tried, in order."""
    named = os.environ.get("HEDDLE_LIBRARY")
    if named:
        return [named]
    names = ("libheddle.so.0", "libheddle_runtime.so.0")
    return [os.path.join(package_folder(), "lib", name) for name in names] + list(names)


def _load():
    reasons = []
    for path in candidates():
        if os.path.isabs(path) and not os.path.exists(path):
            reasons.append(f"{path}: no such file")
            continue
        try:
            return Library(path)
        except (OSError, AttributeError) as error:
            reasons.append(str(error))
    raise errors.UnavailableError("no heddle library: " + "; ".join(reasons) + "; install the wheel, or set HEDDLE_LIBRARY to the file")


_lock = threading.Lock()
_loaded = None
_waiting: list = []


def on_load(then):
    """Calls a function when the library is loaded, once."""
    _waiting.append(then)


def library():
    """The library of this process, loaded when it is first asked for. UnavailableError if there is none."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
                for then in _waiting:
                    then()
    return _loaded


def compiler_library(what):
    """The library if it has the compiler, else UnavailableError that says what would need it."""
    loaded = library()
    if not loaded.has_compiler:
        raise errors.UnavailableError(
            f"{what} needs the compiler, and {os.path.basename(loaded.path)} is the runtime alone; "
            "install a wheel with the compiler, or give a database or packed file to heddle.configure and patterns by name")
    return loaded
