#!/usr/bin/env bash
# Positions of query 0 that a call gives, and that stand at the end of the keys: amid the keys, before all of them, behind all, at
# multiples of rates and blocks and beside them; both skeletons. Rows without keys are written too.
. tests/device/long/cases.bash
patterns=(causal sliding_window dilated dilated_window longformer longnet block_window)
sm90=skeleton=sm90_forward portable=skeleton=portable_forward

# copy <pattern> <where query 0 stands>: a copy of the pattern that says so.
copy_of() { echo "$HEDDLE_SCRATCH/$1.$2.mlir"; }
copy() {
  sed -E "0,/\) (q_origin\([a-z]+\) )?\{\$/s//) q_origin($2) {/" "patterns/$1.mlir" >"$(copy_of "$1" "$2")"
  grep -q "q_origin($2)" "$(copy_of "$1" "$2")" || fail "copy of $1" "it has no q_origin($2)"
}

for pattern in "${patterns[@]}"; do
  for where in given end; do copy "$pattern" "$where"; done
  given=$(copy_of "$pattern" given) end=$(copy_of "$pattern" end)
  for config in $sm90 $sm90,grid=1,softmax=0 $portable; do
    for origin in 0 512 701 -100 5000; do
      beside check_repeated "$given 300/1100 4 2 64 $config" skeleton= --q-origin="$origin"
    done
    beside check_repeated "$given 1100/500 6 3 128 $config" skeleton= --q-origin=-333
    beside check_repeated "$end 130/2000 4 2 128 $config" skeleton=
    beside check_repeated "$end 700/300 6 6 64 $config" skeleton= # query 0 stands before key 0
    beside check_repeated "$end 1/3000 4 1 64 $config" skeleton=  # one token behind the others
  done
done
wait
finish
