#!/usr/bin/env bash
# 20 random feasible configurations of each skeleton, spread over patterns, dtypes and head dims: each verifies and
# gives the same bits 200 times. One that the compiler refuses for spills or lost speed is skipped and another drawn.
# HEDDLE_DEVICE_SEED draws others.
# shellcheck disable=SC2317 # functions are called by beside
. tests/device/long/cases.bash
first_seed=${HEDDLE_DEVICE_SEED:-7}
launches=200 seconds=60 drawn=100
problems=( # seed pattern seqlen_q seqlen_k heads kv_heads head_dim dtype configurations
  "1 full 2000 4000 6 2 64 bf16 4"
  "2 causal 4000 4000 6 6 128 bf16 4"
  "3 sliding_window 4000 4000 6 3 64 fp16 3"
  "4 dilated 4100 4100 6 6 128 fp16 3"
  "5 longformer 4000 4000 6 2 64 bf16 3"
  "6 longnet 4100 4100 6 6 128 bf16 3"
)

inputs_of() { echo "$HEDDLE_SCRATCH/$1.safetensors"; }

# sweep <skeleton> <problem>: configurations one after the other until enough have run.
sweep() {
  local skeleton=$1 problem=$2 seed pattern head_dim dtype wanted ran=0 list name config log code command
  read -r seed pattern _ _ _ _ head_dim dtype wanted <<<"$problem"
  begins "$skeleton $pattern d=$head_dim $dtype" || return
  list=$HEDDLE_SCRATCH/$skeleton.$pattern.configs
  if ! draw "$pattern" "$skeleton" "$list" --head-dim="$head_dim" --dtype="$dtype" --sample="$drawn" --seed=$((first_seed + seed)); then
    echo "skip $skeleton $pattern d=$head_dim $dtype: $(reason_in "$list")"
    return
  fi
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  while [ "$ran" -lt "$wanted" ] && read -r config; do
    name="$pattern d=$head_dim $dtype $config" code=0
    run_command "$pattern" "$(inputs_of "$pattern")" --config="$config" --repeat="$launches" --verify
    limited "$seconds" "$log" "${command[@]}" || code=$?
    if [ "$code" = 1 ] && grep -qE ": $refusal" "$log"; then
      echo "skip $name: $(grep -m1 -oE "$refusal" "$log")"
      continue
    fi
    report "$name" "$code" "$seconds" "$log"
    ran=$((ran + 1))
  done <"$list"
  [ "$ran" -ge "$wanted" ] || fail "$skeleton $pattern d=$head_dim $dtype" "$ran of $wanted configurations could run"
}

for problem in "${problems[@]}"; do
  read -r _ pattern seqlen seqlen_k heads kv_heads head_dim dtype wanted <<<"$problem"
  beside prepare "make inputs for $pattern" "$seconds" "$HEDDLE" make-inputs --seqlen="$seqlen" --seqlen-k="$seqlen_k" \
    --heads="$heads" --kv-heads="$kv_heads" --head-dim="$head_dim" --dtype="$dtype" --seed=4 -o "$(inputs_of "$pattern")"
done
wait
for skeleton in sm90_forward portable_forward; do
  for problem in "${problems[@]}"; do
    beside sweep "$skeleton" "$problem"
  done
done
finish
