#!/usr/bin/env bash
# readme_example.sh <root> <heddle>: runs the worked example of README.md as a reader would. The blocks
# between the markers <!-- example --> and <!-- /example --> count: "```mlir NAME" is written to a file
# of that name, lines of "```sh" that begin with "$ " are run one by one in a scratch folder, and what
# the README shows below a command must be what it prints. Times differ: "..." stands for anything.
set -euo pipefail
root=$(readlink -f "$1") heddle=$(readlink -f "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/build/bin"
ln -s "$heddle" "$scratch/build/bin/heddle"
ln -s "$root/patterns" "$scratch/patterns"
[ ! -e "$(dirname "$heddle")/../nvrtc" ] || ln -s "$(dirname "$heddle")/../nvrtc" "$scratch/build/nvrtc"
cd "$scratch"

command='' shown='' kind='' commands=0 failed=0

# The command that was read, and what the README shows below it.
finish_command() {
  [ -n "$command" ] || return 0
  local printed
  if ! printed=$(bash -c "$command" 2>stderr); then
    printf 'FAIL: $ %s\n%s\n' "$command" "$(cat stderr)"
    failed=1
  elif ! matches "$printed"; then
    printf 'FAIL: $ %s\nREADME.md shows:\n%sit prints:\n%s\n' "$command" "$shown" "$printed"
    failed=1
  fi
  commands=$((commands + 1))
  command='' shown=''
}

squeeze() { sed -E 's/[[:space:]]+/ /g; s/ $//'; }

# Every shown line occurs among the printed ones, in order; "..." matches anything.
matches() {
  local line pattern printed
  mapfile -t printed < <(squeeze <<<"$1")
  local at=0
  while IFS= read -r line; do
    if [ -z "$line" ] || [ "$line" = ... ]; then continue; fi
    pattern=$(sed -E 's/[][\\*?]/\\&/g; s/\.\.\./*/g' <<<"$line")
    # shellcheck disable=SC2053 # the shown line is a pattern
    while [ $at -lt ${#printed[@]} ] && [[ ${printed[at]} != $pattern ]]; do at=$((at + 1)); done
    [ $at -lt ${#printed[@]} ] || return 1
    at=$((at + 1))
  done < <(squeeze <<<"$shown")
}

while IFS= read -r line; do
  case $kind:$line in
    ':```mlir '*) kind=file:${line#'```mlir '}; : >"${kind#file:}" ;;
    ':```sh') kind=shell ;;
    file:*':```' | shell:'```') finish_command; kind='' ;;
    file:*) printf '%s\n' "$line" >>"${kind#file:}" ;;
    shell:'$ '*) finish_command; command=${line#'$ '} ;;
    shell:*) shown+=$line$'\n' ;;
  esac
done < <(sed -n '/<!-- example -->/,/<!-- \/example -->/p' "$root/README.md")

[ $commands -gt 0 ] || { echo "FAIL: README.md has no example"; exit 1; }
echo "$commands commands of README.md ran"
exit $failed
