#!/usr/bin/env bash
# delta, the row sums of out * d_out, by the kernel of kind row_dot: every value dim that it serves, element types, odd lengths,
# one row, none; each against the definition, and 50 times with the same bits.
. tests/device/long/cases.bash

try() { # try <dtype> <batch> <rows> <heads> <value dim> [changes to the default]
  local name="row_dot $*" config=${6:-warps=4} file types command
  [ "$1" != fp32 ] && types=(--dtype="$1") || types=(--dtype=bf16 --out-dtype=fp32) # of what was computed in bf16
  begins "$name" patterns/causal.mlir --kind=row_dot --head-dim="$5" --seqlen="$3" "${types[@]}" --config="$config" || return
  file=$(mktemp -p "$HEDDLE_SCRATCH")
  prepare "inputs of $name" 60 "$HEDDLE" make-inputs --kind=row_dot --dtype="$1" --batch="$2" --seqlen="$3" --heads="$4" --head-dim="$5" --seed=3 -o "$file"
  run_command causal "$file" --kind=row_dot --config="$config" --repeat=50 --verify --rows=4096
  check "$name" 60 "${command[@]}"
  rm -f "$file"
}

for dim in {8..256..8} 320 512; do
  [ $((dim % 16)) = 0 ] && type=fp16 || type=bf16
  try "$type" 2 301 3 "$dim" &
  [ $((dim % 64)) != 0 ] || wait
done
for type in bf16 fp16 fp32; do
  for rows in 0 1 63 64 65 8191; do try "$type" 1 "$rows" 5 128; done
done
for config in block_m=16,warps=1 block_m=64,warps=2 block_m=128,warps=8; do try bf16 3 777 4 128 "$config"; done
wait
finish
