#!/usr/bin/env bash
# Caches in pages, trees of drafts, lists of pages for each kv head, keys in rows, tables behind each other, keys that sequences share, bits that do not depend on the batch, caches of e4m3, parts of caches: results of heddle.serve against fp64, graphs whose lengths and tables change (HEDDLE_REPLAYS of them, 10000),
# the same bits in 1,000 runs. With two GPUs, or HEDDLE_RANKS of them, calls over ranks and their graphs. Needs a PyTorch for CUDA, and libheddle.so beside the folder of the binary or in HEDDLE_LIBRARY.
# shellcheck disable=SC2317 # case by case
. tests/device/long/cases.bash
library=${HEDDLE_LIBRARY:-$(dirname "$HEDDLE")/../lib/libheddle.so}
python=${HEDDLE_PYTHON:-python3}

if [ -z "${HEDDLE_DEVICE_LIST:-}" ]; then
  if [ ! -e "$library" ]; then
    echo "skip serving: no $library"
    exit 0
  fi
  if ! "$python" -c "import pytest, torch; assert torch.cuda.is_available()" 2>"$HEDDLE_SCRATCH/said"; then
    echo "skip serving: $(tail -1 "$HEDDLE_SCRATCH/said")"
    exit 0
  fi
fi

if begins "caches in pages"; then
  check "caches in pages" 900 env HEDDLE_LIBRARY="$library" HEDDLE_REPLAYS="${HEDDLE_REPLAYS:-10000}" PYTHONPATH=runtime/Python \
    "$python" -m pytest -q -p no:cacheprovider -rA tests/python/device/test_serving.py
fi
if begins "trees of drafts"; then
  check "trees of drafts" 600 env HEDDLE_LIBRARY="$library" PYTHONPATH=runtime/Python \
    "$python" -m pytest -q -p no:cacheprovider -rA tests/python/device/test_trees.py
fi
if begins "lists of pages and keys in rows"; then
  check "lists of pages and keys in rows" 900 env HEDDLE_LIBRARY="$library" PYTHONPATH=runtime/Python \
    "$python" -m pytest -q -p no:cacheprovider -rA tests/python/device/test_serving_layouts.py
fi
if begins "caches of e4m3"; then
  check "caches of e4m3" 600 env HEDDLE_LIBRARY="$library" PYTHONPATH=runtime/Python \
    "$python" -m pytest -q -p no:cacheprovider -rA tests/python/device/test_quantized_caches.py
fi
if begins "bits of a sequence in any batch"; then
  check "bits of a sequence in any batch" 600 env HEDDLE_LIBRARY="$library" PYTHONPATH=runtime/Python \
    "$python" -m pytest -q -p no:cacheprovider -rA tests/python/device/test_batch_invariance.py
fi
if begins "keys that sequences share"; then
  check "keys that sequences share" 900 env HEDDLE_LIBRARY="$library" PYTHONPATH=runtime/Python \
    "$python" -m pytest -q -p no:cacheprovider -rA tests/python/device/test_shared_keys.py
fi
if begins "parts of caches"; then
  check "parts of caches" 600 env HEDDLE_LIBRARY="$library" PYTHONPATH=runtime/Python \
    "$python" -m pytest -q -p no:cacheprovider -rA tests/python/device/test_cache_parts.py
fi
ranks=${HEDDLE_RANKS:-2}
if begins "parts of caches over $ranks ranks"; then
  if "$python" -c "import torch; assert torch.cuda.device_count() >= $ranks" 2>/dev/null; then
    check_says "as sequences grow, in a graph: ok" "parts of caches over $ranks ranks" 600 env HEDDLE_LIBRARY="$library" PYTHONPATH=runtime/Python \
      NCCL_NVLS_ENABLE=0 "$python" -m torch.distributed.run --standalone --nproc-per-node="$ranks" tests/python/device/test_cache_parts.py
  else
    echo "skip parts of caches over $ranks ranks: fewer GPUs"
  fi
fi
finish
