#!/usr/bin/env bash
# Plants one violation after the other in an empty tree and expects check.sh to find each of them, and
# nothing in the tree without them. A check that stopped biting fails here.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

put() { # put <file> <line>...
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' "${@:2}" >"$tree/$1"
}

clean_tree() {
  rm -rf "${tree:?}"/*
  put runtime/Core/A.h '// Owns a.' '#include <vector>' '#include "runtime/Core/B.h"'
  put runtime/Store/S.cpp '// Owns s.' '#include <sqlite3.h>' '#include <sys/stat.h>'
  put dialect/IR/D.cpp '// Owns d.' '#include "mlir/IR/Builders.h"' '#include "dialect/IR/D.h.inc"'
  put codegen/Skeletons/k.cuh '// Owns k.' '#include "p.cuh"'
  put codegen/Schedule/B.cpp '// Owns b.' 'Value add(Value a, Value b) { return Op::create(builder, loc, a, b); }' \
    'Value sum(Value a) { return pick({add(a, a), add(a, a)}, [&] { return add(a, a); }); }'
  put codegen/Target/T.cpp '// Owns t.' 'const char *name = "sm_90a";'
  put codegen/Skeletons/Shared/Registry.cpp '// Owns the list.' 'makePortable();'
  put codegen/Skeletons/Portable.cpp '// Owns one skeleton.'
  put codegen/Skeletons/Helper.h '// Owns help.'
  put codegen/Skeletons/Helper.cpp '// Owns help.'
  put compiler/Tools/Registry.cpp '// Owns the list.' '{"check", checkVerb}'
  put compiler/Tools/check.cpp '// Owns a verb.' '#include <CLI/CLI.hpp>'
  put compiler/Tools/Failure.cpp '// Owns help for verbs.'
  put compiler/Tools/main.cpp '// Owns main.' 'int main(int argc, char **argv) {}'
  put runtime/Include/heddle.h '/* The interface.' ' *  1. It never prints.' ' * 11. It ends.' ' */'
  put runtime/Python/heddle/_a.py 'from . import _b as B, _c' 'from ._c import what'
  put runtime/Python/heddle/_b.py 'def late():' '    from ._c import what'
  put runtime/Python/heddle/_c.py 'import os'
  put README.md '[here](docs/a.md) [there](https://example.org/x)'
  put docs/a.md '[back](../README.md#top)'
}

# expect <check> <text>: the check must fail, and name the planted violation.
expect() {
  local output
  if output=$(bash "$here/check.sh" "$tree" "$1"); then
    echo "FAIL: $1 found nothing, expected: $2"
    failed=1
  elif [[ $output != *"$2"* ]]; then
    printf 'FAIL: %s expected: %s\n%s\n' "$1" "$2" "$output"
    failed=1
  fi
  clean_tree
}

clean_tree
for check in includes registries estimates architectures op_names sizes leftovers links documented house python_circles; do
  bash "$here/check.sh" "$tree" $check || { echo "FAIL: $check found something in a clean tree"; failed=1; }
done

put runtime/Core/X.h '// x' '#include <sqlite3.h>'
expect includes 'runtime/Core/X.h:2: runtime/Core may not include sqlite3.h'
put compiler/Session/TunePrior.h '// Owns an estimate.' '#include "dialect/IR/D.h"'
expect estimates 'compiler/Session/TunePrior.h:1: an estimate reaches dialect/IR/D.h'
put compiler/Session/ScheduleCost.h '// Owns a cost.' '#include "compiler/Session/Between.h"'
put compiler/Session/Between.h '// Stands between.' '#include "mlir/IR/Builders.h"'
expect estimates 'compiler/Session/ScheduleCost.h:1: an estimate reaches mlir/IR/Builders.h'
put dialect/IR/D.td '// Owns ops.' 'def OneOp : LeafOp<"one"> {' 'def SumOp : NaryMaskOp<"sum", "Any"> {'
put dialect/IR/One.cpp '// Owns an op.' 'bool OneOp::isOne() { return isa<OneOp>(op); }'
put dialect/Transforms/T.cpp '// Owns a pass.' 'if (isa<AddOp>(op)) SumOp::create(b);' 'if (isa<AddOp, SumOp>(op)) {}'
expect op_names 'dialect/Transforms/T.cpp:3: asks for SumOp by name'
put dialect/IR/D.td '// Owns ops.' 'def OneOp : LeafOp<"one"> {'
put codegen/Emit/W.cpp '// Owns a walk.' 'module.walk([&](attn::OneOp op) {});'
expect op_names 'codegen/Emit/W.cpp:2: asks for OneOp by name'
put runtime/Device/X.h '// x' '# include "mlir/IR/Builders.h"'
expect includes 'runtime/Device/X.h:2: runtime may not include mlir/IR/Builders.h'
put runtime/Device/X.cpp '// x' '#include <cuda.h>'
expect includes 'runtime may not include cuda.h'
put dialect/IR/X.td '// x' 'include "codegen/Emit/E.td"'
expect includes 'dialect/IR/X.td:2: dialect/IR may not include codegen/Emit/E.td'
put codegen/Config/X.cpp '// x' '' '#include "codegen/Emit/EmitPattern.h"'
expect includes 'codegen/Config/X.cpp:3: codegen/Config may not include codegen/Emit/EmitPattern.h'
put codegen/Emit/X.cpp '// x' '#include "runtime/Store/Store.h"'
expect includes 'codegen may not include runtime/Store/Store.h'
put tuner/Search/X.cpp '// x' '#include <nlohmann/json.hpp>'
expect includes 'tuner may not include nlohmann/json.hpp'
put compiler/Session/X.cpp '// x' '#include <CLI/CLI.hpp>'
expect includes 'compiler/Session may not include CLI/CLI.hpp'
put tuner/Search/X.cpp '// x' '#include <boost/any.hpp>'
expect includes 'tuner may not include boost/any.hpp'
put codegen/Skeletons/x.cuh '// x' '#include <cuda_bf16.h>'
expect includes 'device code includes <cuda_bf16.h>'
put compiler/New/X.cpp '// x' '#include <vector>'
expect includes 'compiler/New/X.cpp:2: no rule in layers.txt'

put tuner/Search/A.h '// x' '#include "tuner/Search/B.h"'
put tuner/Search/B.h '// x' '#include "tuner/Search/A.h"'
expect circles 'tuner/Search/A: a circle of includes, with tuner/Search/B'
put tuner/Search/A.h '// x' '#include "tuner/Space/S.h"'
put tuner/Space/S.cpp '// x' '#include "tuner/Search/Z.h"'
expect circles 'tuner/Search: a circle of includes, with tuner/Space'

put runtime/Include/heddle.h '/* The interface.' ' */' '/* Opens. */' 'HEDDLE_API int heddle_open(void);' 'HEDDLE_API int heddle_shut(void);'
expect documented 'runtime/Include/heddle.h:5: a function without a comment right above it'
put compiler/Tools/forgotten.cpp '// x'
expect registries 'compiler/Tools/forgotten.cpp:1: not listed'
rm "$tree/compiler/Tools/Registry.cpp"
expect registries 'compiler/Tools/check.cpp:1: not listed in compiler/Tools/Registry.cpp'

put runtime/Device/X.cpp '// on sm_90 only' 'if (arch == "sm_90") {}'
expect architectures 'runtime/Device/X.cpp:2: names a GPU architecture'
put tuner/Search/X.cpp '// x' "$(yes 'int x;' | head -500)"
expect sizes 'tuner/Search/X.cpp:501: longer than 400 lines'
put patterns/x.mlir '// x' '// TO''DO: more'
expect leftovers 'patterns/x.mlir:2: an unfinished place'
put docs/x.md 'a' '[gone](pictures/none.svg)'
expect links 'docs/x.md:2: link to pictures/none.svg, which is not there'
put docs/house.md '`runtime/Core/` `runtime/Gone/`'
expect house 'docs/house.md:1: names runtime/Gone/, which is not there'
put docs/house.md '`runtime/Core/`'
expect house 'docs/house.md:1: does not name codegen/Schedule'
put docs/house.svg '<text>runtime/Nowhere</text>'
expect house 'docs/house.svg:1: names runtime/Nowhere, which is not there'
put runtime/Python/heddle/_c.py 'def late():' '    from . import _d, _a  # seldom'
expect python_circles 'heddle/_a.py:1: these import each other in a circle: _a _'

[ $failed = 0 ] && echo "every planted violation was found"
exit $failed
