#!/usr/bin/env bash
# fp32, every patterns/*.mlir, forward and backward, with exact products and with operands rounded to
# tf32; head dims that are no multiples of 32, groups of heads, unequal lengths, one row; each against the definition.
# shellcheck disable=SC2154 # run_command leaves its command there
. tests/device/long/cases.bash
seconds=90

shapes=( # seqlen_q seqlen_k heads kv_heads head_dim
  "257 257 4 2 64"
  "333 500 6 2 128"
  "1 70 2 1 40"
)

try() { # try <pattern file> <kind> <precision> <shape>
  local name command
  name="fp32 $2 $3 $(basename "$1" .mlir) $4"
  read -r _ _ _ _ head_dim <<<"$4"
  begins "$name" "$1" --kind="$2" --head-dim="$head_dim" --dtype=fp32 --precision="$3" || return
  run_command "$1" "$(inputs_of "$2 $4")" --kind="$2" --precision="$3" --make-operands --verify
  check "$name" "$seconds" "${command[@]}"
}

for kind in forward backward; do
  for shape in "${shapes[@]}"; do
    prepare_shape "$kind $shape" "$shape" --kind="$kind" --dtype=fp32
  done
done
for pattern in patterns/*.mlir; do
  for kind in forward backward; do
    for precision in exact tf32; do
      for shape in "${shapes[@]}"; do
        ! takes_shape "$pattern" "$shape" || beside try "$pattern" "$kind" "$precision" "$shape"
      done
    done
  done
done
wait
finish
