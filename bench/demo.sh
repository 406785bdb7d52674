#!/usr/bin/env bash
# The main job, once through every stage: make a small file of random q, k, v, then check, explain,
# show, compile, run and verify patterns/dilated.mlir, and say in a table what happened.
# Called by ./dev demo with build/bin/heddle in place; HEDDLE names another binary.
# A step that this machine cannot do is listed with the reason. Exit code 1 if a step failed, 3 if one
# could not be done for lack of anything but a GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
heddle=${HEDDLE:-build/bin/heddle}
[ -x "$heddle" ] || { echo "demo: no $heddle; run ./dev demo, or set HEDDLE=path" >&2; exit 3; }
pattern=patterns/dilated.mlir
out=build/demo
mkdir -p "$out"
rm -f "$out"/*
failed=0 lacking=0
rows=()

row() { rows+=("$(printf '%-16s %-9s %8s  %s' "$1" "$2" "$3" "$4")"); }

# step <name> <pattern> <command...>: runs it, keeps what it printed, notes the time and what matches the
# pattern. Exit code 3 means that this machine lacks something: that step is not done, for the
# reason that was printed.
step() {
  local name=$1 wanted=$2 log=$out/${1// /_}.log result=ok start code=0 time
  shift 2
  printf '\n== %s\n$ %s\n' "$name" "$*"
  start=$(date +%s%N)
  "$@" >"$log" 2>"$log.err" || code=$?
  time=$((($(date +%s%N) - start) / 10000000))
  cat "$log.err" "$log"
  case $code in
    0) ;;
    3) result='not done' lacking=1 ;;
    *) result=FAILED failed=1 ;;
  esac
  [ $code = 0 ] || log=$log.err wanted='.+'
  row "$name" "$result" "$((time / 100)).$(printf %02d $((time % 100))) s" \
    "$(grep -oE -- "$wanted" "$log" | sed -E 's/^ +//; s/ +/ /g' | paste -sd ';' | sed 's/;/; /g' | cut -c1-150)"
}

not_done() { row "$1" 'not done' - "$2"; }

inputs=$out/qkv.safetensors
verdict='[0-9.]+ ms on [^(]*|^ +(out|lse) +[0-9.e+-]+ +[0-9.e+-]+'
sizes=(--seqlen=8192 --heads=8 --head-dim=64)
step "make inputs" "q .*" "$heddle" make-inputs --batch=1 "${sizes[@]}" --dtype=bf16 --seed=1 -o "$inputs"
step "check" '.*: ok.*' "$heddle" check "$pattern"
step "explain" 'kept pairs.*|density.*|roofline +[0-9.]+ ms on [A-Za-z0-9 ]+' "$heddle" explain "$pattern" "${sizes[@]}"
step "show" '^$' "$heddle" show "$pattern" --seqlen=8192 --heads=8
step "show as SVG" '^$' "$heddle" show "$pattern" --seqlen=8192 --heads=8 -o "$out/dilated.svg"
for arch in sm_80 sm_90a; do
  step "compile $arch" "[0-9]+ registers.* cubin" "$heddle" compile "$pattern" --arch=$arch --head-dim=64 --dtype=bf16 --emit=cubin \
    -o "$out/dilated.$arch.cubin" --timing
done
step "run on CPU" "$verdict" "$heddle" run "$pattern" --inputs="$inputs" --output="$out/cpu.safetensors" \
  --target=cpu --verify
if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  step "tune on GPU" "winner.*" "$heddle" tune "$pattern" "${sizes[@]}" --dtype=bf16 --budget=30s --db="$out/kernels.db"
  step "run on GPU" "$verdict" "$heddle" run "$pattern" --inputs="$inputs" --output="$out/gpu.safetensors" \
    --target=cuda --db="$out/kernels.db" --verify
else
  not_done "tune on GPU" "no GPU on this machine (/dev/nvidia0 is missing)"
  not_done "run on GPU" "no GPU on this machine (/dev/nvidia0 is missing)"
fi

printf '\n%-16s %-9s %8s  %s\n' step result time note
printf '%s\n' "${rows[@]}"
printf 'after out and lse: the largest error, and what is allowed; everything lies in %s\n' "$out"
[ $failed = 0 ] || exit 1
[ $lacking = 0 ] || exit 3
