#!/usr/bin/env bash
# prepared_cost.sh <counted program> <uncounted program>: the instructions of a prepared call's launch with counters are at most
# 3% more than without, by callgrind: a count, the same in every run, of the runtime alone. What the driver does comes on
# top of both.
set -euo pipefail
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Of the runtime's own functions: what the recording driver does is left out.
instructions() {
  valgrind --tool=callgrind --callgrind-out-file="$scratch/out" --toggle-collect=heddle_prepared_launch "$1" >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; exit 1; }
  callgrind_annotate --threshold=100 --show=Ir "$scratch/out" | sed -nE 's/^ *([0-9,]+) \([^)]*\)  (.*)/\1 \2/p' |
    awk '$0 !~ /libheddle_fake_cuda/ && $0 !~ /PROGRAM TOTALS/ { gsub(",", "", $1); sum += $1 } END { print sum / 1000 }'
}

counted=$(instructions "$1")
plain=$(instructions "$2")
echo "a prepared launch takes $counted instructions of the runtime, $plain without counters"
awk -v counted="$counted" -v plain="$plain" 'BEGIN { exit !(plain > 100 && counted > plain && counted <= 1.03 * plain) }' ||
  { echo "FAIL: expected more, and at most 3% more"; exit 1; }
