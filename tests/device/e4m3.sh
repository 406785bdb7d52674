#!/usr/bin/env bash
# q, k and v of e4m3 with a scale for each head, and for each block of rows of q and k, every patterns/*.mlir, against the definition: head dims, groups of heads, unequal
# lengths, one row; rows longer than the tensor cores sum well; configurations, every type of out. 128k keys whose sum is known, one that outweighs the
# others, NaN that only rows that keep it see (e4m3_rows.py), 1,000 launches with the same bits; all this of fast weights, too. Needs a GPU with wgmma.
# shellcheck disable=SC2154 # run_command leaves its command there
. tests/device/long/cases.bash
seconds=90

shapes=( # seqlen_q seqlen_k heads kv_heads head_dim
  "257 257 4 2 64"
  "333 500 6 2 128"
  "1 70 2 1 48"
)
long_shape="260 16384 2 1 128"

try() { # try <pattern file> <shape> [config] [type of out]
  local name command
  name="e4m3 $(basename "$1" .mlir) $2${3:+ $3}${4:+ out=$4}${precision:+, $precision}"
  read -r _ _ _ _ head_dim <<<"$2"
  begins "$name" "$1" --head-dim="$head_dim" --dtype=e4m3 ${3:+--config="$3"} ${4:+--out-dtype="$4"} ${precision:+--precision="$precision"} || return
  run_command "$1" "$(inputs_of "$2")" ${3:+--config="$3"} ${4:+--out-dtype="$4"} ${precision:+--precision="$precision"} --make-operands --verify
  check "$name" "$seconds" "${command[@]}"
}

try_blocks() { # try_blocks <rows that share a scale> <pattern file> <shape> [config]
  local name command
  name="e4m3 $(basename "$2" .mlir) $3${4:+ $4}, scales of $1 rows${precision:+, $precision}"
  read -r _ _ _ _ head_dim <<<"$3"
  begins "$name" "$2" --head-dim="$head_dim" --dtype=e4m3 --scale-rows="$1" ${4:+--config="$4"} ${precision:+--precision="$precision"} || return
  run_command "$2" "$(inputs_of "$3, scales of $1 rows")" ${4:+--config="$4"} ${precision:+--precision="$precision"} --make-operands --verify
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
# Values turned over once, or tile by tile; totals in the workspace, also of every tile.
for pattern in full causal; do
  for config in turn_values=0 turn_values=1 totals=1,query_stages=2 totals=1,flush_tiles=1 turn_values=1,totals=1,grid=1,split_last=0; do
    beside try "patterns/$pattern.mlir" "$long_shape" "$config"
  done
  for shape in "${shapes[@]}"; do beside try "patterns/$pattern.mlir" "$shape" turn_values=1; done
done
for out in fp16 fp32; do
  for shape in "${shapes[@]}" "$long_shape"; do beside try patterns/causal.mlir "$shape" "" "$out"; done
done

# Scales of blocks of rows of q and k, with tiles of keys that are shorter, longer and across them.
for rows in 64 128; do
  for shape in "${shapes[@]}" "$long_shape"; do prepare_shape "$shape, scales of $rows rows" "$shape" --dtype=e4m3 --scale-rows="$rows"; done
  for pattern in patterns/*.mlir; do
    for shape in "${shapes[@]}"; do
      ! takes_shape "$pattern" "$shape" || beside try_blocks "$rows" "$pattern" "$shape"
    done
  done
  for config in "" block_m=64,turn_taking=0 block_m=128,block_n=64,stages=4 block_m=128,block_n=128,stages=2,flush_tiles=18 flush_tiles=1; do
    beside try_blocks "$rows" patterns/full.mlir "$long_shape" "$config"
  done
done

# Values that lie key-major, of every pattern whose keys have no stride.
key_major() { # key_major <pattern file> <shape> [config] [rows that share a scale]
  local name command
  name="e4m3 $(basename "$1" .mlir) $2${3:+ $3}, v key-major${4:+, scales of $4 rows}${precision:+, $precision}"
  read -r _ _ _ _ head_dim <<<"$2"
  begins "$name" "$1" --kind=forward_v_key_major --head-dim="$head_dim" --dtype=e4m3 ${3:+--config="$3"} ${4:+--scale-rows="$4"} ${precision:+--precision="$precision"} || return
  run_command "$1" "$(inputs_of "$2, v key-major${4:+, scales of $4 rows}")" --kind=forward_v_key_major ${3:+--config="$3"} ${precision:+--precision="$precision"} --make-operands --verify
  check "$name" "$seconds" "${command[@]}"
}
for shape in "${shapes[@]}" "$long_shape"; do
  prepare_shape "$shape, v key-major" "$shape" --kind=forward_v_key_major --dtype=e4m3
  prepare_shape "$shape, v key-major, scales of 64 rows" "$shape" --kind=forward_v_key_major --dtype=e4m3 --scale-rows=64
done
for pattern in causal full alibi bigbird block_topk document longformer prefix_lm relative_bias sink sliding_window softcap streaming; do
  for shape in "${shapes[@]}"; do
    ! takes_shape "patterns/$pattern.mlir" "$shape" || beside key_major "patterns/$pattern.mlir" "$shape"
  done
  ! takes_shape "patterns/$pattern.mlir" "${shapes[1]}" || beside key_major "patterns/$pattern.mlir" "${shapes[1]}" "" 64
done
for config in "" block_m=64,turn_taking=0 block_m=128,block_n=64,stages=4 block_m=128,block_n=32,stages=4 flush_tiles=1 rescale_threshold=0; do
  beside key_major patterns/full.mlir "$long_shape" "$config"
done

result_of() { # result_of <case> <keys> <pattern> [config]: leaves the file in `result`
  local file
  file=$(mktemp -p "$HEDDLE_SCRATCH")
  prepare "inputs of $1" 60 python3 tests/device/e4m3_rows.py make "$1" "$2" "$file"
  run_command "$3" "$file" --out-dtype=fp32 ${4:+--config="$4"} ${precision:+--precision="$precision"}
  prepare "e4m3 $1" "$seconds" "${command[@]}"
  result=${command[4]#--output=}
}

# known <case> <keys> <pattern> [other case [config]]: what e4m3_rows.py says of it, beside the other result.
known() {
  local name="e4m3 $1 of $2 keys${precision:+, $precision}" result others=()
  begins "$name" "patterns/$3.mlir" --head-dim=128 --dtype=e4m3 --out-dtype=fp32 ${precision:+--precision="$precision"} || return
  if [ $# -gt 3 ]; then
    result_of "$4" "$2" "$3" "${5:-}"
    others=("$result")
  fi
  result_of "$1" "$2" "$3"
  check "$name" 60 python3 tests/device/e4m3_rows.py check "$1" "$2" "$result" "${others[@]}"
}
for case in ones whole late; do beside known $case 131072 full; done
beside known early 131072 full early flush_tiles=1
for case in nan_q nan_k nan_v; do beside known $case 1100 causal finite; done

repeat() { # repeat <pattern> <shape> [kind]
  local name="e4m3 $1, 1,000 launches${3:+, $3}${precision:+, $precision}" command
  begins "$name" "patterns/$1.mlir" ${3:+--kind="$3"} --head-dim=128 --dtype=e4m3 ${precision:+--precision="$precision"} || return
  run_command "$1" "$(inputs_of "$2${3:+, v key-major}")" ${3:+--kind="$3"} ${precision:+--precision="$precision"} --make-operands --repeat=1000
  check "$name" "$seconds" "${command[@]}"
}
for pattern in full sliding_window causal dilated longformer longnet block_topk random_blocks; do beside repeat "$pattern" "${shapes[1]}"; done
for pattern in causal longformer block_topk; do beside repeat "$pattern" "${shapes[1]}" forward_v_key_major; done

# Weights from bits.
precision=fast
for pattern in patterns/*.mlir; do
  for shape in "${shapes[@]}"; do
    ! takes_shape "$pattern" "$shape" || beside try "$pattern" "$shape"
  done
done
for config in "" block_m=64,turn_taking=0 flush_tiles=1 rescale_threshold=0 softmax=0 turn_values=1 totals=1,query_stages=2; do
  beside try patterns/full.mlir "$long_shape" "$config"
  beside try patterns/causal.mlir "$long_shape" "$config"
done
for pattern in causal sliding_window softcap; do beside key_major "patterns/$pattern.mlir" "${shapes[1]}"; done
for pattern in full causal dilated longnet softcap block_topk; do
  for rows in 64 128; do beside try_blocks "$rows" "patterns/$pattern.mlir" "${shapes[1]}"; done
done
for case in ones whole late; do beside known $case 131072 full; done
for case in nan_q nan_k nan_v; do beside known $case 1100 causal finite; done
for pattern in full causal random_blocks; do beside repeat "$pattern" "${shapes[1]}"; done
precision=

# Alone and behind the kernel that quantises, beside bf16, in one run.
name="e4m3, bench --fp8"
if begins "$name" patterns/causal.mlir --head-dim=128 --dtype=e4m3; then
  check "$name" "$seconds" "$HEDDLE" bench causal --fp8 --seqlen=4096 --heads=8 --head-dim=128 --reps=5
fi
name="e4m3, bench --fp8, fast"
if begins "$name" patterns/causal.mlir --head-dim=128 --dtype=e4m3 --precision=fast; then
  check "$name" "$seconds" "$HEDDLE" bench causal --fp8 --precision=fast --seqlen=4096 --heads=8 --head-dim=128 --reps=5
fi
finish
