"""What this process has done, as the library counts it (heddle_stats.h); metrics for prometheus_client where that is installed."""
import ctypes as C
import importlib.util
import operator

from . import _structs as S
from ._library import on_load
from ._library import library as _shared_library
from .errors import InvalidArgumentError, NotFoundError

_REASONS = tuple(name.lower() for name, number in sorted(S.statuses().items(), key=lambda each: each[1]))


def _filled(struct, function, *arguments):
    values = S.sized(struct)
    _shared_library().call(function, *arguments, C.byref(values))
    return values


def _matches(counts):
    return dict(zip(S.MATCH_NAMES, counts))


def _of_kernel(index):
    row = _filled(S.KernelStats, "heddle_stats_kernel", index)
    texts = {name: getattr(row, name).decode() for name in ("kernel", "pattern", "kind", "device", "bus")}
    numbers = {name: getattr(row, name) for name in ("launches", "pairs", "samples", "sample_seconds", "drifts")}
    return {**texts, **numbers, "found": _matches(row.found)}


def _values(drift):
    values = {name: getattr(drift, name) for name, _ in S.Drift._fields_ if name != "struct_size"}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}


def _drifts():
    found = []
    while True:
        try:
            drift = _filled(S.Drift, "heddle_stats_drift", len(found))
        except NotFoundError:
            return found
        found.append(_values(drift))


def stats() -> dict:
    """Counters of this process: launches, kept pairs and how kernels were found, in all and by kernel (key "by_kernel"), compilations,
    searches, waits for databases, workspace, refusals by reason, and the kernels that are slower than they were (key "slow").
    docs/operations.md explains them."""
    values = _filled(S.Stats, "heddle_stats_get")
    plain = {name: getattr(values, name) for name, kind in S.Stats._fields_ if name != "struct_size" and not hasattr(kind, "_length_")}
    return {**plain, "found": _matches(values.found), "refusals": dict(zip(_REASONS[1:], values.refusals[1:])),
            "by_kernel": [_of_kernel(index) for index in range(values.kernels)], "slow": _drifts()}


def stats_text() -> str:
    """The same as metrics in the text format of OpenMetrics."""
    capacity, needed = 0, C.c_uint64(1)
    while needed.value > capacity:  # others may count meanwhile
        capacity = needed.value + 1024
        text = C.create_string_buffer(capacity)
        _shared_library().call("heddle_stats_text", text, capacity, C.byref(needed))
    return text.value.decode()


def sample(every: int) -> None:
    """From now on one in so many launches of each kernel is timed on the GPU; 0: none."""
    try:
        number = operator.index(every)
    except TypeError:
        raise InvalidArgumentError(f"sample: every: expected a whole number, got {every!r}") from None
    if not 0 <= number < 2**32:
        raise InvalidArgumentError(f"sample: every: expected 0 to 4294967295, got {number}")
    _shared_library().call("heddle_stats_sample", number)


def on_drift(found) -> None:
    """Has found(drift) called once when a kernel becomes slow, with what stats()["slow"] says of it, in the place of who was told
    before; None: nobody. It runs in the thread that launches or asks for counters, and must not launch."""
    if found is not None and not callable(found):
        raise InvalidArgumentError(f"on_drift: found: expected a function or None, got {found!r}")
    if found is None:
        _shared_library().call("heddle_stats_on_drift", None, None)
        return
    told = C.CFUNCTYPE(None, C.c_void_p, C.POINTER(S.Drift))(lambda _, drift: found(_values(drift.contents)))
    _listeners.append(told)
    _shared_library().call("heddle_stats_on_drift", C.cast(told, C.c_void_p), None)


_listeners: list = []  # never freed: another thread may be calling one


class Collector:
    """For a registry of prometheus_client. The default registry has one as soon as the library is loaded."""

    def collect(self):
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
        return text_string_to_metric_families(stats_text())

    def describe(self):
        return []


def _register():
    if importlib.util.find_spec("prometheus_client"):
        from prometheus_client import REGISTRY
        REGISTRY.register(Collector())


on_load(_register)
