#!/usr/bin/env bash
# make-pattern-page.sh <heddle>: draws docs/pictures/*.svg and writes docs/patterns.md from the files of patterns/.
# What a pattern is comes from the header of its file; only the sizes of the pictures stand here.
set -euo pipefail
heddle=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# <name> <density in words>|<options of heddle show>
table() {
  cat <<'END'
full|1|--seqlen=32
causal|(n + 1) / (2 n)|--seqlen=32
sliding_window|about (left + 1) / n|--seqlen=48 --set left=11
dilated|w / (n r^2) for the heads of a group with segments of w and rate r|--seqlen=16384 --heads=8
dilated_window|about (2 half + 1) / n|--seqlen=64 --set half=4
longformer|about (2 half + 1 + 2 globals) / n|--seqlen=64 --set half=5 --set globals=4
longnet|about 1024 / n + 512 / n, the branches added|--seqlen=8192 --heads=2
END
}

header() { sed -n 's,^// \{0\,1\},,p' "patterns/$1.mlir"; }

section() {
  local name=$1 density=$2 options=$3
  # shellcheck disable=SC2086 # options are words
  "$heddle" show "patterns/$name.mlir" $options -o "docs/pictures/$name.svg"
  printf '\n## %s\n\n![the %s pattern](pictures/%s.svg)\n\n```text\n%s\n```\n\n' "$name" "$name" "$name" "$(header "$name")"
  printf 'Density (kept pairs of all pairs, n queries and keys): %s.\n' "$density"
  printf 'File: [patterns/%s.mlir](../patterns/%s.mlir). Picture: `heddle show patterns/%s.mlir %s -o %s.svg`.\n' \
    "$name" "$name" "$name" "$options" "$name"
}

{
  cat <<'END'
# The patterns of the library

Queries run down, keys run across. Small pictures show every pair; in the larger ones a cell is a tile: *full* keeps all
its pairs, *full on its lattice* keeps all pairs of one residue class and is as dense for a kernel that loads at a
stride, *partial* keeps some, *skipped* none and is never loaded. Heads that look alike share a panel.

This page is written by `docs/make-pattern-page.sh build/bin/heddle`. `heddle explain` gives the exact numbers for any sizes.
END
  table | while IFS='|' read -r name density options; do section "$name" "$density" "$options"; done
} >docs/patterns.md.new
mv docs/patterns.md.new docs/patterns.md
