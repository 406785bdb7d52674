"""The structs, constants and functions of heddle.h, heddle_stats.h, heddle_arena.h and heddle_compiler.h, read from the headers themselves: `AttentionArgs` is
heddle_attention_args, `BF16` HEDDLE_BF16. What a header declares is here at once; tests/python/test_headers.py holds the layout against
the C compiler.
"""
import ctypes as C
import os
import re
from typing import Any

_TYPES = {"int32_t": C.c_int32, "uint32_t": C.c_uint32, "int64_t": C.c_int64, "uint64_t": C.c_uint64, "float": C.c_float, "double": C.c_double,
          "int": C.c_int, "heddle_status": C.c_int, "heddle_task_done": C.c_void_p, "heddle_drift_found": C.c_void_p, "heddle_arena_pressure": C.c_void_p,
          "heddle_exchange": C.c_void_p, "void": None}
_DECLARATION = re.compile(r"(?:const )?(\w+)\s+(.*)", re.S)
_DECLARATOR = re.compile(r"\s*(\**)\s*(\w+)(?:\[(\d+)\])?")
_declared: dict = {}


PLACES = (("runtime", "Include", "heddle.h"), ("runtime", "Include", "heddle_stats.h"), ("runtime", "Include", "heddle_arena.h"),
          ("compiler", "Library", "heddle_compiler.h"))


def text_of(*place):
    """Of a header, which a wheel has beside this file and a checkout in its place: there the package is runtime/Python/heddle."""
    here = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(here, "include")
    path = os.path.join(inside, place[-1]) if os.path.isdir(inside) else os.path.join(here, "..", "..", "..", *place)
    with open(path, encoding="utf-8") as header:
        return header.read()


def _texts():
    """Without comments and what is for the preprocessor."""
    for place in PLACES:
        yield re.sub(r"/\*.*?\*/|^#.*?$", "", text_of(*place), flags=re.S | re.M)


def _named(name):
    """heddle_attention_args is AttentionArgs."""
    return "".join(word.capitalize() for word in name.split("_")[1:])


def _type(base, stars, count):
    """Addresses are ints, but of text and of structs that are declared."""
    kind = _TYPES.get(base)
    if stars:
        known = stars == "*" and _declared.get(_named(base))
        kind = C.c_char_p if (base, stars) == ("char", "*") else C.POINTER(known) if known else C.c_void_p
    elif kind is None and base != "void":
        kind = _declared[_named(base)]
    return kind * int(count) if count else kind


def _declarations(text):
    """Pairs of name and type of "const float *a, *b"."""
    base, declarators = _DECLARATION.fullmatch(text.strip()).groups()
    for stars, name, count in (_DECLARATOR.match(each).groups() for each in declarators.split(",")):
        yield name, _type(base, stars, count)


def _fields(body):
    found = re.search(r"union \{(.*?)\} (\w+);", body, re.S)
    members = body.replace(found.group(), "") if found else body
    fields = [field for each in members.split(";") if each.strip() for field in _declarations(each)]
    if found:
        fields.append((found.group(2), type("Value", (C.Union,), {"_fields_": _fields(found.group(1))})))
    return fields


def _read(text):
    """Declares what a header does; its functions, by name: the type of the result and those of the parameters."""
    for name, number in re.findall(r"\bHEDDLE_(\w+) = (\d+)", text):
        _declared[name] = int(number)
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \w+;", text, re.S):
        _declared[_named(name)] = type(_named(name), (C.Structure,), {"_fields_": _fields(body)})
    functions = {}
    for result, name, given in re.findall(r"HEDDLE_API ([^;(]*?)(\w+)\((.*?)\);", text, re.S):
        parameters = [] if given == "void" else [kind for each in given.split(",") for _, kind in _declarations(each)]
        functions[name] = next(_declarations(result + name))[1], parameters
    return functions


*_of_runtime, compiler_functions = map(_read, _texts())
runtime_functions = {name: each for functions in _of_runtime for name, each in functions.items()}


def __getattr__(name: str) -> Any:
    try:
        return _declared[name]
    except KeyError:
        raise AttributeError(f"the headers declare no {name}") from None


def sized(struct, /, **fields):
    """A struct that says its own size."""
    return struct(struct_size=C.sizeof(struct), **fields)


def statuses():
    """The codes of heddle_status by their names."""
    body = re.search(r"typedef enum heddle_status \{(.*?)\}", text_of(*PLACES[0]), re.S).group(1)
    return {name: int(number) for name, number in re.findall(r"HEDDLE_(\w+) = (\d+)", body)}


MATCH_NAMES = tuple(name[len("MATCH_"):].lower().replace("_", " ") for name in _declared if name.startswith("MATCH_"))
