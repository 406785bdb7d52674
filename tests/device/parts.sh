#!/usr/bin/env bash
# Items that blocks share in parts: right, and the same bits in every launch, whoever computes which part.
# shellcheck disable=SC2154 # run_command leaves its command there
. tests/device/long/cases.bash
seconds=60
launches=20
base=skeleton=sm90_forward
# pattern seqlen[/keys] heads kv_heads head_dim configuration; with 64 heads there are more parts than places to share them.
cases=(
  "longformer 8192 4 4 64 $base"
  "longformer 6000 3 1 128 $base,split_tiles=32"
  "longformer 4999 64 8 64 $base,split_tiles=32"
  "longformer 4999 8 2 64 $base,split_tiles=32,grid=3,block_m=192"
  "longformer 4999 8 8 64 $base,split_tiles=32,grid=1,softmax=1"
  "longformer 4999 8 8 64 $base,split_tiles=32,grid=3,softmax=1"
  "longformer 4999 64 64 128 $base,split_tiles=32,block_m=128,turn_taking=1"
  "causal 8192 3 3 128 $base,split_tiles=32,grid=3"
  "full 5000 8 8 128 $base,split_last=1,grid=1"
  "full 3333 8 2 64 $base,split_last=1,grid=1,softmax=1"
  "sliding_window 5000 5 5 64 $base,split_last=1,grid=1"
  "full 64/9000 5 1 64 $base" # few queries: one item for each head, in parts
  "full 200/4000 3 3 128 $base"
  "causal 40/3000 4 2 64 $base,block_n=32" # most parts without keys
)

try() { # try <case>
  local pattern seqlen heads kv_heads head_dim config inputs name log code=0
  read -r pattern seqlen heads kv_heads head_dim config <<<"$1"
  name="$pattern q=$seqlen heads=$heads/$kv_heads d=$head_dim ${config#"$base"}"
  inputs=$(mktemp -p "$HEDDLE_SCRATCH" --suffix=.safetensors)
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  prepare "make inputs for $name" "$seconds" "$HEDDLE" make-inputs --seqlen="${seqlen%/*}" --seqlen-k="${seqlen#*/}" --heads="$heads" \
    --kv-heads="$kv_heads" --head-dim="$head_dim" --dtype=bf16 --seed=5 -o "$inputs"
  run_command "$pattern" "$inputs" --config="$config" --repeat="$launches" --verify
  limited "$seconds" "$log" "${command[@]}" || code=$?
  if [ "$code" != 0 ] && grep -qE "needs .* lacks" "$log"; then
    echo "skip $name: $(grep -m1 -oE "needs .* lacks[^;]*" "$log")"
  else
    report "$name" "$code" "$seconds" "$log"
  fi
  rm -f "$inputs"
}

for case in "${cases[@]}"; do beside try "$case"; done
wait
finish
