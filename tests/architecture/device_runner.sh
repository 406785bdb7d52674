#!/usr/bin/env bash
# tests/device/run against planted tests: it counts cases, and takes a test that dies, hangs or says
# nothing for a failure. The long ones run on demand only. Cases are listed without being run, run in parts that are together
# the whole, compiled before their test runs, and named where the time was over.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/tests/device/long"
cp "$here/../device/run" "$scratch/tests/device/run"
cp "$here/../device/long/"*.bash "$scratch/tests/device/long"
export HEDDLE=/bin/true

plant() { # plant <name> <command>
  printf '#!/bin/sh\n%s\n' "$2" >"$scratch/tests/device/$1.sh"
  chmod +x "$scratch/tests/device/$1.sh"
}

# expect <exit code> <closing line> [name...]
expect() {
  local code=0 output
  output=$("$scratch/tests/device/run" "${@:3}" 2>&1) || code=$?
  if [ "$code" != "$1" ] || [ "$(tail -1 <<<"$output")" != "$2" ]; then
    printf 'FAIL: expected exit code %s and "%s", got %s and:\n%s\n' "$1" "$2" "$code" "$output"
    exit 1
  fi
}

# shellcheck disable=SC2016 # the planted test expands it
plant good 'echo "ok one"; echo "skip two: no TMA"; test -x "$HEDDLE" && test -d "$HEDDLE_SCRATCH" && test -d tests/device && echo "ok three"'
expect 0 'device tests: 2 passed, 0 failed, 1 skipped'
plant bad 'echo "ok one"; echo "FAIL two: error 3"; exit 1'
expect 1 'device tests: 1 passed, 1 failed, 0 skipped' bad
plant dies 'echo "ok one"; exit 9'
expect 1 'device tests: 1 passed, 1 failed, 0 skipped' dies
plant hangs 'echo "ok one"; exec sleep 3000'
HEDDLE_DEVICE_TEST_SECONDS=5 expect 1 'device tests: 1 passed, 1 failed, 0 skipped' hangs
rm "$scratch/tests/device/hangs.sh"
plant silent 'true'
expect 1 'device tests: 0 passed, 1 failed, 0 skipped' silent
expect 1 'device tests: 0 passed, 1 failed, 0 skipped' missing
expect 1 'device tests: 4 passed, 3 failed, 1 skipped'
plant long/late 'echo "ok late"; test -d tests/device/long'
expect 1 'device tests: 4 passed, 3 failed, 1 skipped'
expect 1 'device tests: 5 passed, 3 failed, 1 skipped' --long
expect 0 'device tests: 3 passed, 0 failed, 1 skipped' --long good long/late
HEDDLE='' expect 3 'device tests: HEDDLE must name a heddle binary'

# Tests that list their cases. `date` stands still until the case that is called last has begun.
list=$scratch/tests/device
rm "$list"/*.sh "$list"/long/*.sh
mkdir "$scratch/bin"
cat >"$scratch/bin/date" <<'SH'
#!/bin/sh
[ -e "$ENDED" ] && echo 2000 || echo 1000
SH
cat >"$scratch/bin/heddle" <<'SH'
#!/bin/sh
echo "$@" >>"$ASKED"
case "$1 $*" in
  configs*) printf '{\n  "arch": "sm_90a",\n}\n' ;;
  compile*refused*) exit 1 ;;
  compile*) for word; do case $word in --db=*) : >"${word#--db=}" ;; esac; done ;;
  cache*) ;;
  run*) echo "error: of run" ; case "$*" in *bad.mlir*) exit 1 ;; esac ;;
esac
SH
chmod +x "$scratch"/bin/*
export PATH="$scratch/bin:$PATH" HEDDLE=$scratch/bin/heddle ENDED=$scratch/ended ASKED=$scratch/asked
cat >"$list/many.sh" <<'SH'
#!/usr/bin/env bash
. tests/device/long/cases.bash
places=1
try() {
  begins "$1" "$1.mlir" --head-dim=64 --seqlen="$2" || return
  run_command "$1.mlir" inputs --verify
  check "$1" 20 "${command[@]}"
  [ "$1" != "${LAST:-}" ] || touch "$ENDED"
}
for name in a b c d e f; do beside try "$name" 1000; done
wait
for name in bad refused; do beside try "$name" 30; done
finish
SH
cat >"$list/one.sh" <<'SH'
#!/bin/sh
echo "ok whole"
SH
chmod +x "$list"/*.sh
run=$scratch/tests/device/run

say() { printf 'FAIL: %s:\n%s\n' "$1" "$2"; exit 1; }
same() { [ "$2" = "$3" ] || say "$1" "expected:
$2
got:
$3"; }

: >"$ASKED"
same "cases" "$(printf 'many: %s\n' a b bad c d e f refused; echo 'one: one')" "$("$run" --list | sort)"
same "listing asks the program for nothing" "" "$(cat "$ASKED")"
same "three parts" "$("$run" --list | sort)" "$(for part in 1 2 3; do "$run" --list --shard=$part/3; done | sort)"
[ "$("$run" --list --shard=1/3 | wc -l)" -lt 9 ] || say "a part" "is the whole"

same "kernels" "$(printf '== many: 8 kernels for sm_80\n   7 compiled\n   1 refused')" "$("$run" --kernels=sm_80)"
grep -q "compile bad.mlir --head-dim=64 --seqlen=64 --arch=sm_80 --db=$scratch/.*/build/device/kernels.db -q" "$ASKED" || say "kernels" "$(cat "$ASKED")"
grep -q 'compile a.mlir --head-dim=64 --arch=sm_80' "$ASKED" || say "kernels of many queries" "$(cat "$ASKED")"
same "kernels alone" "" "$(grep '^run' "$ASKED" || true)"

expect 1 'device tests: 8 passed, 1 failed, 0 skipped'
grep -q 'run a.mlir --inputs=inputs .*--target=cuda --verify --db=.*/kernels.db --config=default' "$ASKED" || say "run" "$(cat "$ASKED")"
same "nothing was left out" "device tests: nothing was left out" "$("$run" --left)"

export LAST=c
expect 4 'device tests: 3 passed, 0 failed, 0 skipped, 6 left out' --seconds=500
same "names of what was left out" "$(printf 'many: %s\n' bad d e f refused; echo 'one: one')" "$(sort "$scratch/build/device/left")"
rm "$ENDED"
export LAST=e
expect 4 'device tests: 2 passed, 0 failed, 0 skipped, 4 left out' --left --seconds=500
rm "$ENDED"
unset LAST
expect 1 'device tests: 3 passed, 1 failed, 0 skipped' --left --seconds=500
expect 0 'device tests: nothing was left out' --left
expect 4 'device tests: 0 passed, 0 failed, 0 skipped, 9 left out' --seconds=0
expect 4 'device tests: 0 passed, 0 failed, 0 skipped, 9 left out' --left --seconds=0 many
same "what was not named" "one: one" "$(grep one "$scratch/build/device/left")"
expect 2 "device tests: no option '--shards'; $(sed -n 's/^# \(tests.*\): runs the.*/\1/p' "$run")" --shards

# A test waits for no kernel of the next one.
sed 's/in a b c d e f/in later/; s/in bad refused/in last/' "$list/many.sh" >"$list/next.sh"
chmod +x "$list/next.sh"
: >"$ASKED"
"$run" many next >/dev/null 2>&1 || true
same "runs and compilations" "$(printf 'run many\ncompile next\nrun next')" \
  "$(sed -nE 's/^(run|compile) (later|last)\.mlir.*/\1 next/p; t; s/^run .*/run many/p' "$ASKED" | uniq)"
