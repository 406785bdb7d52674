#!/usr/bin/env bash
# Messages between the GPUs of this machine over NCCL: the bytes of every size are compared before they are timed. Each GPU
# has two messages of the largest size in memory.
set -uo pipefail
output=$HEDDLE_SCRATCH/links.json
"$HEDDLE" ring links --json >"$output" 2>"$HEDDLE_SCRATCH/said"
code=$?
case $code in
  0)
    echo "ok links"
    sed -n 's/^  "links": "\(.*\)"$/   --links=\1/p' "$output"
    ;;
  3)
    if grep -qE 'expected two or more|open NCCL: cannot open' "$HEDDLE_SCRATCH/said"; then
      echo "skip links: $(sed 's/^heddle: error: //' "$HEDDLE_SCRATCH/said")"
      exit 0
    fi
    ;;&
  *)
    echo "FAIL links: exit code $code: $(tail -1 "$HEDDLE_SCRATCH/said")"
    exit 1
    ;;
esac
