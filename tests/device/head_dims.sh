#!/usr/bin/env bash
# The Hopper skeleton at every head dim that it serves, and value dims that differ: full, causal, windowed, strided and shared rows,
# both element types; and calls without queries, without keys or with a single one. Every element of out and lse is written.
. tests/device/long/cases.bash
base=skeleton=sm90_forward

# shellcheck disable=SC2034 # check_repeated reads dtype
try() { # try <dtype> <case without configuration> [argument of run...]
  local dtype=$1 case=$2
  shift 2
  beside check_repeated "$case $base" "$base" "$@"
}

for dim in {8..256..8}; do # the dims of the zero-filled columns of a box, odd lengths and head groups
  [ $((dim % 16)) = 0 ] && type=fp16 || type=bf16
  try "$type" "causal 300/811 4 2 $dim"
  try "$type" "full 193/130 2 1 $dim"
done
for dims in 64 96 128 192 256 192/128 128/192 72 200 8/256 256/8; do
  for type in bf16 fp16; do
    try "$type" "sliding_window 1500 3 1 $dims" --set=left=255
    try "$type" "dilated 4099 6 3 $dims"
    try "$type" "longformer 3001 3 3 $dims"
    try "$type" "dilated_window 1111 4 2 $dims"
    try "$type" "longformer 600/900 6 2 $dims" --split-keys=301 # by a carry
  done
done
for dims in 96 192/128 192; do # parts that blocks share, and of a last round
  beside check_repeated "longformer 4999 4 2 $dims $base,split_tiles=32" "$base"
  beside check_repeated "full 3000 10 5 $dims $base,grid=1,split_last=1,split_tiles=0" "$base"
done
for lengths in 1/1 1/700 700/1 300/0 0/300; do
  for pattern in full causal dilated longformer; do try bf16 "$pattern $lengths 6 3 64"; done
done
wait
finish
