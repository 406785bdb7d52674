#!/usr/bin/env bash
# An arena on this GPU: 100,000 calls of random sizes of up to 4 GiB on two streams, with and without work on the blocks. Not a byte
# more once warm, fragmentation below 5%; then blocks until the GPU has no more, which says so and leaves all usable.
# Of blocks up to 256 MiB the driver's units of 32 MiB are a larger share: it is said, and allowed 20%, and a twentieth more in the
# last round (docs/operations.md).
# The program lies beside $HEDDLE: ./dev build --preset static heddle heddle-arena-soak
set -uo pipefail
soak=${HEDDLE_PROGRAMS:-$(dirname "$HEDDLE")}/heddle-arena-soak
if [ ! -x "$soak" ]; then
  echo "skip arena: no heddle-arena-soak in ${soak%/*}"
  exit 0
fi
failed=0
for options in "" --touch "--most=256 --allowed=0.2 --growth=0.05 --touch"; do
  # Words of the options are split on purpose.
  # shellcheck disable=SC2086
  if output=$("$soak" --calls="${HEDDLE_ARENA_CALLS:-100000}" $options 2>&1); then
    printf 'ok arena %s\n   %s\n' "$options" "$output"
  else
    printf 'FAIL arena %s: %s\n' "$options" "$output"
    failed=1
  fi
  [ -z "${HEDDLE_ARENA_DRY:-}" ] || break # a driver without memory behind its addresses
done
exit $failed
