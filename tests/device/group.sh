#!/usr/bin/env bash
# Calls over two GPUs and NCCL, a process for each (HEDDLE_RANKS=4: over four, where teams of two exchange heads and share the
# sequence between them, as ulysses2+gather and ulysses2+ring): results against one call on one GPU, forward and gradients, odd lengths, the
# same bits in equal runs; ranks that come with something else; and ranks that are killed at drawn calls, HEDDLE_RANK_KILLS of
# them (20), where those that are left must have an answer and go on: five to a case, 25 where there are more than 100.
# Cases run side by side, each says what took how long; kernels are compiled once for all. heddle-ranks lies beside the binary: ./dev build --preset static heddle heddle-ranks
# shellcheck disable=SC2317 # case by case
. tests/device/long/cases.bash
ranks=${HEDDLE_PROGRAMS:-$(dirname "$HEDDLE")}/heddle-ranks
count=${HEDDLE_RANKS:-2} kills=${HEDDLE_RANK_KILLS:-20}
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0} # multicast of NVLink is not what is tried

if [ -z "${HEDDLE_DEVICE_LIST:-}" ]; then
  if [ ! -x "$ranks" ]; then
    echo "skip group: no heddle-ranks in $(dirname "$ranks")"
    exit 0
  fi
  if ! said=$("$ranks" results --only=nothing 2>&1); then
    echo "skip group: ${said#skip: }"
    exit 0
  fi
fi

# attempt <case> <argument of heddle-ranks...>: what took how long stands behind it.
attempt() {
  local name=$1 said
  shift
  said=$(mktemp -p "$HEDDLE_SCRATCH")
  # shellcheck disable=SC2016 # of the inner shell
  check_says "ok " "$name" "$limit" bash -o pipefail -c 'said=$1; shift; "$@" 2>&1 | tee "$said"' _ "$said" "$ranks" "$@" --ranks="$count" \
    --folder="$HEDDLE_SCRATCH/ranks" >"$said.of"
  cat "$said.of" <(grep -E '^ +[0-9.]+ s: ' "$said" || true)
}

# try <case> <argument of heddle-ranks...>: beside other cases, whose processes share the GPUs, when there is a place.
try() {
  while [ "$(jobs -rp | wc -l)" -ge "$places" ]; do wait -n || true; done
  begins "$1" || return 0
  attempt "$@" &
}

places=6 limit=150
for pattern in causal sliding_window longnet_base dilated longformer; do
  try "$pattern over $count ranks" results --only="$pattern "
done
try "ranks that come with something else" joins
wait # kernels are compiled, and limits of kills are measured beside other kills
# A lane takes four processors, for two ranks and those that follow them.
places=$(($(nproc) / 4)) each=5
[ "$places" -ge 2 ] || places=2
[ "$places" -le 8 ] || places=8
[ "$kills" -le 100 ] || each=25 limit=300
seed=${HEDDLE_RANK_SEED:-1} # of the first ones
for ((first = 1; first <= kills; first += each)); do
  last=$((first + each - 1 < kills ? first + each - 1 : kills))
  try "kills $first to $last of seed $seed" kills --count=$((last - first + 1)) --seed=$((seed + first - 1))
done
finish
