"""Files of patterns, and those that come with the package."""
import functools
import os

from . import _library
from ._suggest import did_you_mean
from .errors import InvalidArgumentError, IoError, NotFoundError

_MOST_CHARACTERS = 1 << 20  # the compiler takes as many bytes


def _file_meant(path):
    """A file nearby, or how to name the pattern of the library that is called so."""
    folder, file = os.path.split(path)
    stem = file[:-len(".mlir")] if file.endswith(".mlir") else file
    if stem in library_names():
        return f", did you mean heddle.library({stem!r})?"
    try:
        known = [each for each in os.listdir(folder or ".") if each.endswith(".mlir")]
    except OSError:
        known = []
    return did_you_mean(file, known)


def text_of(path):
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise InvalidArgumentError(f"load: expected a path, got {path!r}")
    called = os.fsdecode(path)
    try:
        with open(path, encoding="utf-8-sig") as file:  # editors that begin a file with a mark of its encoding
            text = file.read(_MOST_CHARACTERS + 1)
        if len(text) > _MOST_CHARACTERS:
            raise InvalidArgumentError(f"load: {called!r}: expected a pattern of at most {_MOST_CHARACTERS} characters, got more")
        return text
    except FileNotFoundError:
        raise NotFoundError(f"load: there is no file {called!r}{_file_meant(called)}") from None
    except OSError as error:
        raise IoError(f"load: {called!r} cannot be read: {error.strerror}") from None
    except ValueError as error:  # no UTF-8, or no path
        raise InvalidArgumentError(f"load: {called!r}: expected a text in UTF-8: {error}") from None


def _library_folder():
    package = _library.package_folder()
    inside = os.path.join(package, "patterns")
    # In a checkout the package is runtime/Python/heddle, and the patterns are a folder of the root.
    return inside if os.path.isdir(inside) else os.path.join(package, "..", "..", "..", "patterns")


@functools.lru_cache(maxsize=1024)
def is_taken(name, text):
    """Whether the library has another pattern of that name: kernels of one are not for the other."""
    try:
        with open(library_path(name), encoding="utf-8") as file:
            return file.read() not in text
    except OSError:
        return False


def library_path(name):
    return os.path.join(_library_folder(), f"{name}.mlir")


def library_names() -> "list[str]":
    """Names of the patterns that come with the package."""
    return sorted(file[:-len(".mlir")] for file in os.listdir(_library_folder()) if file.endswith(".mlir"))
