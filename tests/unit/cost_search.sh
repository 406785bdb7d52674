#!/usr/bin/env bash
# cost_search.sh <program>: a layout of a search in which most are possible takes at most 3,200 instructions: a million are looked at
# in a second or less on one core. By callgrind: no times, and the same in every run.
set -euo pipefail
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

valgrind --tool=callgrind --callgrind-out-file="$scratch/out" --toggle-collect='heddle::cost::search(*' "$1" >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; exit 1; }
layouts=$(sed -nE 's/^layouts ([0-9]+) .*/\1/p' "$scratch/log")
counted=$(sed -nE 's/^(summary|totals): ([0-9]+)$/\2/p' "$scratch/out" | head -1)
awk -v counted="$counted" -v layouts="$layouts" 'BEGIN {
  printf "%d layouts take %.0f instructions each\n", layouts, counted / layouts
  exit !(layouts >= 10000 && counted > 0 && counted <= 3200 * layouts)
}' || { echo "FAIL: expected at least 10,000 layouts of at most 3,200 instructions"; exit 1; }
