# memory-limits.sh <patterns> <scratch>: runs verbs under ever smaller limits of addresses. Each ends well, or with exit code 3 and words
# about memory, or is not loaded at all (127, the loader's words).
set -u
patterns=$1 scratch=$2
heddle make-inputs --seqlen=4096 --heads=8 -o "$scratch.qkv" >/dev/null || exit 1
verb() { # <limit in kB> <command>...
  local limit=$1 code=0
  shift
  (ulimit -v "$limit" && exec heddle "$@") >"$scratch.out" 2>"$scratch.err" || code=$?
  case $code in
    0) return ;;
    3) grep -qiE 'memory' "$scratch.err" && return ;;
    127) grep -q 'error while loading shared libraries' "$scratch.err" && return ;;
  esac
  echo "$limit kB: heddle $*: exit code $code" >&2
  cat "$scratch.err" >&2
  exit 1
}
least=$(for ((kb = 200000; kb < 3000000; kb += 50000)); do (ulimit -v $kb && exec heddle --version) >/dev/null 2>&1 && echo $kb && break; done)
for ((kb = least; kb < least + 160000; kb += 20000)); do
  verb $kb check "$patterns/bigbird.mlir"
  verb $kb explain "$patterns/longnet.mlir" --seqlen=65536
  verb $kb configs "$patterns/causal.mlir" --arch=sm_90a --limit=1
  verb $kb make-inputs --seqlen=65536 --heads=8 -o "$scratch.made"
  verb $kb run "$patterns/causal.mlir" --inputs="$scratch.qkv" --output="$scratch.made" --target=cpu
done
