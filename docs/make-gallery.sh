#!/usr/bin/env bash
# make-gallery.sh <heddle> [folder]: draws <folder>/pictures/*.svg and writes <folder>/gallery.md from the files of
# patterns/; the folder is docs. What a pattern is comes from the header of its file; only densities and the sizes of the
# pictures stand here. The test docs.gallery holds the committed page against what this writes.
set -euo pipefail
heddle=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${2:-docs}
mkdir -p "$folder/pictures"

# <name>|<density in words>|<options of heddle show>; a name alone begins a chapter.
table() {
  cat <<'END'
Dense
full|1|--seqlen=32
causal|(n + 1) / (2 n)|--seqlen=32
prefix_lm|about 1 / 2 + (length / n)^2 / 2|--seqlen=48 --set length=12
Scores
alibi|(n + 1) / (2 n)|--seqlen=32
softcap|(n + 1) / (2 n)|--seqlen=32
sink|(n + 1) / (2 n)|--seqlen=32
bias|(n + 1) / (2 n)|--seqlen=32
relative_bias|1|--seqlen=32
Ragged batches
document|about 1 / (2 documents), of equal lengths|--seqlen=64
document_window|the sum over documents of about n_s (left + 1), over n^2|--seqlen=48 --seqlen-k=72 --set left=5
Draft trees
tree_decode|about 1, without the pairs of guesses that are not of one branch|--seqlen=24 --seqlen-k=60
trees|about 1, without the pairs behind a query and those of guesses that are not of one branch|--seqlen=24 --seqlen-k=60
Windows and blocks
sliding_window|about (left + 1) / n|--seqlen=48 --set left=11
streaming|about (left + 1 + first) / n|--seqlen=48 --set left=9 --set first=3
longformer|about (2 half + 1 + 2 globals) / n|--seqlen=64 --set half=5 --set globals=4
dilated_window|about (2 half + 1) / n|--seqlen=64 --set half=4
block_local|block / n|--seqlen=48 --set block=10
hierarchical|about 3584 / n|--seqlen=32768
sparse_strided|64 / n for the first half of the heads, 1 / 128 for the second|--seqlen=8192 --heads=2
window_strided|about (left + 1) / n + 1 / 64|--seqlen=8192
sparse_fixed|64 / n for the first half of the heads, 1 / 64 for the second|--seqlen=8192 --heads=2
Block-sparse attention
block_window|about 128 (2 radius + 1) / n|--seqlen=4096
block_dilated|about 896 / n|--seqlen=4096
block_dilated_heads|about 128 (2 reach + 1) / n|--seqlen=8192 --heads=4 --set reach=4
block_global|about (640 + 256 globals) / n|--seqlen=4096
block_strided|about 1 / 4 + 192 / n|--seqlen=4096
block_levels|about 1 / 16 + 512 / n|--seqlen=2048 --block-m=64 --block-n=64
block_csr|128 indices / n^2, each a whole block|--seqlen=2048 --block-m=64 --block-n=64
block_topk|about 64 (k + 0.5) / n for lists of k earlier blocks|--seqlen=2048 --block-m=64 --block-n=64
bigbird|about 64 (3 + 2 globals + randoms) / n|--seqlen=4096 --block-m=64 --block-n=64
bigbird_causal|about 64 (1.5 + globals + randoms / 2) / n|--seqlen=4096 --block-m=64 --block-n=64
random_blocks|about 128 (count + 1) / n|--seqlen=4096 --set count=3
random_blocks_causal|about 64 (count + 1) / n|--seqlen=4096 --set count=6
block_thinned|384 / n for the first half of the heads, 96 / n for the second|--seqlen=4096 --heads=2
Dilated attention: a partition of the heads
dilated|w / (n r^2) for the heads of a group with segments of w and rate r|--seqlen=8192 --heads=8
dilated_base|about w / (2 n r^2) for the heads of a group with segments of w and rate r|--seqlen=65536 --heads=12
dilated_benchmark|w / (n r^2) for the heads of a group with segments of w and rate r|--seqlen=32768 --heads=4
dilated_compare|w / (n r^2) for the heads of a group with segments of w and rate r|--seqlen=16384 --heads=12
dilated_guide|w / (n r^2) for the heads of a group with segments of w and rate r|--seqlen=16384 --heads=32
dilated_large|about w / (2 n r^2) for the heads of a group with segments of w and rate r|--seqlen=131072 --heads=32
dilated_scaled|1 / 4, 1 / 8 and 1 / 16 for the heads of the three groups, at n = whole|--seqlen=4096 --heads=8
dilated_tiny|w / (n r^2) for the heads of a group with segments of w and rate r|--seqlen=16 --heads=8
LongNet: branches on every head
longnet|about 1024 / n + 512 / n, the branches added|--seqlen=8192 --heads=2
longnet_base|about 2133 / n, the branches added|--seqlen=65536 --heads=12
longnet_large|about 3840 / n, the branches added|--seqlen=131072 --heads=8
longnet_tiny|about 3.5 / n, the branches added|--seqlen=32 --heads=4
longvit_1k|124 / n, the branches added|--seqlen=1024 --heads=16
longvit_32k|12288 / n, the branches added|--seqlen=1048576 --heads=16
END
}

header() { sed -n 's,^// \{0\,1\},,p' "patterns/$1.mlir"; }

section() {
  local name=$1 density=$2 options=$3
  # shellcheck disable=SC2086 # options are words
  "$heddle" show "patterns/$name.mlir" $options -o "$folder/pictures/$name.svg" >/dev/null
  printf '\n### %s\n\n![the %s pattern](pictures/%s.svg)\n\n```text\n%s\n```\n\n' "$name" "$name" "$name" "$(header "$name")"
  printf 'Density (kept pairs of all pairs, n queries and keys): %s.\n' "$density"
  printf 'File: [patterns/%s.mlir](../patterns/%s.mlir). Picture: `heddle show patterns/%s.mlir %s -o %s.svg`.\n' \
    "$name" "$name" "$name" "$options" "$name"
}

missing() {
  comm -3 <(table | grep -F '|' | cut -d'|' -f1 | sort) <(basename -s .mlir patterns/*.mlir | sort)
}

[ -z "$(missing)" ] || { echo "patterns/ and the table of $0 differ in: $(missing | tr -s '\t\n' ' ')" >&2; exit 1; }
{
  cat <<'END'
# The patterns of the library

Queries run down, keys run across. Small pictures show every pair; in the larger ones a cell is a tile: *full* keeps all
its pairs, *full on its lattice* keeps all pairs of one residue class and is as dense for a kernel that loads at a
stride, *partial* keeps some, *skipped* none and is never loaded. Heads that look alike share a panel.

`docs/make-gallery.sh build/bin/heddle` writes this page and draws its pictures. `heddle explain` gives the exact
numbers for any sizes, `heddle diff` shows where two patterns disagree.
END
  table | while IFS='|' read -r name density options; do
    if [ -n "$options" ]; then section "$name" "$density" "$options"; else printf '\n## %s\n' "$name"; fi
  done
} >"$folder/gallery.md.new"
mv "$folder/gallery.md.new" "$folder/gallery.md"
