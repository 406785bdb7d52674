#!/usr/bin/env bash
# gallery.sh <root> <heddle>: docs/gallery.md and its pictures are what docs/make-gallery.sh writes today.
set -euo pipefail
root=$(readlink -f "$1") heddle=$(readlink -f "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bash "$root/docs/make-gallery.sh" "$heddle" "$scratch"
if ! diff -rq "$scratch/pictures" "$root/docs/pictures" || ! diff "$scratch/gallery.md" "$root/docs/gallery.md"; then
  echo "run: docs/make-gallery.sh build/bin/heddle"
  exit 1
fi
