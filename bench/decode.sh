#!/usr/bin/env bash
# decode.sh [option of heddle bench...]: calls over caches in pages on this machine's GPU, beside a read of its memory, without PyTorch.
# $HEDDLE is the program, build/bin/heddle unless it is given. bench/serving.py has more cases, and peers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
heddle=${HEDDLE:-build/bin/heddle}

bench() { "$heddle" bench "$@" --decode "${more[@]}"; }

more=("$@")
for page_size in 16 256 1; do
  bench causal --batch=32 --heads=32 --kv-heads=8 --lengths=4k --page-size=$page_size
done
bench causal --batch=128 --heads=64 --kv-heads=8 --lengths=512-32k
bench causal --batch=1 --heads=32 --kv-heads=4 --lengths=1k,16k
bench causal --batch=1 --heads=32 --kv-heads=8 --lengths=1M --rows=4
bench full --batch=16 --heads=32 --kv-heads=8 --lengths=13k --keys=lists
bench causal --batch=32 --heads=32 --kv-heads=8 --lengths=4k --keys=rows
bench streaming --batch=16 --heads=32 --kv-heads=8 --lengths=64k --set first=4 --set left=4095
bench causal --batch=8 --heads=32 --kv-heads=8 --lengths=8k --seqlen=64
