"""Where kernels come from in this process: the compiler and its database, or, in the runtime alone, databases and packed files.

One engine per process, made at the first call that needs a kernel and configured before it. Kernels stay open until the process ends:
work that a stream or a captured graph still holds may need them.
"""
import atexit
import ctypes as C
import os
import threading
import time
from typing import Any, NamedTuple

from . import _driver, _library, _scalars
from . import _structs as S
from .errors import Error, InvalidArgumentError, UnavailableError

_CHECKS = (1.0, 60.0)  # seconds between questions for a better kernel: the first, doubled up to the last
_MOST_QUESTIONS = 4096  # kept; asking again takes microseconds
_FIRST = {"soon": S.FIRST_SOON, "best": 0, "stored": S.ONLY_STORED}


class Kernel:
    """A loaded kernel. What is known of it: `match` (how it was found: exact, nearest bucket, same architecture, untuned default),
    `config`, `arch`, `generator`, `note`, `content_key`, `registers`, `spill_bytes`, `shared_bytes`, `median_us` of the search that chose
    it (0 if none did)."""

    def __init__(self, library, handle):
        self.handle = handle
        info = S.sized(S.KernelInfo)
        library.call("heddle_kernel_get_info", handle, C.byref(info))
        self.match = S.MATCH_NAMES[info.match]
        for name in ("content_key", "arch", "generator", "config", "note"):
            setattr(self, name, (getattr(info, name) or b"").decode())
        for name in ("registers", "spill_bytes", "shared_bytes", "median_us"):
            setattr(self, name, getattr(info, name))

    def __repr__(self):
        tuned = f", {self.median_us:.1f} us in its search" if self.median_us else ""
        return f"<heddle.Kernel {self.arch}, {self.match}{tuned}: {' '.join(self.config.split())}>"


class Found:
    """The kernel for one question, asked again from time to time: a better one may have been compiled, tuned or published."""

    def __init__(self, engine, question):
        self._engine, self._question = engine, question
        self._wait = _CHECKS[0]
        self.kernel = engine.ask(question)
        self.next_check = time.monotonic() + self._wait

    def refresh(self):
        """Asks again. What fails leaves the kernel as it was."""
        self._wait = min(2 * self._wait, _CHECKS[1])
        self.next_check = time.monotonic() + self._wait
        try:
            self.kernel = self._engine.ask(self._question)
        except Error:
            pass

    def current(self, stream):
        """The kernel for `stream`, an address, after asking again where that is due: not while it is captured, where nothing may be loaded."""
        if time.monotonic() >= self.next_check and not _driver.is_captured(stream):
            self.refresh()
        return self.kernel

    def expire(self):
        self._wait, self.next_check = _CHECKS[0], 0.0


class Question(NamedTuple):
    """Which kernel a call needs. `values` are the run-time sizes and numbers, by name."""
    pattern: Any
    device: int
    dtype: int
    kind: bytes
    head_dim: int
    value_dim: int
    sizes: dict
    values: dict
    is_batch_invariant: bool = False  # by a kernel whose bits of a row, and of gradients of a key, do not depend on others

    def key(self):
        """Of questions with one answer. Which sizes have one in common the library knows: nothing is rounded here, or whoever asks first
        would decide for others."""
        return (self.pattern.key, self.device, self.dtype, self.kind, self.head_dim, self.value_dim, tuple(sorted(self.sizes.items())),
                tuple(sorted(self.values.items())), self.is_batch_invariant)

    def problem(self):
        """The struct, and what its pointers need alive."""
        given = [(self.pattern.argument(name), value) for name, value in self.values.items()]
        operands = (S.Operand * max(1, len(given)))()
        for operand, (argument, value) in zip(operands, given):
            set_operand(operand, argument, value)
        problem = S.sized(S.Problem, dtype=self.dtype, kind=self.kind, head_dim=self.head_dim, value_dim=self.value_dim, **self.sizes)
        problem.operands, problem.operand_count = operands, len(given)
        return problem


def set_operand(operand, argument, value):
    operand.id = argument.id
    if argument.kind == "number":
        operand.kind, operand.value.f64 = S.OPERAND_FLOAT, value
    else:
        operand.kind, operand.value.i64 = S.OPERAND_INT, value


class Engine:
    """What both kinds share: open devices and answered questions."""

    def __init__(self, library):
        self.library = library
        self._kernels = {}
        self._devices = {}
        self._found = {}
        self._lock = threading.Lock()

    def device(self, ordinal):
        with self._lock:
            if ordinal not in self._devices:
                self._devices[ordinal] = self.library.opened("heddle_device_open", ordinal)
            return self._devices[ordinal]

    def find(self, question):
        """The Found of a question. Threads that ask the same one together may both ask the library, which compiles once."""
        question = self._asked(question)
        key = question.key()
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _MOST_QUESTIONS:
                self._found = {}
            found = self._found.setdefault(key, Found(self, question))
        return found

    def _asked(self, question):
        """What the answer depends on."""
        return question

    def ask(self, question):
        """The Kernel for a question, one object for each kernel and way of finding it."""
        handle = self._ask(question)
        kernel = Kernel(self.library, handle)
        known = self._kernels.setdefault((question.device, kernel.content_key, kernel.match, kernel.median_us), kernel)
        if known is not kernel:
            self.library.close("kernel", handle)
        return known

    def expire(self):
        """A search has ended: the next calls ask again."""
        global generation
        generation += 1
        for found in list(self._found.values()):
            found.expire()

    def close(self):
        for kernel in self._kernels.values():
            self.library.close("kernel", kernel.handle)
        for device in self._devices.values():
            self.library.close("device", device)
        self._kernels, self._found, self._devices = {}, {}, {}


class CompilerEngine(Engine):
    def __init__(self, library, settings):
        super().__init__(library)
        flags = S.COMPILER_READ_ONLY * settings.read_only | S.COMPILER_ALLOW_FOREIGN_WRITERS * settings.allow_foreign_writers
        options = S.sized(S.CompilerOptions, flags=flags, database=_path(settings.database), shipped=_paths(settings.shipped),
                          program=_path(settings.program), workers=settings.workers)
        self.first = _FIRST[settings.first]
        self.compiler = library.opened("heddle_compiler_open", C.byref(options))

    def _ask(self, question):
        problem = question.problem()
        return self.library.opened("heddle_compiler_kernel", self.compiler, self.device(question.device), question.pattern.handle,
                                   C.byref(problem), self.first | S.BATCH_INVARIANT * question.is_batch_invariant)

    def close(self):
        self.library.close("compiler", self.compiler)
        super().close()


class StoreEngine(Engine):
    """Databases and packed files, asked in the order given."""

    def __init__(self, library, settings):
        super().__init__(library)
        paths = [path for path in (settings.database, *settings.shipped) if path]
        if not paths:
            paths = [path for path in (os.environ.get("HEDDLE_DB"), *os.environ.get("HEDDLE_SHIPPED_DB", "").split(":")) if path]
        if not paths:
            raise UnavailableError(f"{os.path.basename(library.path)} has no compiler and there is no database: "
                                   "heddle.configure(database=FILE), or set HEDDLE_DB")
        flags = S.OPEN_ALLOW_FOREIGN_WRITERS * settings.allow_foreign_writers | S.OPEN_IMMUTABLE * settings.immutable
        self.store = library.opened("heddle_store_open", _path(paths[0]), flags)
        for path in paths[1:]:
            library.call("heddle_store_add", self.store, _path(path), flags)

    def _asked(self, question):
        """Without a compiler nothing counts what is visited, so a text that grows by its keys is asked about once."""
        sizes = {name: question.sizes[name] for name in ("batch", "heads", "kv_heads", "seqlen_q")}
        return question._replace(sizes=sizes, values={})

    def _ask(self, question):
        query = S.sized(S.KernelQuery, dtype=question.dtype, pattern=question.pattern.key.encode(), kind=question.kind,
                        head_dim=question.head_dim, value_dim=question.value_dim, **self._asked(question).sizes)
        device = self.device(question.device)
        return self.library.opened("heddle_kernel_find", self.store, device, C.byref(query))

    def close(self):
        super().close()
        self.library.close("store", self.store)


def _path(path):
    return None if path is None else os.fspath(path).encode()


def _paths(paths):
    return _path(":".join(os.fspath(path) for path in paths)) if paths else None


class Settings(NamedTuple):
    """What `configure` was last told."""
    database: Any = None
    shipped: Any = ()
    first: str = "soon"
    read_only: bool = False
    immutable: bool = False
    allow_foreign_writers: bool = False
    program: Any = None
    workers: int = 0
    threads: int = 0
    graphs: bool = True
    check_pages: bool = False

    def checked(self):
        if self.first not in _FIRST:
            raise InvalidArgumentError(f"configure: first: expected 'soon', 'best' or 'stored', got {self.first!r}")
        counts = {name: _scalars.whole(getattr(self, name)) for name in ("workers", "threads")}
        for name, count in counts.items():
            if count is None or not 0 <= count < 2**31:
                every = " (all processors)" if name == "threads" else ""
                got = _scalars.shown(getattr(self, name))
                raise InvalidArgumentError(f"configure: {name}: expected a whole number of 0{every} or more, got {got}")
        shipped = (self.shipped,) if isinstance(self.shipped, (str, os.PathLike)) else tuple(self.shipped)
        for name, path in (("database", self.database), ("program", self.program), *(("shipped", each) for each in shipped)):
            if path is not None and not isinstance(path, (str, os.PathLike)):
                raise InvalidArgumentError(f"configure: {name}: expected a path, got {path!r}")
        flags = {name: bool(getattr(self, name)) for name in ("read_only", "immutable", "allow_foreign_writers", "graphs", "check_pages")}
        return self._replace(shipped=shipped, **counts, **flags)


_lock = threading.Lock()
_settings = Settings()
_engine = None
generation = 0  # of engines; calls that are kept for their shapes belong to one


def configure(database=None, shipped=(), *, first="soon", read_only=False, immutable=False, allow_foreign_writers=False, program=None,
              workers=0, threads=0, graphs=True, check_pages=False):
    """Where this process finds and keeps kernels, and what it computes on. Without a call of this the environment says (`heddle --help`).

    database    file, made if it is missing (with the compiler), else opened
    shipped     more files, which are only read: databases and packed files
    first       what a pattern that no file has gets: "soon" the portable default now and the one for this GPU from the background,
                "best" the default for this GPU, compiled now, "stored" nothing: NotFoundError says what is missing
    read_only   what is compiled lives in memory
    immutable   runtime alone: the files never change while they are open
    program     `heddle`, in whose processes searches run kernels; "" runs them in this one
    workers     threads that compile for searches; 0: one less than there are processors
    threads     processors that attention in host memory uses; 0: all. They change no bit of the result
    graphs      prepared calls are CUDA graphs, launched in a third of the host's time; False for profilers that show a graph as one
    check_pages calls of heddle.serve on a GPU check lengths, offsets and the pages that they read before each launch, as those in host memory
                always do: InvalidArgumentError says which is wrong. For tests: they wait for the GPU and walk all keys on processors. PyTorch
                tensors, with the compiler, not while a stream is captured

    The databases are opened by the first call that needs a kernel. Prepared calls of before keep their kernels.
    """
    global _settings, _engine, generation
    settings = Settings(database, shipped, first, read_only, immutable, allow_foreign_writers, program, workers, threads, graphs, check_pages).checked()
    with _lock:
        old, _engine, _settings = _engine, None, settings
        generation += 1
        if old is not None:
            _retired.append(old)


_retired: list = []


def engine():
    global _engine
    if _engine is None:
        with _lock:
            if _engine is None:
                loaded = _library.library()
                _engine = (CompilerEngine if loaded.has_compiler else StoreEngine)(loaded, _settings)
    return _engine


def threads():
    """Of attention in host memory."""
    return _settings.threads


def checks_pages():
    """Before each launch over pages."""
    return _settings.check_pages


def prepare_flags():
    """Of prepared calls."""
    return 0 if _settings.graphs else S.WITHOUT_GRAPH


def opened():
    """The engine if there is one."""
    return _engine


@atexit.register
def _close():
    global _engine
    with _lock:
        engines, _engine = [*_retired, *([_engine] if _engine else [])], None
    for each in engines:
        each.close()
    _retired.clear()
