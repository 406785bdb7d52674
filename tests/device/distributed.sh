#!/usr/bin/env bash
# heddle.distributed over two GPUs, or HEDDLE_RANKS of them: calls as modules make them, and bits of placement-free ones, wherever rows lie. Needs a
# PyTorch for CUDA, and libheddle.so beside the folder of the binary or in HEDDLE_LIBRARY.
# shellcheck disable=SC2317 # case by case
. tests/device/long/cases.bash
library=${HEDDLE_LIBRARY:-$(dirname "$HEDDLE")/../lib/libheddle.so}
python=${HEDDLE_PYTHON:-python3} ranks=${HEDDLE_RANKS:-2}

if [ -z "${HEDDLE_DEVICE_LIST:-}" ]; then
  if [ ! -e "$library" ]; then
    echo "skip distributed: no $library"
    exit 0
  fi
  if ! "$python" -c "import torch; assert torch.cuda.device_count() >= $ranks, 'fewer GPUs than $ranks'" 2>"$HEDDLE_SCRATCH/said"; then
    echo "skip distributed: $(tail -1 "$HEDDLE_SCRATCH/said")"
    exit 0
  fi
fi

# over_ranks <case> <program>: one that ends with what rank 0 says.
over_ranks() {
  begins "$1" || return 0
  check_says "rank 0: fine" "$1" 300 env HEDDLE_LIBRARY="$library" PYTHONPATH=runtime/Python NCCL_NVLS_ENABLE=0 \
    "$python" -m torch.distributed.run --standalone --nproc-per-node="$ranks" "tests/python/device/$2.py"
}

over_ranks "calls of heddle.distributed over $ranks ranks" group_calls
over_ranks "bits of placement-free calls over $ranks ranks" group_bits
finish
