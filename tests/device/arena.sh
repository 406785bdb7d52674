#!/usr/bin/env bash
# An arena on this GPU: 100,000 calls of random sizes on two streams, with and without work on the blocks. No growth once warm,
# fragmentation below 5%; then blocks until the GPU has no more, which says so and leaves all usable. The program lies beside $HEDDLE: ./dev build --preset static heddle heddle-arena-soak
set -uo pipefail
soak=${HEDDLE_PROGRAMS:-$(dirname "$HEDDLE")}/heddle-arena-soak
if [ ! -x "$soak" ]; then
  echo "skip arena: no heddle-arena-soak in ${soak%/*}"
  exit 0
fi
failed=0
for touch in "" --touch; do
  if output=$("$soak" --calls="${HEDDLE_ARENA_CALLS:-100000}" $touch 2>&1); then
    printf 'ok arena %s\n   %s\n' "$touch" "$output"
  else
    printf 'FAIL arena %s: %s\n' "$touch" "$output"
    failed=1
  fi
  [ -z "${HEDDLE_ARENA_DRY:-}" ] || break # a driver without memory behind its addresses
done
exit $failed
