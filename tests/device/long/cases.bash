# Sourced by the tests beside it: cases side by side, each with its own time limit and its one line of output.
# A test ends with `finish`. Needs HEDDLE, HEDDLE_SCRATCH and coreutils.
set -uo pipefail
failures=$HEDDLE_SCRATCH/failures
: >"$failures"
export HEDDLE_DB=$HEDDLE_SCRATCH/none.db # what is compiled now is under test, unless a test names a database
refusal='(spills: ptxas|ptxas note).*'   # how the compiler's refusal of a configuration reads
places=$(nproc)
[ "$places" -le 16 ] || places=16

fail() { # fail <case> <reason>
  echo "FAIL $1: $2"
  echo "$1" >>"$failures"
}

# The lines of a log that say what went wrong, as one.
reason_in() {
  local lines
  lines=$(grep -E 'error|WRONG|launch [0-9]+ ' "$1" || tail -2 "$1")
  head -c 600 <<<"$lines" | tr -s ' \n' ' '
}

# limited <seconds> <log> <command...>: its exit code; everything it printed is in <log>.
limited() {
  local seconds=$1 log=$2
  shift 2
  timeout --kill-after=10 "$seconds" "$@" >"$log" 2>&1
}

# report <case> <exit code> <seconds> <log>
report() {
  case $2 in
    0) echo "ok $1" ;;
    124 | 137) fail "$1" "still running after $3 s" ;;
    *) fail "$1" "$(reason_in "$4")" ;;
  esac
}

# check_says <text> <case> <seconds> <command...>: ok if the command ends in time, with exit code 0, and prints the text.
check_says() {
  local wanted=$1 name=$2 seconds=$3 log code=0
  shift 3
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  limited "$seconds" "$log" "$@" || code=$?
  if [ $code = 0 ] && [ -n "$wanted" ] && ! grep -qF -- "$wanted" "$log"; then
    fail "$name" "'$wanted' is not in: $(reason_in "$log")"
  else
    report "$name" "$code" "$seconds" "$log"
  fi
}

# check <case> <seconds> <command...>: ok if the command ends in time with exit code 0.
check() { check_says "" "$@"; }

# prepare <what> <seconds> <command...>: what cases need; nothing is printed unless it fails.
prepare() {
  local lines
  lines=$(check "$@")
  grep -v '^ok ' <<<"$lines" || true
}

# beside <command...>: starts it as soon as fewer than $places are running.
beside() {
  while [ "$(jobs -rp | wc -l)" -ge "$places" ]; do wait -n || true; done
  "$@" &
}

finish() {
  wait
  [ ! -s "$failures" ]
  exit
}

# run_command <pattern> <inputs> <argument...>: leaves a heddle run on the GPU in `command`; no two results share a file.
run_command() {
  local pattern=$1 inputs=$2
  shift 2
  [[ $pattern == *.mlir ]] || pattern=patterns/$pattern.mlir
  command=("$HEDDLE" run "$pattern" --inputs="$inputs" --output="$(mktemp -p "$HEDDLE_SCRATCH")" --target=cuda "$@")
}

# draw <pattern> <skeleton> <file> <argument of heddle configs...>: fails if the skeleton does not serve this GPU.
draw() {
  local pattern=$1 skeleton=$2 file=$3
  shift 3
  limited 60 "$file" "$HEDDLE" configs "patterns/$pattern.mlir" --skeleton="$skeleton" "$@"
}

# check_repeated <case> <base> [argument of run...]: ok if 20 launches, or $launches, give the same bits, and the right ones. A
# case is "pattern seqlen[/keys] heads kv_heads head_dim[/value_dim] configuration", in bf16 or $dtype; the pattern may be a file.
# What its configuration has in common with others, <base>, is left out of the name.
check_repeated() {
  local pattern seqlen heads kv_heads head_dim config own inputs name log base=$2 seconds=60 code=0 type=${dtype:-bf16}
  read -r pattern seqlen heads kv_heads head_dim config <<<"$1"
  shift 2
  own=${config#"$base"}
  name="$(basename "$pattern" .mlir) q=$seqlen heads=$heads/$kv_heads d=$head_dim${dtype:+ $dtype}${*:+ $*}${own:+ $own}"
  inputs=$(mktemp -p "$HEDDLE_SCRATCH" --suffix=.safetensors)
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  prepare "make inputs for $name" "$seconds" "$HEDDLE" make-inputs --seqlen="${seqlen%/*}" --seqlen-k="${seqlen#*/}" --heads="$heads" \
    --kv-heads="$kv_heads" --head-dim="${head_dim%/*}" --value-dim="${head_dim#*/}" --dtype="$type" --seed=5 -o "$inputs"
  run_command "$pattern" "$inputs" --config="$config" --repeat="${launches:-20}" --verify "$@"
  limited "$seconds" "$log" "${command[@]}" || code=$?
  if [ "$code" != 0 ] && grep -qE "needs .* lacks|serves head dims 64 and 128" "$log"; then
    echo "skip $name: $(grep -m1 -oE "needs .* lacks[^;]*|serves head dims[^;]*" "$log")"
  else
    report "$name" "$code" "$seconds" "$log"
  fi
  rm -f "$inputs"
}
