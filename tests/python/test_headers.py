"""The ctypes structs and prototypes against the headers, by the C compiler."""
import ctypes
import os
import re
import shutil
import subprocess

import pytest
from heddle import _library, _structs, errors

HEADERS = tuple("/".join(place) for place in _structs.PLACES)
STRUCTS = {"heddle_" + re.sub("(?<!^)([A-Z])", r"_\1", name).lower(): kind for name, kind in _structs._declared.items() if isinstance(kind, type)}
CONSTANTS = {f"HEDDLE_{name}": number for name, number in _structs._declared.items() if isinstance(number, int)}


def source(root):
    lines = [*(f'#include "{root}/{header}"' for header in HEADERS), "#include <stdio.h>", "int main(void) {"]
    for name, struct in STRUCTS.items():
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'  printf("{name}.{field[0]} %zu\\n", offsetof({name}, {field[0]}));' for field in struct._fields_]
    lines += [f'  printf("{name} %d\\n", (int){name});' for name in CONSTANTS]
    return "\n".join(lines + ["  return 0;", "}", ""])


def expected():
    known = dict(CONSTANTS)
    for name, struct in STRUCTS.items():
        known[name] = ctypes.sizeof(struct)
        known.update({f"{name}.{field[0]}": getattr(struct, field[0]).offset for field in struct._fields_})
    return known


def test_structs_have_the_layout_of_the_headers(root, tmp_path):
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang-22")
    if not compiler:
        pytest.skip("no C compiler")
    (tmp_path / "layout.c").write_text(source(root))
    subprocess.run([compiler, "-I", os.path.join(root, "runtime/Include"), "-o", "layout", "layout.c"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout
    assert {line.split()[0]: int(line.split()[1]) for line in printed.splitlines()} == expected()


def test_every_struct_and_function_of_the_headers_is_read(root):
    total = 0
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", open(os.path.join(root, header)).read(), flags=re.S)
        assert set(re.findall(r"typedef struct (\w+) \{", text)) <= set(STRUCTS)
        functions = set(re.findall(r"^HEDDLE_API [^;(]*?(\w+)\(", text, re.M))
        assert len(functions) == text.count("HEDDLE_API heddle_status") + text.count("HEDDLE_API void") + text.count("HEDDLE_API const char")
        assert functions <= set(_structs.compiler_functions if "compiler" in header else _structs.runtime_functions)
        total += len(functions)
    assert total == len(_structs.compiler_functions) + len(_structs.runtime_functions)
    assert len(STRUCTS) == 19
    assert _structs.MATCH_NAMES == ("exact", "nearest bucket", "same architecture", "untuned default", "none")
    with pytest.raises(AttributeError, match="declare no Nothing"):
        _structs.Nothing


def test_a_library_without_what_the_headers_declare_is_refused(monkeypatch):
    monkeypatch.setitem(_structs.runtime_functions, "heddle_of_tomorrow", (ctypes.c_int, []))
    with pytest.raises(AttributeError, match="heddle_of_tomorrow"):
        _library.Library(_library.library().path)


def test_there_is_an_exception_for_every_status(root):
    codes = re.findall(r"HEDDLE_(\w+) = (\d+)", re.search(r"typedef enum heddle_status \{.*?\}", open(os.path.join(root, HEADERS[0])).read(), re.S).group())
    for name, number in codes[1:]:
        raised = errors.of_status(int(number), "what was wrong")
        assert raised.status == name.lower() and isinstance(raised, errors.Error) and str(raised) == "what was wrong"
    assert len(codes) == len(errors.BY_STATUS)
