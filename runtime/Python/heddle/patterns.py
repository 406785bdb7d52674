"""Patterns: from words, from MLIR text, from a file, from the library of the package, or known to a database by name."""
import ctypes as C
import itertools
import math
import os
import threading
import types
import weakref
from typing import Optional, Sequence, Union

from . import _header, _library, _scalars
from . import _structs as S
from ._files import is_taken, library_names, library_path, text_of
from ._suggest import did_you_mean
from .errors import Error, InvalidArgumentError, IoError, NotFoundError
from .words import Mask, Softmax, union

__all__ = ["Pattern", "Argument", "pattern", "load", "library", "library_names", "named"]

Argument = _header.Argument

# What calls take by these names is not given to the pattern.
_OF_CALLS = frozenset(("q", "k", "v", "pattern", "scale", "return_lse", "out", "lse", "q_origin", "k_origin", "carry", "stream", "budget", "wait",
                       "strategy", "d_lse", "gradients_of", "backward", "add_to", "deterministic", "precision", "k_origins", "whole_k"))


class Pattern:
    """A pattern and the values of its run-time sizes and numbers. Immutable; any number of threads may use one.

    `name`, `text` (MLIR, as written), `values` (over the defaults), `arguments`, `takes_q_origin`. Two patterns are equal if text and
    values are; `digest` is equal for two spellings of one pattern.
    """

    def __init__(self, text: str, name: Optional[str] = None, values: Optional[dict] = None, label: str = "pattern"):
        """`name` says which pattern of the text; `label` stands for the file in diagnostics. The compiler, if there is one, verifies
        the text now: InvalidArgumentError with its diagnostics."""
        self._set(text=_checked_text(text, "text"), label=label, _handle=None, _info={})
        if name is not None:
            _checked_text(name, "name")
        if _library.library().has_compiler:
            self._parse(name)
        else:
            self._take(_header.header(text, name))
        self._set(_parent=None, _spelled=None)  # the latter of `named`: its arguments and q_origin
        self._bind({}, values or {})
        self._set(_hash=hash((self.text, self.name, tuple(sorted(self._values.items())))))

    def _set(self, **fields):
        self.__dict__.update(fields)

    def __setattr__(self, name, value):
        raise AttributeError(f"heddle.Pattern is immutable, {name!r} cannot be set; pattern(NAME=VALUE) is the same pattern with other values")

    def __delattr__(self, name):
        raise AttributeError(f"heddle.Pattern is immutable, {name!r} cannot be deleted")

    @property
    def values(self) -> dict:
        """Of run-time sizes and numbers, over the defaults; a copy."""
        return dict(self._values)

    def _take(self, header):
        self._set(name=header.name, arguments=tuple(header.arguments), takes_q_origin=header.takes_q_origin,
                  by_name=types.MappingProxyType({each.name: each for each in header.arguments}))

    def _parse(self, name):
        loaded = _library.library()
        encoded = name.encode() if name is not None else None
        label = self.label.encode(errors="replace")  # a path may hold bytes that are no text
        self._set(_handle=loaded.opened("heddle_pattern_parse", self.text.encode(), label, encoded))
        weakref.finalize(self, loaded.close, "pattern", self._handle)
        info = S.sized(S.PatternInfo)
        loaded.call("heddle_pattern_get_info", self._handle, C.byref(info))
        self._set(_info={field: getattr(info, field).decode() for field in ("digest", "text", "notes")})
        arguments = []
        for index in range(info.argument_count):
            raw = S.sized(S.PatternArgument)
            loaded.call("heddle_pattern_get_argument", self._handle, index, C.byref(raw))
            arguments.append(_header.from_library(raw))
        self._take(_header.Header(info.name.decode(), tuple(arguments), bool(info.takes_q_origin)))

    def _bind(self, before, values):
        bound = {**before, **{name: self.checked(name, value) for name, value in values.items()}}
        # also_of_calls: arguments that only another call, of the pattern, can give
        self._set(_values=bound, also_of_calls=_OF_CALLS & (self.by_name.keys() - bound.keys()))

    def refuse_unclear(self, what, names):
        """InvalidArgumentError if one of these, which the call `what` was given, may be meant for the pattern: it has one too, not bound."""
        for name in names:
            if name in self.by_name and name not in self._values:
                bound = "" if self.by_name[name].kind == "tensor" else f"bind the pattern's before, pattern({name}=...), or "
                raise InvalidArgumentError(f"{what}: {name}: pattern {self.name} has an argument of that name too, and which one is meant is not "
                                           f"clear; {bound}give it another name")

    def checked(self, name, value):
        """The value of a size or number as the kernel takes it; InvalidArgumentError if the pattern has none of that name, or the value is
        out of bounds."""
        argument = self.argument(name)
        if argument.kind == "tensor":
            raise InvalidArgumentError(f"pattern {self.name}: {name} is a tensor ({argument.type}), give it to the call")
        return (self._number if argument.kind == "number" else self._size)(argument, value)

    def _number(self, argument, value):
        gradient = f", and heddle.attention_backward(..., gradients_of=({argument.name!r},)) has its gradient"
        number = _scalars.finite(value, f"pattern {self.name}: {argument.name}", "a finite number", gradient)
        return self._bounded(argument, number, -math.inf, math.inf)

    def _size(self, argument, value):
        whole = _scalars.whole(value)
        if whole is None:
            raise InvalidArgumentError(f"pattern {self.name}: {argument.name}: expected an int, got {_scalars.shown(value)}")
        return self._bounded(argument, whole, -2**31, 2**31 - 1)

    def _bounded(self, argument, value, low, high):
        low = low if argument.min is None else argument.min
        high = high if argument.max is None else argument.max
        if not low <= value <= high:
            raise InvalidArgumentError(f"pattern {self.name}: {argument.name}: expected {low} to {high}, got {value}")
        return value

    def argument(self, name) -> Argument:
        """The argument of that name; InvalidArgumentError names those that there are."""
        found = self.by_name.get(name)
        if found is None:
            names = ", ".join(self.by_name) or "none"
            raise InvalidArgumentError(f"pattern {self.name}: it has no argument {name!r}{did_you_mean(name, self.by_name)}; it has {names}")
        return found

    def __call__(self, /, **values) -> "Pattern":
        """The same pattern with other values of sizes and numbers.

        >>> library("sliding_window")(left=511).values
        {'left': 511}
        """
        made = object.__new__(Pattern)
        made._set(**self.__dict__)
        made._set(_parent=self)  # keeps the handle open
        made._bind(self._values, values)
        made._set(_hash=hash((made.text, made.name, tuple(sorted(made._values.items())))))
        return made

    @property
    def handle(self):
        """Of the compiler; UnavailableError in the runtime alone."""
        _library.compiler_library(f"pattern {self.name}")
        return self._handle

    @property
    def key(self) -> str:
        """What a database knows the pattern by: its digest, or its name where there is no compiler to make one."""
        if self._info:
            return self._info["digest"]
        if self._spelled is None and is_taken(self.name, self.text):
            raise InvalidArgumentError(f"pattern {self.name}: without the compiler databases know patterns by name, and this text is not that of the "
                                       f"library's {self.name}; give it another name, or say heddle.named({self.name!r}, ...)")
        return self.name

    @property
    def digest(self) -> str:
        """64 hex digits, equal for two spellings of one pattern. Needs the compiler."""
        _library.compiler_library("the digest of a pattern")
        return self._info["digest"]

    @property
    def notes(self) -> str:
        """Warnings of the compiler; "" if none."""
        return self._info["notes"] if self._info else ""

    @property
    def mlir(self) -> str:
        """The verified text as the compiler prints it, else as written."""
        return self._info["text"] if self._info else self.text

    def default_of(self, argument):
        return self._values.get(argument.name, argument.default)

    def __eq__(self, other):
        if not isinstance(other, Pattern):
            return NotImplemented
        return (self.text, self.name, self._spelled, self._values) == (other.text, other.name, other._spelled, other._values)

    def __hash__(self):
        return self._hash

    def __str__(self):
        return self.text

    def __repr__(self):
        values = "".join(f", {name}={value}" for name, value in self._values.items())
        return f"<heddle.Pattern {self.name}{values}>"

    def __reduce__(self):
        if self._spelled is not None:
            return _named_again, (self.name, *self._spelled, self.values)
        return Pattern, (self.text, self.name, self.values, self.label)

    def explain(self, seqlen: int, **sizes) -> dict:
        """Kept pairs, tiles, operations, bytes and the roof, as `heddle explain --json` gives them. `sizes`: seqlen_k, heads, kv_heads,
        head_dim, value_dim, dtype, batch, block_m, block_n, q_origin, gpu, and the arguments of the pattern, a tensor as
        "FILE:TENSOR" of a safetensors file."""
        from . import _command
        return _command.explain(self, dict(sizes, seqlen=seqlen))

    def draw(self, path: Optional[str] = None, seqlen: int = 2048, **sizes) -> str:
        """The picture of `heddle show` as SVG text, also written to `path`, whose name ends in .svg if it has an ending. `sizes`: seqlen_k, heads, head, block_m, block_n,
        max_cells, q_origin, and the arguments of the pattern, as of `explain`."""
        from . import _command
        ending = os.path.splitext(path)[1] if isinstance(path, (str, os.PathLike)) else ""
        if ending.lower() not in ("", ".svg"):
            raise InvalidArgumentError(f"draw: expected a name that ends in .svg, got {os.fspath(path)!r}: other programs make pictures of "
                                       "other kinds of an .svg, such as 'rsvg-convert -o FILE.png FILE.svg'")
        picture = _command.draw(self, dict(sizes, seqlen=seqlen))
        if path is not None:
            try:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(picture)
            except (OSError, TypeError, ValueError) as error:
                raise IoError(f"draw: {path!r} cannot be written: {error}") from None
        return picture

    def _repr_svg_(self):
        if any(each.kind == "tensor" for each in self.arguments):
            return None
        try:
            return self.draw()
        except Error:
            return None


def _checked_text(text, what):
    """A str that the C interface can take: it ends texts at a NUL."""
    if not isinstance(text, str):
        raise InvalidArgumentError(f"pattern: {what}: expected a str, got {text!r}")
    if "\0" in text or not _is_utf8(text):
        raise InvalidArgumentError(f"pattern: {what}: expected text without NUL and half characters, got {text[:64]!r}")
    return text


def _is_utf8(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _named_again(name, arguments, q_origin, values):
    return named(name, arguments, q_origin, **values)


class _Kept:
    """Patterns by what they were made of: those used last, up to about so many bytes. Any number of threads."""

    EACH = 1 << 20  # bytes of a pattern beside its text: what a call in host memory compiles of it

    def __init__(self, make, most_bytes):
        self._make, self._most_bytes = make, most_bytes
        self._entries = {}  # key -> [pattern, bytes, when it was used last]
        self._bytes = 0
        self._clock = itertools.count()
        self._lock = threading.Lock()

    def __call__(self, *key):
        entry = self._entries.get(key)
        if entry is None:
            made = self._make(*key)
            entry = [made, self.EACH + 4 * len(made.text), 0]
            with self._lock:
                known = self._entries.setdefault(key, entry)
                self._bytes += entry[1] if known is entry else 0
                entry = known
                entry[2] = next(self._clock)
                if self._bytes > self._most_bytes:
                    self._evict(key)
        entry[2] = next(self._clock)
        return entry[0]

    def _evict(self, newest):
        """Down to three quarters, so that it is rare; needs the lock."""
        for key in sorted(self._entries, key=lambda each: self._entries[each][2]):
            if self._bytes <= self._most_bytes * 3 // 4:
                break
            if key != newest:
                self._bytes -= self._entries.pop(key)[1]


_of_text = _Kept(lambda text, name, label: Pattern(text, name, label=label), most_bytes=128 << 20)


def pattern(what: Union[Mask, Softmax, str, Pattern, None] = None, *, text: Optional[str] = None, name: Optional[str] = None,
            q_origin: str = "start", arguments: Sequence = (), **values) -> Pattern:
    """A pattern from a mask (one softmax over it), from `union(...)` or `lse(...)`, or from MLIR text.

    `name` names a pattern made of words and chooses one of a text. `q_origin`: where query 0 stands, "start", "end" or "given".
    `arguments`: named run-time values that come first, in this order; both are for words only, a text says them itself. `values`: of
    run-time sizes, over their defaults.

    >>> from heddle.words import causal, window, cols
    >>> pattern(causal & window(left=1023) | cols(64), name="near").arguments[1].name
    'first_cols'
    """
    if (what is None) == (text is None):
        raise InvalidArgumentError("pattern: expected a mask, union(...), lse(...) or `text=`, and one of them only")
    what = text if what is None else what
    if isinstance(what, (Pattern, str)):
        _refuse_options(what, name, q_origin, arguments)
    if isinstance(what, Pattern):
        return what(**values) if values else what
    if isinstance(what, Mask):
        what = union(what)
    if isinstance(what, Softmax):
        called = name or "pattern"
        made = _of_text(what.mlir(called, q_origin, _sequence(arguments)), called, "pattern")
    elif isinstance(what, str):
        made = _of_text(what, name, "pattern")
    else:
        raise _no_pattern(what)
    return made(**values) if values else made


def _refuse_options(what, name, q_origin, arguments):
    """What is said already is not changed, nor passed over."""
    if isinstance(what, Pattern) and name not in (None, what.name):
        raise InvalidArgumentError(f"pattern: name: {what.name} has a name already, got {name!r}; give it when the pattern is made of words")
    if q_origin != "start" or _sequence(arguments):
        raise InvalidArgumentError("pattern: q_origin and arguments are for patterns made of words; a text says them itself: "
                                   "attn.pattern @name(%left: i32) q_origin(end) {")


def _sequence(arguments):
    if isinstance(arguments, (str, bytes)) or not hasattr(arguments, "__iter__"):
        raise InvalidArgumentError(f"pattern: arguments: expected a list of heddle.size, number and tensor, got {arguments!r}")
    return tuple(arguments)


def _no_pattern(what):
    hint = "; heddle.words.predicate(function) makes a mask of one" if callable(what) else ""
    got = f"{type(what).__name__} of {list(what.shape)}" if hasattr(what, "shape") else repr(what)
    return InvalidArgumentError(f"pattern: expected a mask, union(...), lse(...) or MLIR text, got {got}{hint}")


def load(path, name: Optional[str] = None, **values) -> Pattern:
    """The pattern of a file, or the one of that name. NotFoundError, IoError, or InvalidArgumentError of what it says."""
    made = _of_text(text_of(path), name, os.fsdecode(path))
    return made(**values) if values else made


def library(name: str, **values) -> Pattern:
    """A pattern that comes with the package: `library("sliding_window", left=1023)`. docs/gallery.md shows all."""
    if not isinstance(name, str) or name not in library_names():
        names = library_names()
        raise NotFoundError(f"library: there is no pattern {name!r}{did_you_mean(name, names)}; there are {', '.join(names)}")
    return load(library_path(name), name, **values)


def named(name: str, arguments: str = "", q_origin: str = "start", **values) -> Pattern:
    """A pattern that a database or a packed file knows by this name or digest, for the runtime alone. `arguments`: its arguments as
    its text has them, "%left: i32 {attn.default = 1023 : i32}"."""
    if not name or q_origin not in ("start", "end", "given"):
        raise InvalidArgumentError(f"named: expected a name, and q_origin 'start', 'end' or 'given', got {name!r} and {q_origin!r}")
    _checked_text(name, "name")
    origin = "" if q_origin == "start" else f" q_origin({q_origin})"
    made = object.__new__(Pattern)
    made._set(text="", label="pattern", _handle=None, _info={}, _parent=None)
    made._take(_header.header(f"attn.pattern @p({arguments}){origin} {{", "p"))
    made._set(name=name, _spelled=(arguments, q_origin))
    made._bind({}, values)
    made._set(_hash=hash((name, arguments, tuple(sorted(made._values.items())))))
    return made


def resolved(what) -> Pattern:
    """What a call takes as its pattern: a Pattern, words, MLIR text, or a name of the package's library."""
    if isinstance(what, Pattern):
        return what
    if isinstance(what, str):
        return _of_text(what, None, "pattern") if "attn.pattern" in what else _of_name(what)
    if not isinstance(what, (Mask, Softmax)):
        raise _no_pattern(what)
    return _of_words(what)


def _made_part(whole):
    loaded = _library.compiler_library("a call on parts of a whole")
    handle = loaded.opened("heddle_pattern_part", whole.handle)
    info = S.sized(S.PatternInfo)
    loaded.call("heddle_pattern_get_info", handle, C.byref(info))
    part = Pattern(info.text.decode(), values=whole.values)
    loaded.close("pattern", handle)
    return part


def part_of(whole: Pattern) -> Pattern:
    """The pattern whose calls are parts of one of `whole`; itself, if its calls are."""
    return whole if any(each.of_whole for each in whole.arguments) else _of_parts(whole)


_of_parts = _Kept(_made_part, most_bytes=128 << 20)
_of_name = _Kept(library, most_bytes=128 << 20)
_of_words = _Kept(pattern, most_bytes=128 << 20)
