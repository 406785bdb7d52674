#!/usr/bin/env bash
# prepared_cost.sh <counted program> <uncounted program>: counting takes at most ten instructions of a prepared call's launch, and
# 3% of all that it takes with the recording driver, which is quicker than any other. By callgrind: no times. The ten are counted in
# the programs, which hold the runtime: what the recording driver and the C library do depends on where memory lies.
set -euo pipefail
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 0; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

instructions() { # of one launch: in the program itself, in all
  valgrind --tool=callgrind --callgrind-out-file="$scratch/out" --compress-strings=no --toggle-collect=heddle_prepared_launch "$1" >"$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; exit 1; }
  awk -v program="$(basename "$1")" '
    /^ob=/ { count = split($0, parts, "/"); isOwn = parts[count] == program }
    /^calls=/ { isCall = 1; next }
    /^[0-9+*-]/ { if (!isCall) { all += $2; own += isOwn ? $2 : 0 } isCall = 0 }
    END { print own / 1000, all / 1000 }' "$scratch/out"
}

read -r counted all < <(instructions "$1")
read -r plain _ < <(instructions "$2")
echo "a prepared launch takes $counted instructions of the runtime with counters, $plain without; $all with the driver's"
awk -v counted="$counted" -v plain="$plain" -v all="$all" 'BEGIN { more = counted - plain; exit !(more > 0 && more <= 10 && more <= 0.03 * all) }' ||
  { echo "FAIL: expected 1 to 10 more, and at most 3%"; exit 1; }
