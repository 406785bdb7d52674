#!/usr/bin/env bash
# tests/device/run against planted tests: it counts cases, and takes a test that dies, hangs or says
# nothing for a failure. The long ones run on demand only.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/tests/device/long"
cp "$here/../device/run" "$scratch/tests/device/run"
export HEDDLE=/bin/true HEDDLE_DEVICE_TEST_SECONDS=1

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
plant hangs 'echo "ok one"; sleep 30'
expect 1 'device tests: 1 passed, 1 failed, 0 skipped' hangs
plant silent 'true'
expect 1 'device tests: 0 passed, 1 failed, 0 skipped' silent
expect 1 'device tests: 0 passed, 1 failed, 0 skipped' missing
expect 1 'device tests: 5 passed, 4 failed, 1 skipped'
plant long/late 'echo "ok late"; test -d tests/device/long'
expect 1 'device tests: 5 passed, 4 failed, 1 skipped'
expect 1 'device tests: 6 passed, 4 failed, 1 skipped' --long
expect 0 'device tests: 3 passed, 0 failed, 1 skipped' --long good long/late
HEDDLE='' expect 3 'device tests: HEDDLE must name a heddle binary'
