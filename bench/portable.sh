#!/usr/bin/env bash
# The table of the portable skeleton in bench/results: every pattern in bf16 at 8k and 32k, head dims 64 and 128, tuned on this GPU, verified,
# beside the bf16 matrix product of the same run.
#   bench/portable.sh RESULTS.json [seconds of tuning per workload, default 8 [of the three that are compared most, default the same]]
# Needs a GPU and $HEDDLE (default: the build folders). Writes RESULTS.json and RESULTS.md; exits 1 if a result is wrong.
set -euo pipefail
cd "$(dirname "$0")/.."
results=$1 seconds=${2:-8} longer_seconds=${3:-${2:-8}}
find_program() { for place in "$@"; do [ -x "$place" ] && { echo "$place"; return; }; done; echo "$1"; }
HEDDLE=${HEDDLE:-$(find_program build/bin/heddle build-static/bin/heddle)}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
db=${HEDDLE_BENCH_DB:-$scratch/kernels.db}
patterns=(full causal sliding_window dilated dilated_window longformer longnet)
status=0
seconds_for() { # seconds_for <pattern> <seqlen> <head dim>
  case "$*" in
    "causal 8192 128" | "sliding_window 32768 128" | "dilated_window 32768 128") echo "$longer_seconds" ;;
    *) echo "$seconds" ;;
  esac
}
measure() { # measure <batch> <seqlen> <head dim> <heads>
  for pattern in "${patterns[@]}"; do
    "$HEDDLE" bench "patterns/$pattern.mlir" --batch="$1" --seqlen="$2" --head-dim="$3" --heads="$4" --dtype=bf16 \
      --skeleton=portable_forward --tune="$(seconds_for "$pattern" "$2" "$3")" --db="$db" --json >"$scratch/$pattern-$2-$3.json" || status=1
    python3 - "$scratch/$pattern-$2-$3.json" <<'PY'
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    print("%-15s b%d h%-2d n%-6d d%-3d %9.1f us %7.1f TFLOP/s %5.1f%% of roof %5.1f%% visited  error %.2e of %.2e %s  %s" % (
        row["pattern"], row["batch"], row["heads"], row["seqlen_q"], row["head_dim"], row["median_us"], row["tflops"],
        row["percent_of_roof"], row["visited_percent_of_roof"], row["max_error"], row["allowed_error"],
        "right" if row["ok"] else "WRONG", row["config"]), flush=True)
PY
  done
}
measure 2 8192 128 16
measure 1 32768 128 16
measure 2 8192 64 32
measure 1 32768 64 32
driver=$(nvidia-smi -i 0 --query-gpu=driver_version --format=csv,noheader 2>/dev/null || echo unknown)
python3 bench/portable_table.py "$results" "bench/portable.sh $(basename "$results") $seconds $longer_seconds" "$driver" "$scratch"/*.json
exit $status
