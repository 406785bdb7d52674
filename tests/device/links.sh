#!/usr/bin/env bash
# Messages between the GPUs of this machine over NCCL, whose bytes are compared before they are timed: ranks as threads of one
# process, then two as processes. Each GPU has two messages of the largest size in memory.
set -uo pipefail
export HEDDLE_DB=$HEDDLE_SCRATCH/links.db
failed=0

# report <case> <exit code> <output> <errors>
report() {
  if [ "$2" = 0 ]; then
    echo "ok $1"
    sed -n 's/^  "links": "\(.*\)"$/   --links=\1/p' "$3"
  else
    echo "FAIL $1: exit code $2: $(tail -1 "$4")"
    failed=1
  fi
}

said=$HEDDLE_SCRATCH/said
"$HEDDLE" ring links --json >"$HEDDLE_SCRATCH/threads.json" 2>"$said"
code=$?
if [ "$code" = 3 ] && grep -qE 'expected two or more|open NCCL: cannot open|open driver' "$said"; then
  echo "skip links: $(sed 's/^heddle: error: //' "$said")"
  exit 0
fi
report "links between threads" "$code" "$HEDDLE_SCRATCH/threads.json" "$said"

as_rank() { "$HEDDLE" ring links --rank="$1" --ranks=2 --meet="$HEDDLE_SCRATCH/meet" --json >"$HEDDLE_SCRATCH/$1.json" 2>"$HEDDLE_SCRATCH/$1.said"; }
as_rank 1 &
as_rank 0
report "links between processes, rank 0" $? "$HEDDLE_SCRATCH/0.json" "$HEDDLE_SCRATCH/0.said"
wait $!
report "links between processes, rank 1" $? /dev/null "$HEDDLE_SCRATCH/1.said"
exit $failed
