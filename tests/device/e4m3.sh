#!/usr/bin/env bash
# q, k and v of e4m3 with a scale for each head, every patterns/*.mlir, against the definition: head dims, groups of heads, unequal
# lengths, one row; rows longer than the tensor cores sum well; configurations. Needs a GPU with wgmma.
# shellcheck disable=SC2154 # run_command leaves its command there
. tests/device/long/cases.bash
seconds=90

shapes=( # seqlen_q seqlen_k heads kv_heads head_dim
  "257 257 4 2 64"
  "333 500 6 2 128"
  "1 70 2 1 48"
)
long_shape="260 16384 2 1 128"

try() { # try <pattern file> <shape> [config]
  local name command
  name="e4m3 $(basename "$1" .mlir) $2${3:+ $3}"
  read -r _ _ _ _ head_dim <<<"$2"
  begins "$name" "$1" --head-dim="$head_dim" --dtype=e4m3 ${3:+--config="$3"} || return
  run_command "$1" "$(inputs_of "$2")" ${3:+--config="$3"} --make-operands --verify
  check "$name" "$seconds" "${command[@]}"
}

for shape in "${shapes[@]}" "$long_shape"; do prepare_shape "$shape" "$shape" --dtype=e4m3; done
for pattern in patterns/*.mlir; do
  for shape in "${shapes[@]}"; do
    ! takes_shape "$pattern" "$shape" || beside try "$pattern" "$shape"
  done
done
for config in "" block_m=64,turn_taking=0 block_m=128,block_n=64,stages=4 flush_tiles=1 rescale_threshold=0 rescale_threshold=8; do
  beside try patterns/full.mlir "$long_shape" "$config"
done
wait
finish
