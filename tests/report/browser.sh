#!/usr/bin/env bash
# browser.sh <heddle> <report-database> <folder> [pictures]: makes databases, has the page of them written and checks it in a
# real browser with the network off (browser.py). Skipped, with the reason, where there is no browser.
set -euo pipefail
heddle=$1 make_database=$2 folder=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if ! python3 -B "$here/browser.py" --find; then exit 0; fi
rm -rf "$folder"
mkdir -p "$folder"
"$make_database" "$folder"
problems=()
while IFS= read -r line; do problems+=("--problem=$line"); done <"$folder/problems.txt"
inputs=(--db="$folder/here.db" --against="$folder/there.db" "${problems[@]}")
"$heddle" report "${inputs[@]}" -o "$folder/report.html"
"$heddle" report "${inputs[@]}" --json >"$folder/report.json"
exec python3 -B "$here/browser.py" "$folder/report.html" "$folder/report.json" ${4:+"$4"}
