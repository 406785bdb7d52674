#!/usr/bin/env bash
# A short tune publishes a winner that verifies; a later process finds it in the database, exactly.
set -uo pipefail
failed=0
db=$HEDDLE_SCRATCH/kernels.db
inputs=$HEDDLE_SCRATCH/inputs.safetensors
check() { # check <case> <text that must be printed> <command...>
  local name=$1 wanted=$2 output
  shift 2
  if ! output=$("$@" 2>&1); then
    echo "FAIL $name: $(tail -1 <<<"$output")"
  elif ! grep -qF -- "$wanted" <<<"$output"; then
    echo "FAIL $name: '$wanted' is not in: $(tail -3 <<<"$output" | tr '\n' ' ')"
  else
    echo "ok $name"
    return
  fi
  failed=1
}
"$HEDDLE" make-inputs --seqlen=4096 --heads=6 --head-dim=64 --dtype=bf16 --seed=2 -o "$inputs"
for pattern in causal dilated_window; do
  check "tune $pattern" winner "$HEDDLE" tune "patterns/$pattern.mlir" --seqlen=4096 --heads=6 --head-dim=64 \
    --dtype=bf16 --budget=10s --db="$db"
  check "run $pattern from the database" "match: exact" "$HEDDLE" run "patterns/$pattern.mlir" --inputs="$inputs" \
    --output="$HEDDLE_SCRATCH/outputs.safetensors" --target=cuda --db="$db" --verify
done
"$HEDDLE" make-inputs --backward --seqlen=4096 --heads=6 --head-dim=64 --dtype=bf16 --seed=2 -o "$inputs"
for pattern in causal sliding_window; do
  check "tune $pattern, gradients" winner "$HEDDLE" tune "patterns/$pattern.mlir" --backward --seqlen=4096 --heads=6 --head-dim=64 \
    --dtype=bf16 --budget=10s --db="$db"
  check "run $pattern, gradients, from the database" "match: exact" "$HEDDLE" run "patterns/$pattern.mlir" --backward --inputs="$inputs" \
    --output="$HEDDLE_SCRATCH/outputs.safetensors" --target=cuda --db="$db" --verify
  check "bench $pattern, gradients" '"ok": true' "$HEDDLE" bench "patterns/$pattern.mlir" --backward --seqlen=4096 --heads=6 --head-dim=64 \
    --db="$db" --json
done
check "launches of a walk for d_q agree" "20 launches gave the same bits" "$HEDDLE" run causal --backward --inputs="$inputs" \
  --output="$HEDDLE_SCRATCH/outputs.safetensors" --target=cuda --db="$db" --config=block_m=64,reduce=2 --repeat=20 --verify
check "the database is sound" "" "$HEDDLE" cache verify --db="$db"
exit $failed
