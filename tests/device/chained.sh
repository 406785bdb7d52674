#!/usr/bin/env bash
# Unions over several row lattices in one kernel and as chained kernels, in one round and (1 MiB of carry) in many: each compared with the definition, every element
# of out and lse written, the same bits in every launch; also continuing a carry of the caller.
# shellcheck disable=SC2154,SC2317 # run_command leaves its command there; functions are called by beside
. tests/device/long/cases.bash
seconds=120
launches=5
cases=( # pattern batch seqlen_q seqlen_k heads kv_heads head_dim dtype arguments of run
  "../tests/data/device/window_dilated 1 1 1 3 3 64 bf16"
  "../tests/data/device/window_dilated 2 1000 1000 4 2 128 bf16"
  "../tests/data/device/window_dilated 1 4099 4099 4 4 64 fp16"
  "../tests/data/device/window_dilated 1 700 300 6 3 128 fp16 --set=left=20"
  "../tests/data/device/window_dilated 1 900 900 4 4 64 bf16 --split-keys=301"
  "../tests/data/device/three_lattices 1 2500 2500 6 2 64 bf16"
  "../tests/data/device/three_lattices 2 1111 1111 4 4 128 bf16 --set=left=0"
  "longnet 1 8192 8192 4 4 64 bf16"
  "longnet 1 3000 3000 6 2 128 bf16 --split-keys=1025"
  "longnet_tiny 2 777 777 3 3 64 fp16"
  "longvit_1k 1 2048 2048 16 16 64 bf16"
)
configs=( # of both skeletons; what the GPU or the pattern does not take is skipped
  "skeleton=sm90_forward,chained_mib=0"
  "skeleton=sm90_forward,chained_mib=32"
  "skeleton=sm90_forward,chained_mib=1"
  "skeleton=sm90_forward,chained_mib=32,block_m=128,block_n=64,stages=2,grid=1,split_last=1"
  "skeleton=sm90_forward,chained_mib=1,softmax=1,grid=3,split_last=0,block_m=128,block_n=64,stages=2"
  "skeleton=sm90_forward,chained_mib=32,block_m=128,block_n=64,stages=2,grid=3,split_last=0,split_tiles=64"
  "skeleton=portable_forward,chained_mib=0"
  "skeleton=portable_forward,chained_mib=32"
  "skeleton=portable_forward,chained_mib=1"
)

try() { # try <case> <configuration>
  local pattern batch seqlen seqlen_k heads kv_heads head_dim dtype more name inputs log code=0
  read -r pattern batch seqlen seqlen_k heads kv_heads head_dim dtype more <<<"$1"
  name="$(basename "$pattern") batch=$batch q=$seqlen k=$seqlen_k heads=$heads/$kv_heads d=$head_dim $dtype${more:+ $more} $2"
  begins "$name" "patterns/$pattern.mlir" --head-dim="$head_dim" --dtype="$dtype" --seqlen="$seqlen" --config="$2" || return
  inputs=$(mktemp -p "$HEDDLE_SCRATCH" --suffix=.safetensors)
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  prepare "make inputs for $name" "$seconds" "$HEDDLE" make-inputs --batch="$batch" --seqlen="$seqlen" --seqlen-k="$seqlen_k" \
    --heads="$heads" --kv-heads="$kv_heads" --head-dim="$head_dim" --dtype="$dtype" --seed=7 -o "$inputs"
  run_command "$pattern" "$inputs" --config="$2" --repeat="$launches" --verify --rows=5000 ${more:+"$more"}
  limited "$seconds" "$log" "${command[@]}" || code=$?
  if [ "$code" != 0 ] && grep -qE "needs .* lacks|anchored: anchor" "$log"; then
    echo "skip $name: $(grep -m1 -oE "needs .* lacks[^;]*|anchored: anchor[^(]*" "$log")"
  else
    report "$name" "$code" "$seconds" "$log"
  fi
  rm -f "$inputs"
}

for case in "${cases[@]}"; do
  for config in "${configs[@]}"; do beside try "$case" "$config"; done
done
wait
finish
