# Sourced by cases.bash and tests/device/run: which cases a call runs. What they go by is in the environment, all of it optional:
#   HEDDLE_DEVICE_LIST      a folder: nothing is run, the names of the cases go to `cases` in it and to `kernels` the arguments
#                           of `heddle compile` for what they launch, a line each
#   HEDDLE_DEVICE_ONLY      a file with the names of the cases that are meant
#   HEDDLE_DEVICE_SHARD     I/N: of these, the I-th of N parts
#   HEDDLE_DEVICE_DEADLINE  no case begins when `date +%s` says this second or a later one
#   HEDDLE_DEVICE_BEGUN     a file for the names of the cases that began

is_meant() { # is_meant <case>
  local number parts
  if [ -n "${HEDDLE_DEVICE_ONLY:-}" ] && ! grep -qxF -- "$1" "$HEDDLE_DEVICE_ONLY"; then return 1; fi
  [ -n "${HEDDLE_DEVICE_SHARD:-}" ] || return 0
  number=$(cksum <<<"$1") parts=${HEDDLE_DEVICE_SHARD#*/}
  [ $((${number%% *} % parts)) = $((${HEDDLE_DEVICE_SHARD%/*} - 1)) ]
}

# Arguments of heddle compile, quoted, with --seqlen as far as defaults look at it: in steps of 64, up to 256.
kernel_line() {
  local word
  for word in "$@"; do
    case $word in
      --seqlen=0) ;;
      --seqlen=*) [ "${word#*=}" -gt 256 ] || echo -n "--seqlen=$(((${word#*=} + 63) / 64 * 64)) " ;;
      *) echo -n "${word@Q} " ;;
    esac
  done
  echo
}

# begins <case> [argument of heddle compile...]: whether the case is to run now. The arguments stand for its kernel.
begins() {
  local name=$1
  shift
  is_meant "$name" || return 1
  if [ -n "${HEDDLE_DEVICE_LIST:-}" ]; then
    echo "$name" >>"$HEDDLE_DEVICE_LIST/cases"
    [ $# = 0 ] || kernel_line "$@" >>"$HEDDLE_DEVICE_LIST/kernels"
    return 1
  fi
  if [ -n "${HEDDLE_DEVICE_DEADLINE:-}" ] && [ "$(date +%s)" -ge "$HEDDLE_DEVICE_DEADLINE" ]; then return 1; fi
  [ -z "${HEDDLE_DEVICE_BEGUN:-}" ] || echo "$name" >>"$HEDDLE_DEVICE_BEGUN"
}
