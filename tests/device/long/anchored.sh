#!/usr/bin/env bash
# The anchored softmax where its guess of a row's maximum is wrong: wide scores, spikes, scores of -infinity, first
# rows of causal patterns with few keys; of e4m3, weights that it does not hold. Every row is compared; 20 launches must agree.
# shellcheck disable=SC2317 # functions are called by beside
. tests/device/long/cases.bash
seconds=60
dtype=bf16 precision= # of the cases that follow
window="--set left=300" # wider than a run of keys at -infinity, so that every row keeps another key

inputs_of() { echo "$HEDDLE_SCRATCH/$dtype-$1.safetensors"; }

# make <name> <make-inputs arguments...>
make() {
  local name=$1
  shift
  beside prepare "make inputs: $name" "$seconds" "$HEDDLE" make-inputs --dtype="$dtype" --seed=6 "$@" -o "$(inputs_of "$name")"
}

# verify <inputs> <pattern> <configuration>
verify() {
  local inputs=$1 pattern=$2 config=$3 name="$dtype${precision:+ $precision} $1 $2 $3" command
  local -a sizes=()
  begins "$name" "patterns/$pattern.mlir" --dtype="$dtype" ${precision:+--precision="$precision"} --head-dim="$([[ $inputs != *-d128 ]] && echo 64 || echo 128)" \
    --seqlen=700 --config="skeleton=sm90_forward,softmax=1,$config" || return
  # shellcheck disable=SC2206 # two words
  [ "$pattern" != sliding_window ] || sizes=($window)
  run_command "$pattern" "$(inputs_of "$inputs")" "${sizes[@]}" --config="skeleton=sm90_forward,softmax=1,$config" \
    ${precision:+--precision="$precision"} --repeat=20 --verify --rows=100000
  check "$name" "$seconds" "${command[@]}"
}

log=$(mktemp -p "$HEDDLE_SCRATCH")
if ! draw full sm90_forward "$log" --sample=1; then
  echo "skip anchored softmax: $(reason_in "$log")"
  finish
fi
# Spikes of 94 to 97 lie 83 to 90 above the largest of the first keys: fp32 holds most such weights, but not their sums
# with values, nor the factors that would make them small again.
# At d=128 the scale is no power of two: rounding it moves a score of 1e4 by more than lse may be off.
declare -A scores=( # over normal q and k
  [16-times-wider]="--scale=4"
  [100-times-wider]="--scale=10"
  [spikes-d64]="--spikes=24 --spike-value=1e4"
  [spikes-d128]="--spikes=24 --spike-value=5e3"
  [negative-spikes]="--spikes=24 --spike-value=-1e4"
  [spikes-of-94]="--spikes=60 --spike-value=94"
  [spikes-of-95]="--spikes=60 --spike-value=95"
  [spikes-of-96]="--spikes=60 --spike-value=96"
  [spikes-of-97]="--spikes=60 --spike-value=97"
  [minus-infinity-early]="--minus-inf=1-255"
  [minus-infinity-late]="--minus-inf=400-640"
  [wide-and-spikes]="--scale=10 --spikes=24 --spike-value=2e3"
)
heads=(--heads=3 --kv-heads=1)

# for_dim <head_dim> <command...>: the command with the name of each score that has this head dim, and its inputs' name.
for_dim() {
  local dim=$1 name
  shift
  for name in "${!scores[@]}"; do
    case $name in
      *-d"$dim") "$@" "$name" "$name" ;;
      *-d[0-9]*) ;;
      *) "$@" "$name" "$name-d$dim" ;;
    esac
  done
}
make_scores() { # make_scores <head_dim> <score> <inputs>
  # shellcheck disable=SC2086 # several arguments
  make "$3" --seqlen=700 "${heads[@]}" --head-dim="$1" ${scores[$2]}
}
verify_scores() { # verify_scores <pattern> <configuration> <score> <inputs>
  beside verify "$4" "$1" "$2"
}

for dim in 64 128; do for_dim $dim make_scores $dim; done
for length in 1 65 200; do make "first-rows-$length" --seqlen=$length "${heads[@]}" --head-dim=64 --scale=10; done
make no-first-tiles --seqlen=700 "${heads[@]}" --head-dim=64 --minus-inf=0-255
wait
for pattern in full causal sliding_window; do
  for config in grid=0 grid=1 grid=3,block_m=128,block_n=64; do
    for_dim 64 verify_scores $pattern $config
    for length in 1 65 200; do beside verify first-rows-$length $pattern $config; done
  done
  for_dim 128 verify_scores $pattern grid=1
done
beside verify no-first-tiles full grid=1
wait

dtype=e4m3
for score in "${!scores[@]}"; do [[ ${scores[$score]} != *--minus-inf* ]] || unset "scores[$score]"; done # which e4m3 has not
for dim in 64 128; do for_dim $dim make_scores $dim; done
wait
for precision in "" fast; do
  for pattern in full causal sliding_window; do
    for config in grid=1 grid=3,block_m=128,block_n=64,flush_tiles=3; do
      for dim in 64 128; do for_dim $dim verify_scores $pattern $config; done
    done
  done
done
finish
