"""heddle: attention over exactly the pairs that a pattern keeps.

    import heddle
    from heddle.words import causal, window, cols

    out = heddle.attention(q, k, v, "sliding_window", left=511)
    out = heddle.attention(q, k, v, causal & (window(left=1023) | cols(64)))

Importing it needs neither PyTorch nor numpy, and opens no GPU. heddle.nn and heddle.flex_attention import PyTorch.
docs/python.md is the guide.
"""
from . import errors, words
from ._engine import Kernel, configure
from ._library import library as _shared_library
from ._stats import on_drift, sample, stats, stats_text
from .calls import Prepared, Quantized, Task, attention, attention_backward, kernel, prepare, quantize, random_signs, tune
from .errors import (CorruptError, DeniedError, Error, InternalError, InvalidArgumentError, IoError, NewerError, NotFoundError,
                     UnavailableError, UnsupportedError)
from .patterns import Argument, Pattern, library, library_names, load, named, pattern
from .words import number, size, static, tensor

__all__ = ["Argument", "CorruptError", "DeniedError", "Error", "InternalError", "InvalidArgumentError", "IoError", "Kernel", "NewerError",
           "NotFoundError", "Pattern", "Prepared", "Quantized", "Task", "UnavailableError", "UnsupportedError", "attention", "attention_backward", "configure", "distributed", "errors",
           "flex", "flex_attention", "has_compiler", "kernel", "library", "library_names", "load", "named", "nn", "number", "on_drift", "pattern", "prepare",
           "quantize", "random_signs", "sample", "serve", "size", "static", "stats", "stats_text", "tensor", "tune", "version", "words"]


def version() -> str:
    """Of the library, "0.6.0"."""
    return _shared_library().version()


def has_compiler() -> bool:
    """Whether patterns can be compiled here, or only kernels of a database or packed file be launched."""
    return _shared_library().has_compiler


def __getattr__(name):
    # What needs PyTorch, when it is asked for.
    import importlib
    if name in ("distributed", "flex", "nn", "serve"):
        return importlib.import_module("." + name, __name__)
    if name == "flex_attention":
        return importlib.import_module(".flex", __name__).flex_attention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
