# Sourced by the tests beside it: cases side by side, each with its own time limit and its one line of output. Every case
# asks `begins` first (begins.bash), and so the cases of a test can be listed, and run in part. A test ends with `finish`.
# Needs HEDDLE, HEDDLE_SCRATCH and coreutils.
set -uo pipefail
. tests/device/long/begins.bash
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

# limited <seconds> <log> <command...>: its exit code; everything it printed is in <log>. Nothing where cases are listed.
limited() {
  local seconds=$1 log=$2
  shift 2
  [ -z "${HEDDLE_DEVICE_LIST:-}" ] || return 0
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

# check_says <text> <case> <seconds> <command...>: ok if the command ends in time, with exit code 0, and prints the text. For
# cases that have begun.
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
  [ -z "${HEDDLE_DEVICE_LIST:-}" ] || return 0
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

# run_command <pattern> <inputs> <argument...>: leaves a heddle run on the GPU in `command`; no two results share a file. What
# it launches is compiled now, or was, to the same code, unless an argument names a database.
run_command() {
  local pattern=$1 inputs=$2 compiled=()
  shift 2
  [[ $pattern == *.mlir ]] || pattern=patterns/$pattern.mlir
  if [ -n "${HEDDLE_DEVICE_STORE:-}" ] && [[ " $* " != *" --db="* ]]; then
    compiled=(--db="$HEDDLE_DEVICE_STORE")
    [[ " $* " == *" --config="* ]] || compiled+=(--config=default)
  fi
  command=("$HEDDLE" run "$pattern" --inputs="$inputs" --output="$(mktemp -p "$HEDDLE_SCRATCH")" --target=cuda "$@" "${compiled[@]}")
}

# inputs_of <name>: where prepare_shape leaves them.
inputs_of() { echo "$HEDDLE_SCRATCH/$(tr ' ' '_' <<<"$1").safetensors"; }

# prepare_shape <name> <shape> <argument of make-inputs...>: inputs of "seqlen_q seqlen_k heads kv_heads head_dim".
prepare_shape() {
  local name=$1 seqlen seqlen_k heads kv_heads head_dim
  read -r seqlen seqlen_k heads kv_heads head_dim <<<"$2"
  shift 2
  prepare "inputs of $name" "$seconds" "$HEDDLE" make-inputs --seqlen="$seqlen" --seqlen-k="$seqlen_k" --heads="$heads" \
    --kv-heads="$kv_heads" --head-dim="$head_dim" --seed=3 "$@" -o "$(inputs_of "$name")"
}

# takes_shape <pattern file> <shape>: fails where one tensor says where documents of queries and of unlike many keys end.
takes_shape() {
  local seqlen seqlen_k
  read -r seqlen seqlen_k _ <<<"$2"
  [ "$seqlen" = "$seqlen_k" ] || ! grep -qE 'attn\.documents .* at %[a-z_]+ ' "$1"
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
  [[ $pattern == *.mlir ]] || pattern=patterns/$pattern.mlir
  begins "$name" "$pattern" --head-dim="${head_dim%/*}" --value-dim="${head_dim#*/}" --dtype="$type" --seqlen="${seqlen%/*}" \
    --config="$config" || return 0
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
