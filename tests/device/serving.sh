#!/usr/bin/env bash
# Caches in pages, trees of drafts, lists of pages for each kv head, keys in rows, tables behind each other, keys that sequences share, bits that do not depend on the batch, caches of e4m3, parts of caches: results of heddle.serve against fp64, graphs whose lengths and tables change (HEDDLE_REPLAYS of them, 10000),
# the same bits in 1,000 runs. With two GPUs, or HEDDLE_RANKS of them, calls over ranks and their graphs. Needs a PyTorch for CUDA, and libheddle.so beside the folder of the binary or in HEDDLE_LIBRARY.
# shellcheck disable=SC2317 # case by case
. tests/device/long/cases.bash
. tests/device/long/torch.bash
needs_torch serving "pytest, torch" "torch.cuda.is_available()" "no GPU that PyTorch knows"
export HEDDLE_REPLAYS=${HEDDLE_REPLAYS:-10000}

# try <case> <seconds> <tests>
try() {
  begins "$1" || return 0
  check_python "" "$1" "$2" -m pytest -q -p no:cacheprovider -rA "tests/python/device/$3.py"
}

try "caches in pages" 900 test_serving
try "trees of drafts" 600 test_trees
try "lists of pages and keys in rows" 900 test_serving_layouts
try "caches of e4m3" 600 test_quantized_caches
try "bits of a sequence in any batch" 600 test_batch_invariance
try "keys that sequences share" 900 test_shared_keys
try "parts of caches" 600 test_cache_parts
ranks=${HEDDLE_RANKS:-2}
if begins "parts of caches over $ranks ranks"; then
  if "$python" -c "import torch; assert torch.cuda.device_count() >= $ranks" 2>/dev/null; then
    check_ranks "as sequences grow, in a graph: ok" "parts of caches over $ranks ranks" 600 "$ranks" tests/python/device/test_cache_parts.py
  else
    echo "skip parts of caches over $ranks ranks: fewer GPUs"
  fi
fi
finish
