#!/usr/bin/env bash
# The winners of a table of tuned kernels, $HEDDLE_WINNERS (as bench/peers.sh --marks writes it) or the one of bench/results, compiled
# again, with fewer heads and tokens: each verifies and gives the same bits 200 times.
# shellcheck disable=SC2034 # check_repeated reads launches
. tests/device/long/cases.bash
table=${HEDDLE_WINNERS:-bench/results/h200-tuned.json}
launches=200
wide=bench/patterns # patterns of the table that are in no library

# "workload configuration" of each.
winners=$(python3 - "$table" <<'PYTHON'
import json, sys
for workload in json.load(open(sys.argv[1]))["workloads"]:
    for entry in workload["entries"]:
        if entry["name"] == "heddle" and entry["workload"] == workload["name"]:
            print(workload["name"], ",".join(entry["config"].split()))
PYTHON
) || { fail "winners of $table" "not read"; finish; }

# try <workload> <problem> [argument of run...]: with the workload's winner.
try() {
  local config
  config=$(grep -m1 "^$1 " <<<"$winners") || { fail "$1" "no winner in $table"; return; }
  config=${config#* }
  beside check_repeated "$2 $config" "$config" "${@:3}"
}

try dense_8k_d128 "full 8192 4 4 128"
try dense_32k_d128 "full 16384 4 4 128"
try causal_8k_d128 "causal 8192 8 8 128"
try causal_32k_d128 "causal 16384 4 4 128"
try dense_8k_d64 "full 8192 8 8 64"
try dense_32k_d64 "full 16384 5 5 64"
try causal_8k_d64 "causal 8192 8 8 64"
try causal_32k_d64 "causal 16384 8 8 64"
try causal_8k_d256 "causal 8192 4 4 256"
try gqa_causal_16k "causal 8192 16 4 128"
try win1k_32k "sliding_window 16384 8 8 128" --set=left=1023
try win1k_128k "sliding_window 32768 4 4 128" --set=left=1023
try win4k_1m "sliding_window 65536 2 2 128" --set=left=4095
try dilwin_32k "dilated_window 16384 8 8 128" --set=half=1024
try fkodom_32k "dilated 16384 6 6 64"
try fkodom_128k "$wide/dilated_4.mlir 32768 8 8 64"
try longformer_32k "longformer 32768 4 4 64"
try two_ranges "$wide/two_ranges.mlir 8160 8 8 128" --set=first=1920 --set=last=1920
finish
