#!/usr/bin/env bash
# The winners of the table of marks (bench/results/2026-11-22-h200-peers.json), compiled again, with fewer heads and tokens: each
# verifies and gives the same bits 200 times.
# shellcheck disable=SC2034 # check_repeated reads launches
. tests/device/long/cases.bash
base=skeleton=sm90_forward,
launches=200
wide=bench/patterns # patterns of the table that are in no library

try() { beside check_repeated "$1 $base$2" "$base" "${@:3}"; }

try "full 8192 4 4 128" block_m=192,block_n=80,stages=4,raster_reversed=0,query_stages=1,turn_taking=1,grid=1,softmax=1,split_last=1,producer_registers=32
try "full 16384 4 4 128" block_m=192,block_n=80,stages=4,compact_mask=1,query_stages=1,turn_taking=0,grid=1,softmax=1,producer_registers=32
try "causal 8192 8 8 128" block_m=192,block_n=80,stages=3,compact_mask=1,query_stages=2,turn_taking=1,grid=3,softmax=1,producer_registers=32
try "causal 16384 4 4 128" block_m=192,block_n=80,stages=3,compact_mask=1,query_stages=1,turn_taking=0,grid=3,softmax=1,producer_registers=32
try "full 8192 8 8 64" block_m=192,block_n=128,stages=3,compact_mask=1,query_stages=2,turn_taking=1,grid=3,softmax=1,producer_registers=32,raster_mib=4
try "full 16384 5 5 64" block_m=192,block_n=128,stages=2,query_stages=2,turn_taking=1,grid=1,softmax=1,split_last=1,producer_registers=32
try "causal 8192 8 8 64" block_m=256,block_n=64,stages=4,compact_mask=1,query_stages=2,turn_taking=0,grid=3,softmax=1,producer_registers=32
try "causal 16384 8 8 64" block_m=256,block_n=64,stages=4,query_stages=2,turn_taking=1,grid=3,softmax=1,producer_registers=32
try "causal 8192 4 4 256" block_m=128,block_n=64,stages=2,query_stages=1,turn_taking=1,grid=3,softmax=1,producer_registers=32
try "causal 8192 16 4 128" block_m=192,block_n=80,stages=3,compact_mask=1,query_stages=2,turn_taking=1,grid=3,softmax=1,producer_registers=32
window="block_m=192,block_n=64,raster_reversed=0,query_stages=2,turn_taking=0,grid=3,softmax=1"
try "sliding_window 16384 8 8 128" "$window,stages=3,compact_mask=1,producer_registers=56,raster_mib=4096" --set=left=1023
try "sliding_window 32768 4 4 128" "$window,stages=4,producer_registers=56,raster_mib=4096" --set=left=1023
try "sliding_window 65536 2 2 128" "$window,stages=3,producer_registers=32" --set=left=4095
try "dilated_window 16384 8 8 128" "$window,stages=3,producer_registers=32" --set=half=1024
try "dilated 16384 6 6 64" block_m=256,block_n=64,stages=4,rescale_threshold=0,compact_mask=1,raster_reversed=0,query_stages=2,turn_taking=0,grid=3,softmax=1,producer_registers=32,raster_mib=4096
try "$wide/dilated_4.mlir 32768 8 8 64" block_m=256,block_n=64,stages=6,raster_reversed=0,query_stages=2,turn_taking=1,grid=3,softmax=1,producer_registers=32,raster_mib=4096
try "longformer 32768 4 4 64" block_m=64,block_n=64,stages=2,min_blocks=3,raster_reversed=0,query_stages=2,turn_taking=0,grid=3,softmax=1,split_tiles=128,producer_registers=32,raster_mib=4096
try "$wide/two_ranges.mlir 8160 8 8 128" block_m=192,block_n=80,stages=3,rescale_threshold=0,raster_reversed=0,query_stages=2,turn_taking=0,grid=3,softmax=1,producer_registers=32 --set=first=1920 --set=last=1920
wait
finish
