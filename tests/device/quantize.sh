#!/usr/bin/env bash
# q, k and v as e4m3 by the kernel of kind quantize: types, head dims, heads of one piece and of many, one row, no rows; each against
# the definition, and 50 times with the same bits; configurations, pieces that find no room in shared memory too; rows that are rotated first; scales of blocks of rows;
# as the verb writes it, and read by a call of e4m3.
. tests/device/long/cases.bash

try() { # try <dtype> <batch> <rows> <keys> <heads> <kv heads> <head dim> <value dim> [changes to the default]; kind: quantize unless it is set;
  # scale_rows: how many rows of q and k share a scale, all of a head unless it is set
  local kind=${kind:-quantize} config=${9:-default} rows_of_scale=${scale_rows:-0} file command
  local name="$kind $*${scale_rows:+ scale_rows=$scale_rows}"
  begins "$name" patterns/causal.mlir --kind="$kind" --head-dim="$7" --value-dim="$8" --seqlen="$3" --dtype="$1" --config="$config" ${scale_rows:+--scale-rows="$scale_rows"} || return
  file=$(mktemp -p "$HEDDLE_SCRATCH")
  prepare "inputs of $name" 60 "$HEDDLE" make-inputs --kind="$kind" --dtype="$1" --batch="$2" --seqlen="$3" --seqlen-k="$4" --heads="$5" \
    --kv-heads="$6" --head-dim="$7" --value-dim="$8" --seed=3 -o "$file"
  run_command causal "$file" --kind="$kind" --config="$config" --scale-rows="$rows_of_scale" --repeat=50 --verify --rows=4096
  check "$name" 60 "${command[@]}"
  rm -f "$file"
}

for type in bf16 fp16 fp32; do
  for dim in 16 48 64 80 128 192 256 512; do try "$type" 2 301 190 4 2 "$dim" "$dim" & done
  wait
  for rows in 0 1 63 64 65 8191; do try "$type" 1 "$rows" 700 3 1 128 64; done
  try "$type" 1 70 0 3 3 128 128
  try "$type" 1 40000 40000 4 4 128 128
done
# Every number of elements that are rotated together, every type, in shared memory and read twice.
for dim in 16 48 64 80 96 112 128 192 256 512; do kind=quantize_rotated try bf16 2 301 190 4 2 "$dim" 64 & done
wait
for type in bf16 fp16 fp32; do
  kind=quantize_rotated try "$type" 1 8191 700 3 1 128 64
  kind=quantize_rotated try "$type" 1 20000 20000 4 4 96 96
done
for config in units=1,warps=4,slots=0,ahead=0 slots=0,ahead=0,units=8,min_blocks=2 slots=6,ahead=2,units=4,heads=1 slots=3,ahead=1,units=1,warps=4,min_blocks=1; do
  kind=quantize_rotated try bf16 1 20000 30000 4 2 128 128 "$config"
done
for config in units=1,warps=4 slots=0,units=2,min_blocks=4 slots=0,ahead=0,units=8,min_blocks=2 heads=2 heads=4,lead=0 lead=8 evict_first=0 warps=16,min_blocks=1 \
  slots=6,ahead=2,units=4,heads=1 slots=8,ahead=2,units=3 slots=6,ahead=1,units=4,warps=16,min_blocks=1,heads=1 slots=3,ahead=1,units=1,warps=4,min_blocks=1; do
  try bf16 1 20000 30000 4 2 128 128 "$config"
done

# Blocks of rows of q and k with scales of their own: of less than a piece, of several, in shared memory and read twice.
for rows in 64 128; do
  for dim in 16 64 80 128 256 512; do scale_rows=$rows try bf16 2 301 190 4 2 "$dim" 64 & done
  wait
  for type in bf16 fp16 fp32; do
    for length in 0 1 63 64 65 8191; do scale_rows=$rows try "$type" 1 "$length" 700 3 1 128 64; done
    scale_rows=$rows try "$type" 1 40000 40000 4 4 128 128
    scale_rows=$rows kind=quantize_rotated try "$type" 1 20000 20000 4 4 96 96
  done
  for config in slots=0,units=2,min_blocks=4 slots=0,ahead=0,units=8,min_blocks=2 heads=4,lead=0 slots=6,ahead=2,units=4,heads=1 \
    slots=3,ahead=1,units=1,warps=4,min_blocks=1; do
    scale_rows=$rows try bf16 1 20000 30000 4 2 128 128 "$config"
  done
done

# Values that are written key-major, with rows at multiples of 16 bytes.
for kind in quantize_v_key_major quantize_rotated_v_key_major; do
  for type in bf16 fp16 fp32; do
    for keys in 16 176 8192; do try "$type" 2 70 "$keys" 4 2 128 64; done
    try "$type" 1 40000 40000 4 4 128 128
    scale_rows=64 try "$type" 2 301 304 4 2 64 96
  done
  for config in slots=0,ahead=0,units=8,min_blocks=2 slots=6,ahead=2,units=4,heads=1 slots=3,ahead=1,units=1,warps=4,min_blocks=1; do
    try bf16 1 20000 30000 4 2 128 240 "$config"
  done
done
unset kind

# What the verb writes on a GPU and on the processors is the same.
name="quantize, the verb"
if begins "$name" patterns/full.mlir --kind=quantize --head-dim=128; then
  file=$(mktemp -p "$HEDDLE_SCRATCH")
  prepare "inputs of $name" 60 "$HEDDLE" make-inputs --seqlen=3000 --heads=4 --kv-heads=2 --head-dim=128 -o "$file"
  for seed in "" 1; do
    for target in cuda cpu; do
      prepare "$name on $target" 60 "$HEDDLE" quantize "$file" ${seed:+"--rotation-seed=$seed"} --target="$target" -o "$file.$target"
    done
    check "$name, rotated by ${seed:-nothing}" 10 cmp "$file.cuda" "$file.cpu"
  done
  for target in cuda cpu; do
    prepare "$name on $target" 60 "$HEDDLE" quantize "$file" --scale-rows=64 --target="$target" -o "$file.$target"
  done
  check "$name, scales of blocks" 10 cmp "$file.cuda" "$file.cpu"
  for target in cuda cpu; do
    prepare "$name on $target" 60 "$HEDDLE" quantize "$file" --smooth-k=causal --target="$target" -o "$file.$target"
  done
  check "$name, k less its mean" 10 cmp "$file.cuda" "$file.cpu"
fi
wait
finish
