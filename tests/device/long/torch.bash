# Sourced behind cases.bash by device tests whose cases are programs of PyTorch (HEDDLE_PYTHON, else python3) with heddle's package, over libheddle.so beside
# the folder of the binary or in HEDDLE_LIBRARY.
library=${HEDDLE_LIBRARY:-$(dirname "$HEDDLE")/../lib/libheddle.so}
python=${HEDDLE_PYTHON:-python3}

# needs_torch <test> <modules> <condition> <else>: ends the test, with its one line, where the library, a module or what the condition asks of them is missing.
needs_torch() {
  [ -z "${HEDDLE_DEVICE_LIST:-}" ] || return 0
  if [ ! -e "$library" ]; then
    echo "skip $1: no $library"
    exit 0
  fi
  if ! "$python" -c "import $2; assert $3, '$4'" 2>"$HEDDLE_SCRATCH/said"; then
    echo "skip $1: $(tail -1 "$HEDDLE_SCRATCH/said")"
    exit 0
  fi
}

# check_python <text> <case> <seconds> <argument of Python...>: as check_says, for cases that have begun.
check_python() {
  local wanted=$1 name=$2 seconds=$3
  shift 3
  check_says "$wanted" "$name" "$seconds" env HEDDLE_LIBRARY="$library" PYTHONPATH=runtime/Python "$python" "$@"
}

# check_ranks <text> <case> <seconds> <ranks> <program>: likewise, of as many processes, each with a GPU of its own.
check_ranks() { NCCL_NVLS_ENABLE=0 check_python "$1" "$2" "$3" -m torch.distributed.run --standalone --nproc-per-node="$4" "$5"; }
