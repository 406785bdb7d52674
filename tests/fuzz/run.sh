#!/usr/bin/env bash
# run.sh <folder of the fuzz build> <seconds> [target...]: fuzzes each target for its share of the time (patterns get most of
# it) and keeps what it finds new in <build>/fuzz/<target>. Prints one line per target; exit 1 if one crashed, took
# more than 2 s of a processor for an input in $HEDDLE_PLAIN_BUILD (default: build/), or too much memory, with the input's path.
set -euo pipefail
build=$1 seconds=$2 plain=${HEDDLE_PLAIN_BUILD:-$(dirname "$0")/../../build}
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(pattern safetensors texts store)
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:allocator_may_return_null=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
status=0

# too_slow <target> <folder>: of the inputs kept in the folder, one that the program without sanitizers needs more than 2 s of
# a processor for, and fails; else how many it was asked for.
too_slow() {
  local folder count=0
  for input in "$2"/*; do
    [ -e "$input" ] || continue
    folder=$(mktemp -d)
    cp "$input" "$folder"
    if ! (ulimit -t 2 && exec "$plain/bin/fuzz_$1" "$folder") >/dev/null 2>&1; then
      rm -rf "$folder"
      echo "$input"
      return 1
    fi
    rm -rf "$folder"
    count=$((count + 1))
  done
  [ $count = 0 ] || echo "; $count inputs take more than 2 s with sanitizers, less without"
}

for target in "${targets[@]}"; do
  share=$seconds
  [ ${#targets[@]} = 1 ] || case $target in pattern) share=$((seconds * 7 / 10)) ;; *) share=$((seconds / 10)) ;; esac
  found=$build/fuzz/$target log=$build/fuzz/$target.log
  # Sanitizers make some inputs 20 times slower: those of more than 2 s are kept, and judged without them.
  options=(-timeout=300 -report_slow_units=2 -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_total_time=$((share > 1 ? share : 1)) -artifact_prefix="$found.found/")
  [ ! -e "$here/$target.dict" ] || options+=(-dict="$here/$target.dict")
  rm -rf "$found.found"
  mkdir -p "$found" "$found.found"
  if ! "$build/bin/fuzz_$target" "${options[@]}" "$found" "$here/corpus/$target" >"$log" 2>&1; then
    echo "fuzz $target: FAILED, $(grep -oE "$found.found/[^ ]*" "$log" | tail -1) ($log)"
    status=1
  elif ! slow=$(too_slow "$target" "$found.found"); then
    echo "fuzz $target: FAILED, more than 2 s of a processor without sanitizers: $slow"
    status=1
  else
    echo "fuzz $target: $(grep -oE 'Done [0-9]+ runs in [0-9]+ second' "$log")s, nothing found$slow"
  fi
done
exit $status
