#!/usr/bin/env bash
# check.sh <root> <check>: holds the tree against the rules that DESIGN gives to machines. Prints one
# line "file:line: what is wrong" per violation and exits 1 if there was one. Checks: includes, circles,
# registries, estimates, architectures, op_names, sizes, leftovers, links, documented,
# house, python_circles. selftest.sh shows that each one bites.
# shellcheck disable=SC2317 # the checks are called by name
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$1"
check=$2

# sources <find test...>: files of the project, without build trees, relative to the root.
sources() {
  find . \( -path './build*' -o -name .git -o -name .cache \) -prune -o -type f \( "$@" \) -print | sed 's,^\./,,' | sort
}

code() { sources -name '*.h' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.td' -o -name '*.cu'; }
layer_code() { code | grep -E '^(runtime|dialect|codegen|tuner|compiler)/' || true; }

# The includes of every layer, against layers.txt. Device text may only include its neighbours, and
# <cstdint> where a compiler other than NVRTC reads it.
check_includes() {
  layer_code | while read -r file; do
    grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]|^include "' "$file" | sed "s|^|$file:|" || true
  done | awk -v table="$here/layers.txt" '
    BEGIN { while ((getline line < table) > 0) if (line !~ /^#/) { n = split(line, w, " "); if (n) rules[w[1]] = " " substr(line, length(w[1]) + 1) " " } }
    function kind(path) {
      if (path ~ /^(runtime|dialect|codegen|tuner|compiler)\//) return "project"
      if (path ~ /^(mlir|mlir-c|llvm|llvm-c)\//) return "mlir"
      if (path ~ /^sqlite3/) return "sqlite"
      if (path ~ /^nlohmann\//) return "json"
      if (path ~ /^CLI\//) return "cli"
      if (path ~ /^(sys|netinet|arpa|linux)\// || path ~ /^[a-z0-9_]+(\.h)?$/) return "std"
      return "unknown"
    }
    function allowed(rule, path, what,   words, n, i) {
      n = split(rule, words, " ")
      for (i = 1; i <= n; ++i)
        if (words[i] == what || (what == "project" && index(path, words[i] "/") == 1)) return 1
      return 0
    }
    # Skeletons/Shared and Skeletons/Ptx serve all kinds, the other folders of Skeletons their own; decode is a forward pass.
    function foreign(file, path,   from, to) {
      if (!match(file, /Skeletons\/[A-Z][a-z]+\//) || path !~ /\//) return 0
      from = substr(file, RSTART + 10, RLENGTH - 11)
      to = path; sub(/\/.*/, "", to)
      return to != from && to != "Ptx" && to != "Shared" && !(from == "Decode" && to == "Forward")
    }
    {
      split($0, part, ":"); file = part[1]
      if (!match($0, /["<][^">]+[">]/)) { print file ":" part[2] ": an include that is neither quoted nor bracketed"; next }
      path = substr($0, RSTART + 1, RLENGTH - 2); bracket = substr($0, RSTART, 1)
      if (file ~ /\.cuh$/) { if (bracket == "<" && path != "cstdint") print file ":" part[2] ": device code includes <" path ">, it may include its own files only"; if (foreign(file, path)) print file ":" part[2] ": device code of one kind includes " path ", of another"; next }
      folder = file; rule = ""
      while (sub(/\/[^\/]*$/, "", folder)) if (folder in rules) { rule = rules[folder]; break }
      if (rule == "") { print file ":" part[2] ": no rule in layers.txt for this folder"; next }
      what = kind(path)
      if (path ~ /^cuda|^nvrtc/) what = "unknown"
      if (!allowed(rule, path, what)) print file ":" part[2] ": " folder " may not include " path
    }'
}

# loops <pairs>: who includes whom, in a circle, as tsort finds it.
loops() {
  tsort 2>&1 >/dev/null | sed -nE 's,^tsort: (-: .*|),\1,p' | awk '
    /input contains a loop/ { if (members) print members; members = ""; next }
    { gsub(/^[-: ]+/, ""); members = members == "" ? $0 ": a circle of includes" : members ", with " $0 }
    END { if (members) print members }' | sort -u || true
}

# A file is a header with its source here, for a source may only see what its header stands above.
check_circles() {
  local pairs
  pairs=$(layer_code | xargs -r grep -HoE '^#[[:space:]]*include "[^"]+"' |
    sed -E 's,\.(h|hpp|cpp|cuh|td):#[[:space:]]*include "([^"]+)\.[a-z]+", \2,' |
    awk '{ if ($2 !~ /\//) { folder = $1; sub(/[^\/]*$/, "", folder); $2 = folder $2 } if ($1 != $2) print $1, $2 }')
  loops <<<"$pairs"
  sed -E 's,/[^/ ]+( |$),\1,g' <<<"$pairs" | awk '$1 != $2 && $2 ~ /^(runtime|dialect|codegen|tuner|compiler)\//' | loops
}

# unlisted <folder> <first letter>: a .cpp without a header of its own registers something; its name
# must occur in the folder's Registry.cpp. Verbs are the files that begin with a small letter.
unlisted() {
  local file stem registry=$1/Registry.cpp
  # shellcheck disable=SC2231 # $2 is a pattern
  for file in "$1"/$2*.cpp; do
    if [ ! -e "$file" ] || [ "$file" = "$registry" ] || [ -e "${file%.cpp}.h" ]; then continue; fi
    ! grep -qE '^int main\(' "$file" || continue
    stem=$(basename "$file" .cpp)
    grep -qisE "(^|[^A-Za-z])[a-z]*${stem//-/[-_]?}" "$registry" || echo "$file:1: not listed in $registry"
  done
}

check_registries() {
  unlisted compiler/Tools '[a-z]'
}

# What the tuner's thread estimates with reaches no IR: an MLIR context serves one thread at a time.
check_estimates() {
  sources -name TunePrior.h -o -name ScheduleCost.h -o -name CostModel.h -o -name 'WorkCounts.*' | while read -r header; do
    local reached=$header next=$header
    while [ -n "$next" ]; do
      # shellcheck disable=SC2086 # file names without blanks
      next=$(grep -hoE '^#include "[^"]+"' $next /dev/null | cut -d'"' -f2 | sort -u | grep -vxF "$reached" || true)
      reached+=$'\n'$next
      next=$(for file in $next; do [ ! -e "$file" ] || echo "$file"; done)
    done
    grep -E '^(mlir|dialect/(IR|Transforms))/' <<<"$reached" | sed "s|^|$header:1: an estimate reaches |" || true
  done
}

# Architectures are rows of codegen/Target, and skeletons belong to them. Comments may speak of them.
check_architectures() {
  layer_code | grep -vE '^codegen/(Target|Skeletons)/' | while read -r file; do
    sed 's,//.*,,' "$file" | grep -nE 'sm_[0-9]' | sed -E "s|^([0-9]+):.*|$file:\1: names a GPU architecture; only codegen/Target and codegen/Skeletons may|" || true
  done
}

# Passes ask masks and scores what they are through interfaces: a question that names an op stands in the file of that
# op. The definition in compiler/Oracle reads ops by itself and refuses those that it does not know; the rewrites of
# Normalize leave as they are those that they do not know.
check_op_names() {
  local names file hit op asked='(isa|dyn_cast)[a-z_]*<|(getDefiningOp|getOps|Case)<|walk\(\[[^]]*\]\('
  names=$(sources -name '*.td' | xargs -r grep -hoE '^def [A-Za-z]+Op : [A-Za-z]*(Mask|Leaf|Pullback|Score)Op<' | awk '{ print $2 }' | paste -sd'|')
  [ -n "$names" ] || return 0
  layer_code | grep -E '\.(h|cpp)$' | grep -vE '^(compiler/Oracle/.*|dialect/Transforms/Normalize\.cpp)$' | while read -r file; do
    { grep -noE "($asked)[^>;]*\b($names)\b" "$file" || true; } | while IFS= read -r hit; do
      op=$(grep -oE "[A-Za-z]+Op$" <<<"$hit")
      case $file in dialect/IR/*) ! grep -qE "\b$op::" "$file" || continue ;; esac
      echo "$file:${hit%%:*}: asks for $op by name; its interface answers, also for ops of other dialects"
    done
  done
}

check_sizes() {
  { code; sources -name '*.sh' -o -name '*.cmake' -o -name '*.mlir' -o -name CMakeLists.txt -o -name dev; } |
    while read -r file; do
      lines=$(wc -l <"$file") most=500
      case $file in runtime/* | dialect/* | codegen/* | tuner/* | compiler/*) most=400 ;; esac
      [ "$lines" -le $most ] || echo "$file:$lines: longer than $most lines"
    done
}

check_leftovers() {
  { code; sources -name '*.sh' -o -name '*.cmake' -o -name '*.mlir' -o -name '*.md' -o -name CMakeLists.txt -o -name dev; } |
    while read -r file; do
      grep -nE '\b(TO''DO|FIX''ME|XX''X)\b' "$file" | sed -E "s|^([0-9]+):.*|$file:\1: an unfinished place|" || true
    done
}

# Relative links of the pages lead to files that are there.
check_links() {
  sources -name '*.md' | while read -r file; do
    grep -noE '\]\([^)# ]+' "$file" | while IFS= read -r hit; do
      target=${hit#*](}
      case $target in *://* | mailto:*) continue ;; esac
      [ -e "$(dirname "$file")/$target" ] || echo "$file:${hit%%:*}: link to $target, which is not there"
    done || true
  done
}

# Every function of a public header has a comment of its own right above it.
check_documented() {
  local header
  for header in runtime/Include/heddle.h compiler/Library/heddle_compiler.h; do
    [ -e "$header" ] || continue
    awk '/^HEDDLE_API/ && above !~ /\*\/$/ { print FILENAME ":" FNR ": a function without a comment right above it" } { above = $0 }' "$header"
  done
}

# The page of the house and its picture name folders that are there, and leave no layer out.
check_house() {
  local file line folder
  for file in docs/house.md docs/house.svg; do
    [ -e $file ] || continue
    grep -noE '[`>][A-Za-z]+(/[A-Za-z]+)+/?[`<]' $file | tr -d '`<>' | while IFS=: read -r line folder; do
      [ -d "$folder" ] || echo "$file:$line: names $folder, which is not there"
    done
    layer_code | cut -d/ -f1,2 | sort -u | while read -r folder; do
      [ ! -d "$folder" ] || grep -qE "[\`>]$folder/?[\`<]" $file || echo "$file:1: does not name $folder"
    done
  done
}

# Imports among the files of the Python package, those inside functions too. tsort names what lies on a circle.
check_python_circles() {
  local folder=runtime/Python/heddle circle
  [ -d $folder ] || return 0
  circle=$(awk '
    FNR == 1 { file = FILENAME; gsub(/.*\/|\.py$/, "", file) }
    /^[ \t]*from \.[A-Za-z_]/ { print file, substr($2, 2) }
    /^[ \t]*from \. import / {
      sub(/.* import /, ""); sub(/#.*/, ""); gsub(/[()]/, "")
      for (n = split($0, names, ","); n > 0; --n) if (split(names[n], word, " ")) print file, word[1]
    }' $folder/*.py | tsort 2>&1 >/dev/null | sed -n 's/^tsort: \([A-Za-z_]*\)$/\1/p' | sort -u | tr '\n' ' ' || true)
  [ -z "$circle" ] || echo "$folder/${circle%% *}.py:1: these import each other in a circle: $circle"
}

declare -F "check_$check" >/dev/null || { echo "no check '$check'" >&2; exit 2; }
violations=$("check_$check")
[ -n "$violations" ] || exit 0
printf '%s\n' "$violations"
exit 1
