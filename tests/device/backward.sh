#!/usr/bin/env bash
# Gradients of every patterns/*.mlir by kernels of kind backward, against their definition in fp64: short, odd and unequal
# lengths, one key, head groups, both element types, head dims that are no multiples of 64; a gradient of lse; every way
# to the query gradient; all patterns by the default and by the portable skeleton. out and lse come from the CPU. What no
# kernel serves yet is skipped with its reason.
# shellcheck disable=SC2154,SC2317 # run_command leaves its command there; functions are called by beside
. tests/device/long/cases.bash
seconds=90
unserved='spills: ptxas'
portable=skeleton=portable_backward
shapes=( # batch seqlen_q seqlen_k heads kv_heads head_dim dtype
  "1 1 1 3 3 64 bf16"
  "2 257 257 4 4 64 bf16"
  "1 700 1111 3 3 64 fp16"
  "1 1300 400 2 2 128 bf16"
)

kind=backward # of inputs and calls

make_inputs() { # make_inputs <shape> [option...]
  local batch seqlen seqlen_k heads kv_heads head_dim dtype shape=$1
  shift
  read -r batch seqlen seqlen_k heads kv_heads head_dim dtype <<<"$shape"
  prepare "make inputs $shape" "$seconds" "$HEDDLE" make-inputs --kind="$kind" --batch="$batch" --seqlen="$seqlen" \
    --seqlen-k="$seqlen_k" --heads="$heads" --kv-heads="$kv_heads" --head-dim="$head_dim" --dtype="$dtype" --seed=1 \
    "$@" -o "$(inputs_of "$kind$shape$*")"
}

begins_kernel() { # begins_kernel <case> <what verify gets>
  local seqlen head_dim dtype value_dim gradients=()
  read -r _ seqlen _ _ _ head_dim dtype _ <<<"${3%%--*}"
  value_dim=$head_dim
  [[ $3 != *--value-dim=* ]] || value_dim=${3##*--value-dim=}
  case ${5:-} in --gradients-of=*) gradients=("$5") ;; esac
  begins "$1" "$2" --kind="$kind" --head-dim="$head_dim" --value-dim="$value_dim" --dtype="$dtype" --seqlen="$seqlen" \
    ${4:+--config="$4"} "${gradients[@]}"
}

verify() { # verify <pattern file> <shape, options of its inputs> [configuration] [option]
  local name log code=0 command
  name="$kind $(basename "$1" .mlir) $2${3:+ $3}${4:+ $4}"
  if grep -qE 'attn\.documents .* at %[a-z_]+ ' "$1" && [ "$(cut -d' ' -f2 <<<"$2")" != "$(cut -d' ' -f3 <<<"$2")" ]; then
    ! begins "$name" || echo "skip $name: one tensor says where documents of queries and keys end"
    return
  fi
  begins_kernel "$name" "$@" || return
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  run_command "$1" "$(inputs_of "$kind$2")" --kind="$kind" --make-operands ${3:+--config="$3"} ${4:+"$4"} --verify
  limited "$seconds" "$log" "${command[@]}" || code=$?
  if [ "$code" != 0 ] && grep -qE "$unserved" "$log"; then
    echo "skip $name: $(grep -oE "$unserved" "$log" | head -1)"
  else
    report "$name" "$code" "$seconds" "$log"
  fi
}

for shape in "${shapes[@]}"; do beside make_inputs "$shape"; done
grouped="2 333 333 6 2 64 bf16" wide="1 513 513 2 1 96 fp16" narrow="1 100 130 2 2 24 bf16"
above=("1 333 400 4 2 256 bf16" "1 257 257 2 2 192 fp16" "2 130 200 2 2 136 bf16") # two consumers share keys
for shape in "$grouped" "$wide" "$narrow" "${above[@]}"; do beside make_inputs "$shape"; done
beside make_inputs "${above[0]}" --value-dim=64
beside make_inputs "$grouped" --with=d_lse
wait
for pattern in patterns/*.mlir; do
  for shape in "${shapes[@]}"; do
    for config in "" "$portable"; do beside verify "$pattern" "$shape" "$config"; done
  done
done
for named in bias:bias relative_bias:table softcap:cap sink:sinks; do
  for shape in "${shapes[@]}" "$grouped" "$wide"; do
    for config in "" "$portable"; do beside verify "patterns/${named%:*}.mlir" "$shape" "$config" "--gradients-of=${named#*:}"; done
  done
done
for pattern in causal sliding_window bigbird alibi softcap longnet sink; do
  for shape in "$grouped" "$wide" "$narrow" "$grouped--with=d_lse"; do
    for config in "" "$portable"; do beside verify "patterns/$pattern.mlir" "$shape" "$config"; done
  done
done
for config in block_m=16 block_m=32,stages=3 block_n=64,warps=4 block_m=32,warps=4 walk_in_memory=1 query_walk=1; do
  for pattern in full causal dilated longnet longnet_base longvit_1k hierarchical; do beside verify "patterns/$pattern.mlir" "${shapes[1]}" "$portable,$config"; done
done
for pattern in full causal sliding_window bigbird longnet softcap; do
  for shape in "${above[@]}" "${above[0]}--value-dim=64"; do
    for config in "" reduce=2 "$portable"; do beside verify "patterns/$pattern.mlir" "$shape" "$config"; done
  done
done
configs="block_m=64,reduce=0 block_m=64,reduce=1 block_m=128,reduce=0 block_m=64,reduce=1,stages=3 block_m=64,block_n=64
  block_m=64,block_n=64,reduce=2 block_m=128,reduce=2 block_m=64,reduce=2,stages=3"
for config in $configs; do
  for pattern in full causal; do beside verify "patterns/$pattern.mlir" "$grouped" "$config"; done
  for pattern in dilated longnet; do beside verify "patterns/$pattern.mlir" "${shapes[1]}" "$config"; done
done
global="1 4500 4500 2 1 64 bf16" # keys and queries that everything sees: several blocks share their tiles
beside make_inputs "$global"
wait
for pattern in longformer bigbird block_global; do
  for config in "" long_split=4 reduce=2,long_split=8,block_m=64; do beside verify "patterns/$pattern.mlir" "$global" "$config"; done
done
wait
for pattern in dilated dilated_base block_dilated_heads longvit_1k; do # heads that share keys, with rates of their own
  for config in "" "$portable"; do beside verify "patterns/$pattern.mlir" "$grouped" "$config"; done
done
kind=backward_deterministic
for shape in "$grouped" "${shapes[1]}"; do beside make_inputs "$shape"; done
wait
for pattern in causal longnet bigbird dilated; do
  for shape in "$grouped" "${shapes[1]}"; do
    for config in "" "$portable"; do beside verify "patterns/$pattern.mlir" "$shape" "$config"; done
  done
done
long="1 2900 3300 4 2 64 bf16" # sums added in order by many blocks at once
beside make_inputs "$long"
wait
for pattern in full causal sliding_window dilated_window; do
  for order in 0 1; do beside verify "patterns/$pattern.mlir" "$long" "reduce=3,raster_reversed=$order" --repeat=20; done
done
for order in 0 1; do beside verify patterns/document.mlir "${shapes[1]}" "reduce=3,raster_reversed=$order" --repeat=20; done
wait
kind=backward_accumulate # into fp32 that is not zero, by every way to the query gradient
for shape in "$grouped" "$narrow" "${shapes[1]}"; do beside make_inputs "$shape"; done
wait
for pattern in causal softcap longnet; do
  for shape in "$grouped" "$narrow"; do
    for config in "" "$portable" reduce=0 reduce=2; do beside verify "patterns/$pattern.mlir" "$shape" "$config"; done
  done
done
for config in reduce=1 "$portable,block_m=32"; do beside verify patterns/full.mlir "$grouped" "$config"; done
for config in "" "$portable"; do beside verify patterns/dilated.mlir "${shapes[1]}" "$config"; done
wait
kind=backward_accumulate_keys # d_q is written beside them
for shape in "$grouped" "$narrow"; do beside make_inputs "$shape"; done
wait
for pattern in causal softcap longnet; do
  for shape in "$grouped" "$narrow"; do
    for config in "" "$portable" reduce=0 reduce=2; do beside verify "patterns/$pattern.mlir" "$shape" "$config"; done
  done
done
wait
finish
