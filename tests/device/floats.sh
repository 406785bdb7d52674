#!/usr/bin/env bash
# fp32, every patterns/*.mlir, forward and backward, with exact products and with operands rounded to
# tf32; head dims that are no multiples of 32, groups of heads, unequal lengths, one row; each against the definition. 65,536 keys, where exact results are
# within 1e-5 of it; 1,000 launches with the same bits.
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

# within <bound>: a heddle run behind it fails where an error of out, or of a gradient, is not below it.
# shellcheck disable=SC2016 # of the inner shell
within='"$@" --json | awk "/\"max_(d_[qkv]_)?error\"/ { gsub(/[^0-9.e+-]/, \"\", \$2); seen = 1; if (\$2 + 0 >= 1e-5) bad = 1 } END { exit bad || !seen }"'
long_shape="65536 65536 2 1 64"
long_rows=24

try_long() { # try_long <pattern file> <kind>
  local name command bound=", within 1e-5" judge=()
  name=$(basename "$1" .mlir)
  [ "$2 $name" != "backward bigbird_causal" ] || bound="" # of keys that all rows keep plain fp32 is some 5e-4 off
  name="fp32 $2 exact $name $long_shape$bound"
  begins "$name" "$1" --kind="$2" --head-dim=64 --dtype=fp32 --precision=exact || return
  run_command "$1" "$(inputs_of "$2 $long_shape")" --kind="$2" --precision=exact --make-operands --verify --rows=$long_rows
  [ -z "$bound" ] || judge=(bash -o pipefail -c "$within" within)
  check "$name" "$seconds" "${judge[@]}" "${command[@]}"
}

for kind in forward backward; do
  prepare_shape "$kind $long_shape" "$long_shape" --kind="$kind" --dtype=fp32
  for pattern in patterns/*.mlir; do
    ! takes_shape "$pattern" "$long_shape" || grep -q 'attn\.bias' "$pattern" || beside try_long "$pattern" "$kind" # a bias of so many rows has 8 GB
  done
done

repeat() { # repeat <pattern> <kind> <precision>
  local name command
  name="fp32 $2 $3 $1, 1,000 launches"
  begins "$name" "patterns/$1.mlir" --kind="$2" --head-dim=128 --dtype=fp32 --precision="$3" || return
  run_command "$1" "$(inputs_of "${2%_deterministic} ${shapes[1]}")" --kind="$2" --precision="$3" --make-operands --repeat=1000
  check "$name" "$seconds" "${command[@]}"
}
for pattern in causal dilated longformer longnet block_topk; do
  for precision in exact tf32; do
    beside repeat "$pattern" forward "$precision"
    beside repeat "$pattern" backward_deterministic "$precision"
  done
done
wait
finish
