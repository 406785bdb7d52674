#!/usr/bin/env bash
# Sequences over k and v of e4m3 beside q of bf16 and fp16, with a scale for each sequence and kv head, against the definition and 50 times
# with the same bits: pages, lists of each kv head and keys in rows, one query and more than a block has rows, head dims of 64 and 128,
# configurations, fp32 results; forward calls with such k and v. Rates beside a cache of bf16: heddle bench --decode [--kv-dtype=e4m3].
# shellcheck disable=SC2154,SC2317 # run_command leaves its command there, case by case
. tests/device/long/cases.bash

# try <pattern> <dtype> <batch> <queries> <keys> <heads> <kv heads> <head dim> <value dim> <places> [argument of run...]
try() {
  local name="e4m3 cache $*" pattern=$1 type=$2 batch=$3 rows=$4 keys=$5 heads=$6 kv_heads=$7 dim=$8 value_dim=$9 places=${10} file command word kernel=()
  shift 10
  for word in "$@"; do case $word in --out-dtype=* | --config=*) kernel+=("$word") ;; esac; done
  begins "$name" "patterns/$pattern.mlir" --kind=decode --head-dim="$dim" --value-dim="$value_dim" --dtype="$type" --kv-dtype=e4m3 "${kernel[@]}" || return
  file=$(mktemp -p "$HEDDLE_SCRATCH")
  prepare "inputs of $name" 60 "$HEDDLE" make-inputs --kind=decode --dtype="$type" --kv-dtype=e4m3 --batch="$batch" --seqlen="$rows" \
    --seqlen-k="$keys" --heads="$heads" --kv-heads="$kv_heads" --head-dim="$dim" --value-dim="$value_dim" --keys="$places" --seed=3 -o "$file"
  run_command "$pattern" "$file" --kind=decode --repeat=50 --verify --rows=512 --make-operands "$@"
  check "$name" 60 "${command[@]}"
  rm -f "$file"
}

for type in bf16 fp16; do
  for dim in 64 128; do
    for places in pages lists rows; do
      beside try causal "$type" 5 1 3000 32 8 "$dim" "$dim" "$places"
      beside try causal "$type" 3 40 1100 8 2 "$dim" 64 "$places"
    done
  done
done
beside try causal bf16 1 1 100000 32 4 128 128 pages
for pattern in streaming dilated sink softcap alibi bigbird; do beside try "$pattern" bf16 3 4 900 8 2 128 128 pages; done
beside try causal bf16 4 1 2000 16 2 128 128 pages --out-dtype=fp32
for config in chunk_n=16 chunk_n=16,stages=4 stages=2,min_blocks=1 rescale_threshold=0 piece_tiles=1; do
  beside try causal bf16 4 2 2000 16 2 128 128 pages --config="$config"
done

# forward <pattern> <dtype> <queries> <keys> <head dim> <value dim> [argument of run...]
forward() {
  local name="e4m3 keys $*" pattern=$1 type=$2 rows=$3 keys=$4 dim=$5 value_dim=$6 file command word kernel=()
  shift 6
  for word in "$@"; do case $word in --out-dtype=* | --config=*) kernel+=("$word") ;; esac; done
  begins "$name" "patterns/$pattern.mlir" --head-dim="$dim" --value-dim="$value_dim" --dtype="$type" --kv-dtype=e4m3 "${kernel[@]}" || return
  file=$(mktemp -p "$HEDDLE_SCRATCH")
  prepare "inputs of $name" 60 "$HEDDLE" make-inputs --dtype="$type" --kv-dtype=e4m3 --batch=2 --seqlen="$rows" --seqlen-k="$keys" --heads=6 \
    --kv-heads=2 --head-dim="$dim" --value-dim="$value_dim" --seed=3 -o "$file"
  run_command "$pattern" "$file" --repeat=20 --verify --rows=256 --make-operands "$@"
  check "$name" 60 "${command[@]}"
  rm -f "$file"
}
for type in bf16 fp16; do
  for dim in 64 128; do beside forward causal "$type" 700 700 "$dim" 64; done
done
beside forward full bf16 1 5000 128 128
for pattern in longformer dilated sink softcap longnet; do beside forward "$pattern" bf16 300 300 128 128; done
beside forward causal bf16 500 500 128 128 --split-keys=200
for config in stages=1,block_n=32,chunk_n=32 chunk_n=16 block_m=64,warps=4; do
  beside forward causal bf16 500 500 64 64 --config="$config"
done
finish
