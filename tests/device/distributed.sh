#!/usr/bin/env bash
# heddle.distributed over two GPUs, or HEDDLE_RANKS of them: calls as modules make them, and bits of placement-free ones, wherever rows lie. Needs a
# PyTorch for CUDA, and libheddle.so beside the folder of the binary or in HEDDLE_LIBRARY.
# shellcheck disable=SC2317 # case by case
. tests/device/long/cases.bash
. tests/device/long/torch.bash
ranks=${HEDDLE_RANKS:-2}
needs_torch distributed torch "torch.cuda.device_count() >= $ranks" "fewer GPUs than $ranks"

# over_ranks <case> <program>: one that ends with what rank 0 says.
over_ranks() {
  begins "$1" || return 0
  check_ranks "rank 0: fine" "$1" 300 "$ranks" "tests/python/device/$2.py"
}

over_ranks "calls of heddle.distributed over $ranks ranks" group_calls
over_ranks "bits of placement-free calls over $ranks ranks" group_bits
finish
