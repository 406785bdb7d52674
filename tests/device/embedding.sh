#!/usr/bin/env bash
# The C interface on this GPU: the example programs and heddle-host-cost, with kernels packed by $HEDDLE. The programs lie beside
# it, with the runtime inside: ./dev build --preset static heddle heddle-attention heddle-server heddle-host-cost
# heddle-compile is run too if it is there; it wants libheddle.so.0 in the same folder or in ../lib.
set -uo pipefail
programs=${HEDDLE_PROGRAMS:-$(dirname "$HEDDLE")}
for program in heddle-attention heddle-server heddle-host-cost; do
  if [ ! -x "$programs/$program" ]; then
    echo "skip embedding: no $program in $programs"
    exit 0
  fi
done
failed=0
package=${HEDDLE_PACKAGE:-$HEDDLE_SCRATCH/kernels.heddle}
check() { # check <case> <text, an expression> <command...>
  local name=$1 wanted=$2 output
  shift 2
  if ! output=$("$@" 2>&1); then
    echo "FAIL $name: $(tail -1 <<<"$output")"
  elif ! grep -qE -- "$wanted" <<<"$output"; then
    echo "FAIL $name: '$wanted' is not in: $(tail -3 <<<"$output" | tr '\n' ' ')"
  else
    echo "ok $name"
    tail -1 <<<"$output" | sed 's/^/   /'
    return
  fi
  failed=1
}
cat >"$HEDDLE_SCRATCH/plan.json" <<PLAN
{"patterns": ["$PWD/patterns/causal.mlir", "$PWD/patterns/sliding_window.mlir"], "head_dims": [64], "dtypes": ["bf16"], "archs": ["sm_80", "sm_90a"]}
PLAN
[ -n "${HEDDLE_PACKAGE:-}" ] || check "pack" "" "$HEDDLE" pack "$HEDDLE_SCRATCH/plan.json" -o "$package"
rows=${HEDDLE_ROWS:-8192}
check "causal in C" "$rows rows of 8 heads are right" "$programs/heddle-attention" "$package" causal "$rows"
check "sliding_window in C" "$rows rows of 8 heads are right" "$programs/heddle-attention" "$package" sliding_window "$rows" 1023
check "one row in C" "1 row of 8 heads is right" "$programs/heddle-attention" "$package" sliding_window 1 1023
# Not with a package from outside: that is for a driver that runs no compiled kernels.
[ -n "${HEDDLE_PACKAGE:-}" ] || [ ! -x "$programs/heddle-compile" ] ||
  check "a pattern's text in C" "the GPU agrees with the processors" "$programs/heddle-compile" "$HEDDLE_SCRATCH/compiled.db" "$rows"
check "server in C++" " 0 results differ" "$programs/heddle-server" "$package" sliding_window 8 4 "${HEDDLE_REQUESTS:-1000}" 255
# Medians. A prepared launch costs at most 3 us, or what a bare one costs where the driver alone takes longer. The first process may find the driver cold. The words are split on purpose.
# shellcheck disable=SC2086
for run in 1 2 3; do
  check "host cost, run $run" '"differing": 0.*"beyond_bytes": 0.*"within_limits": true' "$programs/heddle-host-cost" --db="$package" --sizes=1023 \
    --prepared-limit-us=3 --first-limit-ms=50 ${HEDDLE_HOST_COST_OPTIONS:-}
done
exit $failed
