#!/usr/bin/env bash
# torch.sh <source> <build> <library>...: tests/python and bench.session with PyTorch, whatever the distribution has, the former once for every library. Python is
# $HEDDLE_TORCH_PYTHON where that names one with torch, numpy and pytest, else that of an environment in <build>/torch, filled from PyPI
# once (3 GB to fetch, 6 GB on the disk). Skipped where neither is to be had; then no test may be skipped for want of PyTorch.
set -euo pipefail
source=$1 build=$2
shift 2
environment=$build/torch
room_gb=8

skip() { echo "skipped: $*"; exit 0; }

has_torch() { "$1" -c 'import numpy, pytest, torch' 2>/dev/null; }

fill_environment() {
  (( $(df --output=avail -BG "$build" | tail -1 | tr -dc 0-9) >= room_gb )) || skip "PyTorch wants $room_gb GB in $build"
  python3 -m venv "$environment" || skip "python3 makes no environment (python3-venv)"
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore "$environment/bin/pip" install -q --no-cache-dir torch numpy pytest >"$build/torch.log" 2>&1 ||
    { tail -1 "$build/torch.log"; skip "PyPI gives no PyTorch; HEDDLE_TORCH_PYTHON may name a python that has it"; }
}

python=${HEDDLE_TORCH_PYTHON:-$environment/bin/python}
if ! has_torch "$python"; then
  [ -z "${HEDDLE_TORCH_PYTHON:-}" ] || { echo "FAIL: HEDDLE_TORCH_PYTHON=$python lacks torch, numpy or pytest"; exit 1; }
  fill_environment
  has_torch "$python" || { echo "FAIL: what PyPI gave does not import"; exit 1; }
fi

"$python" -c 'import torch; print("torch", torch.__version__)'
"$python" "$source/tests/unit/bench_session_test.py"
said=$(mktemp)
trap 'rm -f "$said"' EXIT
for library in "$@"; do
  echo "with $(basename "$library")"
  HEDDLE_LIBRARY=$library "$python" -m pytest -q -rs -p no:cacheprovider "$source/tests/python" | tee "$said"
  ! grep -E "could not import '(torch|numpy)'" "$said" || { echo "FAIL: skipped for want of what is there"; exit 1; }
done
