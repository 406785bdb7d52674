#!/usr/bin/env bash
# compute-sanitizer on small shapes: no access out of bounds, no race in shared memory, no wrong barrier.
# shellcheck disable=SC2317 # functions are called by beside
. tests/device/long/cases.bash
seconds=150
inputs=$HEDDLE_SCRATCH/inputs.safetensors wide=$HEDDLE_SCRATCH/wide.safetensors long=$HEDDLE_SCRATCH/long.safetensors mixed=$HEDDLE_SCRATCH/mixed.safetensors floats=$HEDDLE_SCRATCH/floats.safetensors bytes=$HEDDLE_SCRATCH/bytes.safetensors
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
configs=(
  ""
  "skeleton=sm90_forward,softmax=0,grid=3,split_last=0,block_m=128,block_n=64"
  "skeleton=sm90_forward,softmax=1,grid=1"
  "skeleton=sm90_forward,softmax=2,grid=3,split_last=0"
  "skeleton=sm90_forward,softmax=1,grid=0,block_m=128,block_n=64"
  "skeleton=sm90_forward,softmax=1,grid=3,split_last=0"
  "skeleton=sm90_forward,grid=1,split_last=1,split_tiles=0"
  "skeleton=portable_forward"
)
shared_parts=( # of longformer's global rows
  "skeleton=sm90_forward,grid=1,split_tiles=32,block_n=32"
  "skeleton=sm90_forward,grid=3,split_last=0,split_tiles=32,block_n=32,softmax=1"
)

# sanitize <tool> <pattern> <configuration> [inputs [precision]]
sanitize() {
  local tool=$1 pattern=$2 config=$3 name="$1 $2 ${3:-default}${5:+ $5}" data=${4:-$inputs} log code=0 command
  case "$config" in
    *split_tiles*) data=$long ;; # or nothing is long enough to be shared
    *softmax=1*) data=$wide ;;   # or no row is computed again
  esac
  [ "$data" != "$mixed" ] || name+=", mixed shape"
  [ "$data" != "$bytes" ] || name+=", e4m3"
  begins "$name" || return
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  run_command "$pattern" "$data" ${config:+--config="$config"} ${5:+--precision="$5"}
  limited "$seconds" "$log" "$sanitizer" --tool "$tool" --error-exitcode 99 "${command[@]}" || code=$?
  if [ "$code" != 0 ] && grep -qE "needs .* lacks|: $refusal" "$log"; then
    echo "skip $name: $(grep -m1 -oE "needs .* lacks|$refusal" "$log")"
  elif [ "$code" = 99 ] || { [ "$code" = 0 ] && ! grep -qE 'SUMMARY: 0 (errors|hazards displayed \(0 errors, 0 warnings)' "$log"; }; then
    fail "$name" "$(grep -E '=====.*(SUMMARY|Error|Warning|Invalid|Barrier)' "$log" | head -5 | cut -c1-300 | tr '\n' ' ')"
  else
    report "$name" "$code" "$seconds" "$log"
  fi
}

if [ -z "$sanitizer" ]; then
  ! begins compute-sanitizer || echo "skip compute-sanitizer: it is not installed"
  finish
fi
for file in "$inputs" "$wide"; do
  scale=1
  [ "$file" = "$inputs" ] || scale=10
  prepare "make inputs, scale $scale" 60 "$HEDDLE" make-inputs --seqlen=600 --heads=3 --head-dim=64 --scale=$scale -o "$file"
done
prepare "make inputs, long" 60 "$HEDDLE" make-inputs --seqlen=2200 --heads=2 --head-dim=64 -o "$long"
prepare "make inputs, mixed" 60 "$HEDDLE" make-inputs --seqlen=300 --seqlen-k=530 --heads=4 --kv-heads=2 --head-dim=72 --value-dim=40 \
  --dtype=fp16 -o "$mixed"
prepare "make inputs, floats" 60 "$HEDDLE" make-inputs --seqlen=300 --seqlen-k=530 --heads=4 --kv-heads=2 --head-dim=72 --value-dim=40 \
  --dtype=fp32 -o "$floats"
prepare "make inputs, e4m3" 60 "$HEDDLE" make-inputs --seqlen=600 --heads=2 --head-dim=128 --dtype=e4m3 -o "$bytes"
log=$(mktemp -p "$HEDDLE_SCRATCH")
run_command full "$inputs" --config=skeleton=portable_forward
limited "$seconds" "$log" "$sanitizer" --tool memcheck "${command[@]}" || true
if grep -q 'Device not supported' "$log"; then
  echo "skip compute-sanitizer: it does not work on this machine: $(grep -m1 'Device not supported' "$log")"
  finish
fi
for tool in memcheck racecheck synccheck; do
  for config in "${shared_parts[@]}"; do beside sanitize $tool longformer "$config"; done
  for pattern in full causal; do beside sanitize $tool "$pattern" turn_values=1,raster_mib=0 "$bytes"; done
  for pattern in random_blocks bigbird; do # lists, which the planning warp notes in shared memory
    for config in skeleton=sm90_forward skeleton=sm90_forward,block_n=32; do beside sanitize $tool "$pattern" "$config"; done
    beside sanitize $tool "$pattern" "" "$bytes" fast
  done
  for pattern in full sliding_window dilated longformer; do
    for config in "${configs[@]}"; do beside sanitize $tool "$pattern" "$config"; done
    beside sanitize $tool "$pattern" skeleton=sm90_forward "$mixed"
    for config in "" flush_tiles=1; do beside sanitize $tool "$pattern" "$config" "$bytes"; done
    beside sanitize $tool "$pattern" "" "$bytes" fast
    for precision in exact tf32; do beside sanitize $tool "$pattern" skeleton=sm90_forward "$floats" $precision; done
  done
done
finish
