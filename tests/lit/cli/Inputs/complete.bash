# complete.bash <script>: what bash offers behind some words, with the script sourced; the last word is the one under the cursor.
. "$1"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" && touch p.mlir
offer() {
  local what=$1
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
  _heddle
  echo "$what:" "${COMPREPLY[@]}"
}
exec 2>&1 # nothing is said while one types
offer "verb" heddle ""
offer "verb ex" heddle ex
offer "operation" heddle cache ""
offer "pattern slid" heddle explain slid
offer "file" heddle show --seqlen = 8k p
offer "option" heddle compile causal --ar
offer "value" heddle compile causal --dtype = bf
offer "separate value" heddle compile causal --arch sm_90
offer "after equals" heddle explain causal --gpu = h
offer "nested option" heddle cache ls --tr
offer "shell" heddle completion ""
offer "behind an option" heddle -q expl
offer "equals at first" heddle = ""
offer "help" heddle help ""
offer "help of an operation" heddle -q help cache sh
offer "help of a leaf" heddle help cache show ""
