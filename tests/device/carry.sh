#!/usr/bin/env bash
# The carry: two launches over a split of the keys, fp32 in between, against one launch and the definition; every row
# is compared. The cuts leave rows without a key in the first part, in the second and in both. Then fp32 results of
# rows with one key, which must be v itself.
# shellcheck disable=SC2154,SC2317 # run_command leaves its command there; functions are called by beside
. tests/device/long/cases.bash
seconds=60
cases=( # pattern batch seqlen_q seqlen_k heads kv_heads head_dim dtype cut sizes
  "full 1 257 257 2 2 64 bf16 100"
  "full 2 130 1001 6 2 128 fp16 333"
  "full 1 65 300 4 1 64 bf16 0"
  "full 1 65 300 4 1 64 bf16 300"
  "causal 1 513 513 6 3 64 bf16 257"
  "causal 2 300 1111 4 2 128 bf16 64"
  "causal 1 700 200 3 3 128 fp16 199"
  "sliding_window 1 1000 700 6 2 64 bf16 300 left=50"
  "sliding_window 1 1000 1000 4 4 128 fp16 512 left=127"
  "dilated 1 1500 1500 6 3 64 bf16 701"
  "dilated_window 1 900 900 4 2 128 bf16 450"
  "longformer 1 600 600 3 3 64 bf16 301"
  "longnet 1 1100 1100 6 2 128 bf16 513"
  "block_window 1 700 700 4 2 64 bf16 201 radius=1"
  "random_blocks 1 700 700 4 2 128 bf16 320 count=2"
)
bytes=( # of e4m3, for a GPU with wgmma
  "full 1 257 257 2 2 64 e4m3 100"
  "causal 2 300 1111 4 2 128 e4m3 64"
  "causal 1 2500 2500 2 2 128 e4m3 1300"
  "dilated 1 1500 1500 6 3 64 e4m3 701"
  "random_blocks 1 700 700 4 2 128 e4m3 320 count=2"
)
# run_case <name> <text that must be printed> <make-inputs arguments, --, run arguments>
run_case() {
  local name=$1 wanted=$2 inputs log code=0 command word
  local -a make=() run=() kernel=()
  shift 2
  while [ "$1" != -- ]; do make+=("$1"); shift; done
  shift
  run=("$@")
  for word in "${make[@]}" "${run[@]}"; do
    case $word in --head-dim=* | --dtype=* | --precision=* | --seqlen=* | --out-dtype=* | --config=*) kernel+=("$word") ;; esac
  done
  begins "$name" "${run[0]}" "${kernel[@]}" || return
  inputs=$(mktemp -p "$HEDDLE_SCRATCH" --suffix=.safetensors)
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  prepare "make inputs for $name" "$seconds" "$HEDDLE" make-inputs "${make[@]}" --seed=3 -o "$inputs"
  run_command "${run[0]}" "$inputs" "${run[@]:1}" --verify --rows=100000 --json
  limited "$seconds" "$log" "${command[@]}" || code=$?
  if [ "$code" = 0 ] && ! grep -qE -- "$wanted" "$log"; then
    fail "$name" "'$wanted' is not in: $(grep -E 'error|difference' "$log" | tr -s ' \n' ' ')"
  else
    report "$name" "$code" "$seconds" "$log"
  fi
  rm -f "$inputs"
}

split() { # split <config> <precision> <row of cases>
  local pattern batch seqlen seqlen_k heads kv_heads head_dim dtype cut sizes
  local with=${1:+ $1}${2:+, $2}
  read -r pattern batch seqlen seqlen_k heads kv_heads head_dim dtype cut sizes <<<"$3"
  beside run_case "split $pattern batch=$batch q=$seqlen k=$seqlen_k heads=$heads/$kv_heads d=$head_dim $dtype at $cut${sizes:+ $sizes}$with" \
    '"out_difference"' --batch="$batch" --seqlen="$seqlen" --seqlen-k="$seqlen_k" --heads="$heads" \
    --kv-heads="$kv_heads" --head-dim="$head_dim" --dtype="$dtype" -- "patterns/$pattern.mlir" --split-keys="$cut" \
    ${sizes:+--set "$sizes"} ${1:+--config="$1"} ${2:+--precision="$2"}
}

for row in "${bytes[@]}"; do
  split "" exact "$row"
  split "" fast "$row"
done
for config in "" skeleton=portable_forward; do
  with=${config:+ $config}
  for row in "${cases[@]}"; do
    split "$config" "" "$row"
  done
  for shape in "64 bf16" "128 fp16"; do
    read -r head_dim dtype <<<"$shape"
    one() { # one <case> <run arguments...>
      local name=$1
      shift
      # 0.0 in JSON is exactly 0.
      beside run_case "one key gives v$name, d=$head_dim $dtype$with" '"max_error": 0\.0,' --batch=2 --seqlen=333 --heads=4 --kv-heads=2 \
        --head-dim="$head_dim" --dtype="$dtype" -- patterns/sliding_window.mlir --set left=0 --out-dtype=fp32 \
        ${config:+--config="$config"} "$@"
    }
    one ""
    one " at a scale of 3" --scale=3
    one " before or behind the cut" --split-keys=100
  done
done
wait
finish
