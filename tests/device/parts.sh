#!/usr/bin/env bash
# Items that blocks share in parts: right, and the same bits in every launch, whoever computes which part.
. tests/device/long/cases.bash
base=skeleton=sm90_forward
# With 64 heads there are more parts than places to share them.
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
  "full 40/20000 1 1 64 $base"             # 63 parts: the most that the last round is cut into
  "full 3/20000 2 1 128 $base"
  "longformer 450000 1 1 64 $base"         # 64 parts: the most of a long item
  "longformer 270000 1 1 64 $base,split_tiles=64"
)

for case in "${cases[@]}"; do beside check_repeated "$case" "$base"; done
wait
finish
