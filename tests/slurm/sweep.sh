#!/usr/bin/env bash
# sweep.sh <heddle-recorded> <source folder>: examples/sweep.sbatch on a real Slurm, without a GPU: a job array over the recorded tables.
# One node is killed with SIGKILL in the middle, Slurm notices and requeues what ran there, and it runs to the end. Then every
# item is done, exactly once, nothing that was measured is lost, and nothing was measured again.
# Without root, Slurm or munge the test is skipped, and says why. It takes two minutes, and gives up after five.
set -euo pipefail
export LC_ALL=C
heddle=$1 source=$2
skip() { echo "skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "slurmd starts jobs as their users, which takes root"
for program in slurmctld slurmd sbatch scontrol munged python3; do
  command -v "$program" >/dev/null || skip "no $program here; ./dev test --all installs slurmctld, slurmd and munge"
done
here=$source/tests/slurm
plan=$source/tests/data/tuner/recorded.json
export HEDDLE_RECORDED=$source/tests/data/tuner
scratch=$(mktemp -d /tmp/heddle-slurm.XXXXXX)
# shellcheck source=cluster.sh
. "$here/cluster.sh"

fail() {
  echo "FAILED after $SECONDS s: $*" >&2
  tail -n 15 "$scratch"/slurmctld.log "$scratch"/*.out "$scratch"/out/* "$scratch"/*/item-*.log >&2 2>/dev/null || true
  exit 1
}
finish() {
  stop_cluster
  rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

trials() { python3 "$here/trials.py" "$@"; }

# ---------------------------------------------------------------- what a sweep without accidents finds
"$heddle" sweep run "$plan" --dir="$scratch/whole" --budget=10m >"$scratch/whole.out" 2>&1 || fail "the sweep without accidents"
"$heddle" sweep status "$plan" --dir="$scratch/whole" --list >"$scratch/whole.status"
items=$(grep -c '^done ' "$scratch/whole.status")
[ "$items" = 6 ] || fail "expected 6 items done, got $items"

# ---------------------------------------------------------------- the job array
start_cluster
mkdir "$scratch/out"
sweep=$scratch/sweep
export HEDDLE=$heddle HEDDLE_RECORDED_PACE=0.1
job=$(cd "$scratch" && sbatch --parsable --array="0-$((items - 1))" --output="$scratch/out/%a" "$source/examples/sweep.sbatch" "$plan" "$sweep" \
  --workers=2 --budget=10m)
task_nodes() { squeue -h -r -j "$job" -t running -o '%K %N' 2>/dev/null | sort; }
tasks_of() { task_nodes | awk -v node="$1" '$2 == node { print $1 }'; }

# Its tasks are in the middle of their items: some trials recorded, none done.
victims_are_busy() {
  local task
  [ "$(task_nodes | wc -l)" = "$items" ] || return 1
  for task in $(tasks_of n1); do
    [ -e "$sweep/shard-$task-of-$items.db" ] && [ "$(trials "$sweep/shard-$task-of-$items.db" | wc -l)" -ge 30 ] || return 1
  done
}
wait_until 90 "the job array does not run" victims_are_busy
killed=$(tasks_of n1)
[ -n "$killed" ] || fail "nothing runs on n1"
kill_node n1
for task in $killed; do
  trials "$sweep/shard-$task-of-$items.db" >"$scratch/before.$task"
  ! grep -q . "$sweep/shard-$task-of-$items.jsonl" || fail "task $task had come to its end"
done

# Slurm waits two minutes before it starts again what it requeued; the test does not.
requeued() {
  local task
  for task in $killed; do
    scontrol show job "${job}_$task" | grep -q 'Restarts=1 ' || return 1
    scontrol update "JobId=${job}_$task" StartTime=now 2>/dev/null || true
  done
}
wait_until 90 "Slurm does not requeue what ran on the node that was killed" requeued
[ "$(sinfo -h -n n1 -o %t)" = 'down*' ] || fail "n1 is not down"
ended() { [ -z "$(squeue -h -j "$job" 2>/dev/null)" ]; }
wait_until $((280 - SECONDS)) "the job array does not end" ended

# ---------------------------------------------------------------- nothing lost, nothing twice
for task in $(seq 0 $((items - 1))); do
  database=$sweep/shard-$task-of-$items.db
  [ "$(wc -l <"$sweep/shard-$task-of-$items.jsonl")" = 1 ] || fail "the journal of task $task has not its one item once"
  "$heddle" cache verify --db="$database" --db-force-network >/dev/null || fail "the database of task $task"
  trials "$database" >"$scratch/after.$task"
  if [ -e "$scratch/before.$task" ]; then
    [ -z "$(comm -23 "$scratch/before.$task" "$scratch/after.$task")" ] || fail "trials of task $task were lost or made again"
    [ "$(wc -l <"$scratch/before.$task")" -lt "$(wc -l <"$scratch/after.$task")" ] || fail "task $task had no trial left when it was killed"
  fi
done
"$heddle" sweep status "$plan" --dir="$sweep" --list >"$scratch/sweep.status" || fail "sweep status"
diff <(grep '^done ' "$scratch/whole.status") <(grep '^done ' "$scratch/sweep.status") >&2 || fail "items or winners differ from those of a sweep without accidents"
"$heddle" sweep merge "$plan" --dir="$sweep" -o "$scratch/all.db" >"$scratch/merge.out" || fail "sweep merge"
"$heddle" sweep merge "$plan" --dir="$scratch/whole" -o "$scratch/whole.db" >/dev/null || fail "sweep merge"
diff <(trials --no-times "$scratch/whole.db") <(trials --no-times "$scratch/all.db") >&2 || fail "trials differ from those of a sweep without accidents"
echo "ok: $(trials "$scratch/all.db" | wc -l) trials of $items items, $(cat "$scratch"/before.* | wc -l) of them before n1 was killed with tasks" $killed "in $SECONDS s"
