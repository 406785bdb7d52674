"""The shared library: where it is, what it exports, how a failing call becomes an exception.

Asked in this order: $HEDDLE_LIBRARY, the library of the wheel (heddle/lib), the library of an installation that the loader knows.
libheddle.so has the compiler; libheddle_runtime.so launches kernels of a database or a packed file and nothing else.
"""
import ctypes as C
import os
import threading

from . import _structs as S
from . import errors

_pointer = C.c_void_p
_out = C.POINTER(C.c_void_p)

# function -> argument types; all of these return a status.
_RUNTIME = {
    "heddle_store_open": (C.c_char_p, C.c_uint32, _out),
    "heddle_store_add": (_pointer, C.c_char_p, C.c_uint32),
    "heddle_device_open": (C.c_int32, _out),
    "heddle_kernel_find": (_pointer, _pointer, C.POINTER(S.KernelQuery), _out),
    "heddle_kernel_get_info": (_pointer, C.POINTER(S.KernelInfo)),
    "heddle_kernel_workspace": (_pointer, C.POINTER(S.AttentionArgs), C.POINTER(C.c_uint64)),
    "heddle_kernel_launch": (_pointer, _pointer, C.POINTER(S.AttentionArgs)),
    "heddle_prepare": (_pointer, C.POINTER(S.AttentionArgs), _out),
    "heddle_prepared_launch": (_pointer, _pointer),
}
_COMPILER = {
    "heddle_pattern_parse": (C.c_char_p, C.c_char_p, C.c_char_p, _out),
    "heddle_pattern_read": (C.c_char_p, C.c_char_p, _out),
    "heddle_pattern_get_info": (_pointer, C.POINTER(S.PatternInfo)),
    "heddle_pattern_get_argument": (_pointer, C.c_int32, C.POINTER(S.PatternArgument)),
    "heddle_cpu_attention": (_pointer, C.POINTER(S.AttentionArgs), C.c_int32),
    "heddle_compiler_open": (C.POINTER(S.CompilerOptions), _out),
    "heddle_compiler_kernel": (_pointer, _pointer, _pointer, C.POINTER(S.Problem), C.c_uint32, _out),
    "heddle_compiler_compile": (_pointer, _pointer, _pointer, C.POINTER(S.Problem), _pointer, _pointer, _out),
    "heddle_compiler_tune": (_pointer, _pointer, _pointer, C.POINTER(S.Problem), C.POINTER(S.TuneOptions), _pointer, _pointer, _out),
    "heddle_task_wait": (_pointer, C.c_double, C.POINTER(C.c_int32)),
}
_CLOSE = ("store", "device", "kernel", "prepared")
_COMPILER_CLOSE = ("pattern", "compiler", "task")
# Short ones, called with the interpreter's lock held: letting it go and taking it back costs more than they do.
_QUICK = ("heddle_kernel_launch", "heddle_prepared_launch", "heddle_kernel_workspace")


class Library:
    """The functions of one library file: `call` checks, `quick` is the bare function for launches."""

    def __init__(self, path):
        self.path = path
        self._functions = C.CDLL(path)
        self._quick = C.PyDLL(path)
        self.has_compiler = hasattr(self._functions, "heddle_pattern_parse")
        for name in ("heddle_version", "heddle_last_message", "heddle_status_name"):
            getattr(self._functions, name).restype = C.c_char_p
        prototypes = dict(_RUNTIME, **(_COMPILER if self.has_compiler else {}))
        for name, types in prototypes.items():
            for functions in (self._functions, self._quick):
                getattr(functions, name).argtypes = types
                getattr(functions, name).restype = C.c_int
        for kind in _CLOSE + (_COMPILER_CLOSE if self.has_compiler else ()):
            close = getattr(self._functions, f"heddle_{kind}_close")
            close.argtypes, close.restype = (_pointer,), None
        if self.has_compiler:
            self._functions.heddle_task_cancel.argtypes = (_pointer,)
            self._functions.heddle_task_cancel.restype = None

    def version(self):
        return self._functions.heddle_version().decode()

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


def library():
    """The library of this process, loaded when it is first asked for. UnavailableError if there is none."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def compiler_library(what):
    """The library if it has the compiler, else UnavailableError that says what would need it."""
    loaded = library()
    if not loaded.has_compiler:
        raise errors.UnavailableError(
            f"{what} needs the compiler, and {os.path.basename(loaded.path)} is the runtime alone; "
            "install a wheel with the compiler, or give a database or packed file to heddle.configure and patterns by name")
    return loaded
