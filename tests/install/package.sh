#!/usr/bin/env bash
# package.sh <source> <build> <python>: the Python package as a wheel lays it out, from what the build installs for it, with no path to the
# checkout or the build: the library and the command line are found beside the modules.
set -euo pipefail
source=$1 build=$2 python=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset HEDDLE_LIBRARY LD_LIBRARY_PATH

cmake --install "$build" --component heddle_wheel --prefix "$scratch/first" >"$scratch/install.log" || { cat "$scratch/install.log" >&2; exit 1; }
mv "$scratch/first" "$scratch/site"
cp "$source"/runtime/Python/heddle/*.py "$source/runtime/Python/heddle/py.typed" "$scratch/site/heddle"
export PYTHONPATH=$scratch/site HEDDLE_TEST_INSTALLED=1 PYTHONDONTWRITEBYTECODE=1
cd "$scratch"
"$python" -c 'import heddle; assert heddle.__file__.startswith("'"$scratch"'"); print(heddle.version(), heddle.has_compiler())'
if [ -e site/heddle/bin/heddle ]; then
  "$python" -m heddle --version | grep -q '^heddle [0-9]' || { echo "FAIL: python -m heddle" >&2; exit 1; }
fi
"$python" -m pytest -q -rs -p no:cacheprovider "$source/tests/python/test_patterns.py" "$source/tests/python/test_words.py"
