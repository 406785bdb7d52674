#!/usr/bin/env bash
# wheel.sh <source> <package> <fake driver> <python>: makes the wheel of the runtime alone as a machine without LLVM does, installs it into an
# environment of its own, and runs the tests of packed files with the installed package. Needs scikit-build-core: from the
# environment, else from PyPI; without either it is skipped.
set -euo pipefail
source=$1 package=$2 fake=$3 python=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset HEDDLE_LIBRARY HEDDLE_DB PYTHONPATH

fail() { echo "FAIL: $*" >&2; exit 1; }

make_wheel() {
  "$python" -m venv --system-site-packages "$scratch/venv" || { echo "skipped: $python makes no environment (python3-venv)"; exit 0; }
  export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
  if ! "$scratch/venv/bin/pip" install -q 'scikit-build-core>=0.10' pyproject_metadata pathspec >"$scratch/pip.log" 2>&1; then
    tail -1 "$scratch/pip.log"
    echo "skipped: no scikit-build-core, and PyPI does not answer"
    exit 0
  fi
  # Without llvm-config-22 on the way, as where no LLVM is.
  mkdir "$scratch/tree" && (cd "$source" && tar -c --exclude='./build*' --exclude=./.git .) | tar -x -C "$scratch/tree"
  "$scratch/venv/bin/pip" wheel -v --no-deps --no-build-isolation --config-settings=cmake.define.HEDDLE_LLVM_CONFIG=/nowhere \
    -w "$scratch" "$scratch/tree" >"$scratch/wheel.log" 2>&1 || { tail -30 "$scratch/wheel.log"; fail "pip wheel"; }
  grep -q 'heddle wheel: the runtime alone' "$scratch/wheel.log" || fail "it did not say which library the wheel holds"
  wheel=$(echo "$scratch"/heddle-*.whl)
  [[ $wheel == *-py3-none-linux_*.whl ]] || fail "the tag of $wheel"
}

check_contents() {
  local names
  names=$("$python" -m zipfile -l "$wheel")
  for file in heddle/__init__.py heddle/py.typed heddle/lib/libheddle_runtime.so.0 heddle/include/heddle.h heddle/patterns/sliding_window.mlir; do
    grep -q "^$file " <<<"$names" || fail "$file is not in the wheel"
  done
  echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"
}

make_wheel
check_contents
"$scratch/venv/bin/pip" install -q --no-deps "$wheel"
rm -rf "$scratch/tree"
cd "$scratch"
"$scratch/venv/bin/python" -c 'import heddle; assert heddle.__file__.startswith("'"$scratch"'") and not heddle.has_compiler(); print(heddle.version())'
version=$("$scratch/venv/bin/python" -c 'import heddle; print(heddle.version())')
[[ $wheel == */heddle-$version-py3-* ]] || fail "$wheel holds heddle $version"
"$scratch/venv/bin/heddle" --version 2>"$scratch/said" && fail "a wheel without the compiler has a command line"
grep -q 'no program heddle' "$scratch/said" || fail "heddle said: $(cat "$scratch/said")"
HEDDLE_TEST_INSTALLED=1 HEDDLE_HOST_PACKAGE=$package HEDDLE_CUDA_DRIVER_LIBRARY=$fake PYTHONDONTWRITEBYTECODE=1 \
  "$scratch/venv/bin/python" -m pytest -q -rs -p no:cacheprovider "$source/tests/python/test_runtime.py" "$source/tests/python/test_bad_input.py" "$source/tests/python/test_words.py"
