#!/usr/bin/env bash
# The main job, once through every stage: make a small file of random q, k, v, then check, explain,
# show, compile, run and verify patterns/dilated.mlir, and say in a table what happened.
# Called by ./dev demo with build/bin/heddle in place; HEDDLE names another binary.
# Exit code 1 if any step failed; a step that this machine cannot do is listed with the reason.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
heddle=${HEDDLE:-build/bin/heddle}
pattern=patterns/dilated.mlir
out=build/demo
mkdir -p "$out"
rm -f "$out"/*
failed=0
rows=()

row() { rows+=("$(printf '%-22s %-9s %8s  %s' "$1" "$2" "$3" "$4")"); }

# step <name> <command...>: runs, keeps what was printed, notes the time. The note in the table is the
# line of the result that the name stands for.
step() {
  local name=$1 log=$out/${1// /_}.log start end seconds note
  shift
  printf '\n== %s\n$ %s\n' "$name" "$*"
  start=$(date +%s%N)
  if "$@" >"$log" 2>"$log.err"; then
    end=$(date +%s%N)
    seconds=$(printf '%d.%02d s' $(((end - start) / 1000000000)) $(((end - start) / 10000000 % 100)))
    cat "$log.err" "$log"
    note=$(grep -v '^ *$' "$log" | tail -1 | cut -c1-96)
    row "$name" ok "$seconds" "$note"
  else
    end=$(date +%s%N)
    seconds=$(printf '%d.%02d s' $(((end - start) / 1000000000)) $(((end - start) / 10000000 % 100)))
    cat "$log" "$log.err"
    row "$name" FAILED "$seconds" "$(grep -v '^ *$' "$log.err" | tail -1 | cut -c1-96)"
    failed=1
  fi
}

not_done() { row "$1" 'not done' - "$2"; }

has_nvrtc() { ! grep -q 'NVRTC not found' "$out"/compile_*.err; }

inputs=$out/qkv.safetensors
step "make inputs" "$heddle" make-inputs --batch=1 --seqlen=8192 --heads=8 --head-dim=64 --dtype=bf16 --seed=1 -o "$inputs"
step "check" "$heddle" check "$pattern"
step "explain" "$heddle" explain "$pattern" --seqlen=8192 --heads=8 --head-dim=64
step "show" "$heddle" show "$pattern" --seqlen=8192 --heads=8 -o "$out/dilated.svg"
for arch in sm_80 sm_90a; do
  step "compile $arch" "$heddle" compile "$pattern" --arch=$arch --head-dim=64 --dtype=bf16 --emit=cubin \
    -o "$out/dilated.$arch.cubin" --timing
done
step "run on CPU" "$heddle" run "$pattern" --inputs="$inputs" --output="$out/cpu.safetensors" --target=cpu --verify
if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  step "tune on GPU" "$heddle" tune "$pattern" --seqlen=8192 --heads=8 --head-dim=64 --dtype=bf16 --budget=30s --db="$out/kernels.db"
  step "run on GPU" "$heddle" run "$pattern" --inputs="$inputs" --output="$out/gpu.safetensors" --target=cuda --db="$out/kernels.db" --verify
else
  not_done "tune on GPU" "no GPU on this machine (/dev/nvidia0 is missing)"
  not_done "run on GPU" "no GPU on this machine (/dev/nvidia0 is missing)"
fi

printf '\n%-22s %-9s %8s  %s\n' step result time note
printf '%s\n' "${rows[@]}"
printf 'files: %s\n' "$out"
exit $failed
