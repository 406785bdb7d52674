"""The ctypes structs and prototypes against the headers, by the C compiler."""
import ctypes
import os
import re
import shutil
import subprocess

import pytest
from heddle import _library, _structs, errors

HEADERS = ("runtime/Include/heddle.h", "compiler/Library/heddle_compiler.h")
STRUCTS = {"heddle_tensor": _structs.Tensor, "heddle_operand": _structs.Operand, "heddle_attention_args": _structs.AttentionArgs,
           "heddle_kernel_query": _structs.KernelQuery, "heddle_kernel_info": _structs.KernelInfo, "heddle_pattern_info": _structs.PatternInfo,
           "heddle_pattern_argument": _structs.PatternArgument, "heddle_compiler_options": _structs.CompilerOptions,
           "heddle_problem": _structs.Problem, "heddle_tune_options": _structs.TuneOptions}
CONSTANTS = {"HEDDLE_BF16": _structs.BF16, "HEDDLE_FP16": _structs.FP16, "HEDDLE_FP32": _structs.FP32,
             "HEDDLE_OPERAND_POINTER": _structs.OPERAND_POINTER, "HEDDLE_OPERAND_INT": _structs.OPERAND_INT,
             "HEDDLE_OPERAND_FLOAT": _structs.OPERAND_FLOAT, "HEDDLE_OPEN_ALLOW_FOREIGN_WRITERS": _structs.OPEN_ALLOW_FOREIGN_WRITERS,
             "HEDDLE_OPEN_IMMUTABLE": _structs.OPEN_IMMUTABLE, "HEDDLE_WITHOUT_GRAPH": _structs.WITHOUT_GRAPH,
             "HEDDLE_COMPILER_READ_ONLY": _structs.COMPILER_READ_ONLY,
             "HEDDLE_COMPILER_ALLOW_FOREIGN_WRITERS": _structs.COMPILER_ALLOW_FOREIGN_WRITERS,
             "HEDDLE_COMPILER_FORCE_NETWORK": _structs.COMPILER_FORCE_NETWORK, "HEDDLE_ONLY_STORED": _structs.ONLY_STORED,
             "HEDDLE_FIRST_SOON": _structs.FIRST_SOON, "HEDDLE_MATCH_NONE": len(_structs.MATCH_NAMES) - 1}


def source(root):
    lines = [f'#include "{root}/{HEADERS[1]}"', "#include <stdio.h>", "int main(void) {"]
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


def test_every_field_of_a_struct_is_declared(root):
    for header in HEADERS:
        text = open(os.path.join(root, header)).read()
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\n\} (\w+);", text, re.S):
            body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
            body = re.sub(r"union \{.*?\} value;", "int value;", body, flags=re.S)
            fields = [re.sub(r"\[.*", "", part.strip().split()[-1].lstrip("*")) for line in body.split(";") if line.strip()
                      for part in line.split(",")]
            assert [field[0] for field in STRUCTS[name]._fields_] == fields, name


def test_every_function_of_the_headers_is_reachable(root):
    loaded = _library.library()
    for header in HEADERS[:1 + loaded.has_compiler]:
        for name in re.findall(r"\b(heddle_\w+)\(", "".join(re.findall(r"HEDDLE_API[^;]*;", open(os.path.join(root, header)).read()))):
            assert getattr(loaded._functions, name), name
            known = {**_library._RUNTIME, **_library._COMPILER}
            assert name in known or name.endswith("_close") or name in (
                "heddle_version", "heddle_status_name", "heddle_last_message", "heddle_task_cancel"), name


def test_there_is_an_exception_for_every_status(root):
    codes = re.findall(r"HEDDLE_(\w+) = (\d+)", re.search(r"typedef enum heddle_status \{.*?\}", open(os.path.join(root, HEADERS[0])).read(), re.S).group())
    for name, number in codes[1:]:
        raised = errors.of_status(int(number), "what was wrong")
        assert raised.status == name.lower() and isinstance(raised, errors.Error) and str(raised) == "what was wrong"
    assert len(codes) == len(errors.BY_STATUS)
