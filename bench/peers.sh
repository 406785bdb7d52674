#!/usr/bin/env bash
# heddle beside its peers: makes a database for each workload and measures them, one command.
#   bench/peers.sh [--default | --measure] [--backward] [--budget=20s] [option...] OUT.json [reps, default 20] [workload...]
# --default compiles the default configurations and searches nothing; else each workload is tuned for the budget and both are
# measured; --measure takes the databases in $HEDDLE_BENCH_DB as they are, without $HEDDLE. --marks: the named rows with a
# target ratio, as quickly as they can be had: times alone and no FlexAttention. --backward: gradients; with --marks beside FlexAttention
# too. FlashAttention-3 is a provider where $FA3_SO, or shared/peers/fa3 here or beside the repository, is its library (fa3_plugin.py).
# --list and all other options are those of peers.py (peers.py --help). Needs a GPU, a python3 with torch, $HEDDLE and $HEDDLE_RUNTIME
# (libheddle_runtime.so; default: the build folders) and NVRTC, and for the rows of the Python package that package in PYTHONPATH.
# $HEDDLE_BENCH_DB keeps the databases, else they are temporary. Writes OUT.json and OUT.md; exits 1 if a result is wrong.
set -euo pipefail
command="bench/peers.sh $*"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
budget=20s options=() build=--build marks='' backward=''
while [ $# -gt 0 ]; do
  case $1 in
    --default) budget=0 ;;
    --measure) build= ;;
    --marks) marks=fast ;;
    --backward) backward=,FlexAttention options+=(--backward) ;;
    --budget=*) budget=${1#*=} ;;
    --list | --help) exec python3 "$here/peers.py" ${options[@]+"${options[@]}"} "$@" ;;
    --*) options+=("$1") ;;
    *) break ;;
  esac
  shift
done
[ -z "$marks" ] || options+=(--columns=times --providers="$marks$backward")
[ $# -gt 0 ] || { sed -n '3s/^# */usage: /p' "${BASH_SOURCE[0]}" >&2; exit 2; }
output=$1 reps=20
shift
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  reps=$1
  shift
fi
find_file() { for place in "$@"; do [ -e "$place" ] && { echo "$place"; return; }; done; echo "$1"; }
HEDDLE=${HEDDLE:-$(find_file "$root/build/bin/heddle" "$root/build-static/bin/heddle")}
HEDDLE_RUNTIME=${HEDDLE_RUNTIME:-$(find_file "$root/build-static/lib/libheddle_runtime.so" "$root/build/lib/libheddle_runtime.so")}
FA3_SO=${FA3_SO:-$(find_file "$root/shared/peers/fa3/libfa3.so" "$root/../shared/peers/fa3/libfa3.so")}
if [ -e "$FA3_SO" ]; then
  export FA3_SO
  options+=(--plugin="$here/fa3_plugin.py")
fi
if [ -z "${HEDDLE_BENCH_DB:-}" ]; then
  HEDDLE_BENCH_DB=$(mktemp -d)
  trap 'rm -rf "$HEDDLE_BENCH_DB"' EXIT
fi
python3 "$here/peers.py" --heddle="$HEDDLE" --library="$HEDDLE_RUNTIME" --db="$HEDDLE_BENCH_DB" ${build:+"$build"} --budget="$budget" \
  --reps="$reps" --output="$output" --command="$command" ${options[@]+"${options[@]}"} "$@"
