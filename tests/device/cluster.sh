#!/usr/bin/env bash
# Blocks that copy key tiles together: right, and the same bits in every launch. Neighbouring query tiles want the same
# keys (full), others (causal, windows) or none (an odd tile out, whose neighbour has no rows).
. tests/device/long/cases.bash
base=skeleton=sm90_forward,cluster=2,softmax=0,split_tiles=0
cases=(
  "full 5000 8 8 128 $base,grid=1,split_last=0"
  "full 5000 8 8 128 $base,grid=1,split_last=1"
  "full 3333/2100 8 2 128 $base,grid=1,split_last=1,stages=3"
  "full 577/1000 4 2 64 $base,grid=0,block_n=48,split_last=0"
  "full 1/3 3 1 128 $base,grid=0,split_last=0"
  "full 192/81 3 3 128 $base,grid=2,block_m=128,block_n=112,stages=2,split_last=0"
  "full 1000 5 5 256 $base,grid=1,split_last=0"
  "full 1000/700 5 5 96 $base,grid=1,block_m=64,turn_taking=0,query_stages=1,split_last=0"
  "causal 4099 6 2 128 $base,grid=2,split_last=0"
  "causal 4099 6 6 128 $base,grid=1,split_last=1"
  "causal 700/1900 6 3 64 $base,grid=0,block_m=192,block_n=80,split_last=0"
  "sliding_window 5000 5 5 64 $base,block_m=192,producer_registers=56,grid=1,split_last=1"
  "dilated 3001 6 3 64 $base,grid=2,split_last=0"
  "dilated_window 3001 4 2 128 $base,grid=1,split_last=0"
  "longformer 2500 3 3 64 $base,block_m=192,grid=2,split_last=0"
  "block_window 3000 4 2 128 $base,grid=1,split_last=0"
)

for case in "${cases[@]}"; do beside check_repeated "$case" "$base"; done
wait
finish
