#!/usr/bin/env bash
# Winners of short tunes, taken from the database: each verifies and gives the same bits 200 times.
# shellcheck disable=SC2317 # functions are called by beside
. tests/device/long/cases.bash
shape=(--seqlen=4096 --heads=6 --head-dim=64 --dtype=bf16)
inputs=$HEDDLE_SCRATCH/inputs.safetensors
seconds=90

# winner <pattern> <skeleton>: a database of its own, so that its winner is one of that skeleton.
winner() {
  local name="$1 $2" db="$HEDDLE_SCRATCH/$1.$2.db" log command
  begins "winner $name" || return
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  if ! draw "$1" "$2" "$log" --sample=1; then
    echo "skip winner $name: $(reason_in "$log")"
    return
  fi
  check "tune $name" "$seconds" "$HEDDLE" tune "patterns/$1.mlir" "${shape[@]}" --skeleton="$2" --budget=10s --db="$db"
  run_command "$1" "$inputs" --db="$db" --repeat=200 --verify
  check_says "match: exact" "winner $name" "$seconds" "${command[@]}"
}

prepare "make inputs" "$seconds" "$HEDDLE" make-inputs "${shape[@]}" --seed=2 -o "$inputs"
for pattern in causal dilated_window longformer; do winner "$pattern" sm90_forward; done
winner causal portable_forward
finish
