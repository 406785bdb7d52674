#!/usr/bin/env bash
# Sequences of 2^28 and 2^30 tokens on one GPU, piece by piece, with inputs that are made on the GPU: a window, the mixture of
# LongNet and a dilated window, one head of 64 channels; 256 rows of each compared with the definition in fp64. Then pieces of
# a file against one call. What was planned and what was measured is printed below each case.
. tests/device/long/cases.bash

# streamed <pattern> <exponent> <seconds> [argument...]
streamed() {
  local pattern=$1 exponent=$2 seconds=$3 name log code=0
  shift 3
  name="$pattern, 2^$exponent tokens${*:+ $*}"
  begins "$name" || return 0
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  limited "$seconds" "$log" "$HEDDLE" run "patterns/$pattern.mlir" --stream --seqlen="2^$exponent" --heads=1 --head-dim=64 --seed=3 \
    --target=cuda --verify --rows=256 "$@" || code=$?
  report "$name" "$code" "$seconds" "$log"
  sed 's/^/   /' "$log"
}

# of_file <pattern> <seqlen> <piece rows>: rows of a file, in bf16, for 4 heads and 2 of k and v.
of_file() {
  local pattern=$1 seqlen=$2 rows=$3 name inputs output
  name="$pattern, a file of $seqlen tokens in pieces of $rows"
  begins "$name" || return 0
  inputs=$(mktemp -p "$HEDDLE_SCRATCH" --suffix=.safetensors) output=$(mktemp -p "$HEDDLE_SCRATCH" --suffix=.safetensors)
  prepare "make inputs for $name" 60 "$HEDDLE" make-inputs --seqlen="$seqlen" --heads=4 --kv-heads=2 --head-dim=64 --seed=5 -o "$inputs"
  check "$name" 120 "$HEDDLE" run "patterns/$pattern.mlir" --stream --piece-rows="$rows" --inputs="$inputs" --output="$output" \
    --target=cuda --verify --rows=256
  rm -f "$inputs" "$output"
}

for pattern in causal sliding_window longformer longnet_base dilated_window dilated; do
  of_file $pattern 20000 4096
  of_file $pattern 20001 1111
done
# One after the other: each takes the memory of the GPU.
for exponent in 28 30; do
  streamed sliding_window $exponent 300 --set left=4095
  streamed longnet_base $exponent 300
  streamed dilated_window $exponent 300
done
finish
