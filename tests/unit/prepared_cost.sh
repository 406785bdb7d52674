#!/usr/bin/env bash
# prepared_cost.sh <counted program> <uncounted program>: counting takes at most ten instructions of a prepared call's launch, and
# 3% of all that it takes with the recording driver, which is quicker than any other. By callgrind: no times, and the same in
# every run.
set -euo pipefail
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

instructions() { # of one launch
  valgrind --tool=callgrind --callgrind-out-file="$scratch/out" --toggle-collect=heddle_prepared_launch "$1" >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; exit 1; }
  sed -nE 's/^(summary|totals): ([0-9]+)$/\2/p' "$scratch/out" | awk '{ print $1 / 1000; exit }'
}

counted=$(instructions "$1")
plain=$(instructions "$2")
echo "a prepared launch takes $counted instructions with counters, $plain without"
awk -v counted="$counted" -v plain="$plain" 'BEGIN { more = counted - plain; exit !(more > 0 && more <= 10 && more <= 0.03 * plain) }' ||
  { echo "FAIL: expected 1 to 10 more, and at most 3%"; exit 1; }
