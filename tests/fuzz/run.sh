#!/usr/bin/env bash
# run.sh <folder of the fuzz build> <seconds> [target...]: fuzzes each target for its share of the time (patterns get most of
# it) and keeps what it finds new in <build>/fuzz/<target>. Prints one line per target; exit 1 if one crashed, took
# more than 2 s for an input, or too much memory, with the input's path.
set -euo pipefail
build=$1 seconds=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(pattern safetensors texts store)
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:allocator_may_return_null=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
status=0
for target in "${targets[@]}"; do
  share=$seconds
  [ ${#targets[@]} = 1 ] || case $target in pattern) share=$((seconds * 7 / 10)) ;; *) share=$((seconds / 10)) ;; esac
  found=$build/fuzz/$target log=$build/fuzz/$target.log
  # An input that takes longer, or more memory, is a finding like a crash.
  options=(-timeout=2 -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_total_time=$((share > 1 ? share : 1)) -artifact_prefix="$found.found/")
  [ ! -e "$here/$target.dict" ] || options+=(-dict="$here/$target.dict")
  mkdir -p "$found" "$found.found"
  if "$build/bin/fuzz_$target" "${options[@]}" "$found" "$here/corpus/$target" >"$log" 2>&1; then
    echo "fuzz $target: $(grep -oE 'Done [0-9]+ runs in [0-9]+ second' "$log")s, nothing found"
    continue
  fi
  input=$(grep -oE "$found.found/[^ ]*" "$log" | tail -1)
  # libFuzzer's limit is the clock's: on a busy machine an input may wait for a processor.
  if [[ $input == *.found/timeout-* ]] && (ulimit -t 3 && exec "$build/bin/fuzz_$target" -timeout=0 "$input") >>"$log" 2>&1; then
    echo "fuzz $target: ended by $input, which took more than 2 s, but less of a processor"
  else
    echo "fuzz $target: FAILED, $input ($log)"
    status=1
  fi
done
exit $status
