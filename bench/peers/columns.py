"""The columns of the table: each a function of one provider on one workload. No torch here.

A column asks a Cell (cell.py). Without a value it raises NotMeasured with the reason, which the results keep; any other
exception counts as a reason too, and costs this value alone.
"""
import fnmatch
from dataclasses import dataclass
from typing import Callable


class NotMeasured(Exception):
    pass


@dataclass(frozen=True)
class Column:
    name: str  # in the results
    title: str  # in the tables
    measure: Callable  # Cell -> a number or a text
    unit: str = ""
    show: Callable = "{:.4g}".format  # a value as the tables have it
    is_measured: bool = True  # of launches of its own, so not where the result is wrong
    is_slow: bool = False  # starts processes
    in_table: bool = True  # of the summary on the terminal


def bytes_text(count):
    for unit in ("B", "KB", "MB"):
        if abs(count) < 1000:
            return f"{count:.3g} {unit}" if unit != "B" else f"{count:.0f}"
        count /= 1000
    return f"{count:.3g} GB"


def seconds_text(seconds):
    for unit, part in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= part:
            return f"{seconds / part:.3g} {unit}"
    return "0"


def _lse_error(cell):
    if "lse_error" not in cell.entry:
        raise NotMeasured("it returns no lse")
    return cell.entry["lse_error"]


def _known(*arguments, **more):
    return Column(*arguments, is_measured=False, **more)


TIMES = (
    _known("ms", "ms", lambda cell: cell.entry["ms"], "ms", "{:.4f}".format),
    _known("range", "fastest .. slowest", lambda cell: "{best_ms:.4f} .. {worst_ms:.4f}".format(**cell.entry), "ms", str, in_table=False),
    _known("tflops", "TFLOP/s", lambda cell: cell.entry["tflops"], "TFLOP/s on kept pairs", "{:.0f}".format),
    _known("percent_of_product", "% of the product", lambda cell: cell.entry["percent_of_product"], "%", "{:.1f}".format),
    _known("error", "error", lambda cell: cell.entry["error"], "of the row's norm", "{:.1e}".format, in_table=False),
    _known("lse_error", "lse error", _lse_error, "nats", "{:.1e}".format, in_table=False),
)
COSTS = (
    Column("memory_bytes", "memory", lambda cell: cell.memory()["total"], "bytes", bytes_text),
    Column("workspace_bytes", "of it workspace", lambda cell: cell.memory()["workspace"], "bytes", bytes_text, in_table=False),
    Column("outside_bytes", "past torch", lambda cell: cell.memory()["outside"], "bytes", bytes_text, in_table=False),
    Column("set_up_seconds", "set-up", lambda cell: cell.set_up()["seconds"], "s", seconds_text),
    Column("set_up_bytes", "set-up keeps", lambda cell: cell.set_up()["kept"], "bytes", bytes_text),
    Column("set_up_peak_bytes", "set-up peak", lambda cell: cell.set_up()["peak"], "bytes", bytes_text),
    Column("host_us", "host us", lambda cell: cell.host_us(), "us", "{:.1f}".format),
    Column("first_call_cold_seconds", "first call, cold", lambda cell: cell.first_call("cold"), "s", seconds_text, is_slow=True),
    Column("first_call_warm_seconds", "warm", lambda cell: cell.first_call("warm"), "s", seconds_text, is_slow=True),
    # Compilers start anew for it, so it comes behind all that runs the launch of the workload.
    Column("host_small_us", "host us, 256 tokens", lambda cell: cell.host_small_us(), "us", "{:.1f}".format, is_slow=True),
)
STANDARD = TIMES + COSTS
GROUPS = {"times": [column.name for column in TIMES], "all": ["*"]}


def chosen(columns, words):
    """Those whose names match one of the words (globs, or a group), in their order; ValueError for a word that none matches."""
    globs = [glob for word in words for glob in GROUPS.get(word, [word])]
    for glob in globs:
        if not any(fnmatch.fnmatchcase(column.name, glob) for column in columns):
            raise ValueError(f"no column {glob}; there are {' '.join(column.name for column in columns)}, and {' '.join(GROUPS)}")
    return [column for column in columns if any(fnmatch.fnmatchcase(column.name, glob) for glob in globs)]
