# Finds calls with two or more arguments that build operations: a compiler may evaluate the arguments of a call in any
# order, and the order of operations is that of the emitted text. Braces are ordered. Read twice, with `pass=1` and
# `pass=2` before the same files: the first collects who builds, every function and lambda that returns a value.
BEGIN {
  split("a t of result operand context parameter extra lookup contextSymbol symbolValue wordOf getChanged dynamicSize swapped", names, " ")
  for (i in names) looksUp[names[i]] = 1 # return values that are there
}

FNR == 1 { depth = 0; inComment = 0 }

{
  line = $0
  gsub(/\\./, "", line); gsub(/"[^"]*"/, "\"\"", line); gsub(/'[^']*'/, "0", line)
  sub(/\/\/.*/, "", line)
}

pass == 1 {
  rest = line
  while (match(rest, /(^|[^A-Za-z_])(Value|Word|KeyRun|PieceRun|Carried)[ \t]+([A-Za-z_]+::)?[A-Za-z_][A-Za-z_0-9]*\(/)) {
    name = substr(rest, RSTART, RLENGTH - 1); rest = substr(rest, RSTART + RLENGTH)
    sub(/.*[ \t:]/, "", name)
    if (!(name in looksUp)) builds[name] = 1
  }
  if (match(line, /auto [A-Za-z_][A-Za-z_0-9]* = \[/)) {
    name = substr(line, RSTART + 5, RLENGTH - 9)
    if (!(name in looksUp)) builds[name] = 1
  }
  next
}

function enter(isCall, doesBuild) {
  ++depth
  call[depth] = isCall; building[depth] = doesBuild; startLine[depth] = FNR
  count[depth] = 0; hasBuilt[depth] = 0; isLambda[depth] = 0
}

# One argument is over.
function separate() {
  count[depth] += hasBuilt[depth]; hasBuilt[depth] = 0; isLambda[depth] = 0
}

function leave(   doesBuild, any) {
  if (depth == 0) return
  separate()
  any = count[depth] > 0
  if (call[depth] && count[depth] > 1)
    print FILENAME ":" startLine[depth] ": " count[depth] " arguments of one call build operations; name all but one of them before it"
  doesBuild = building[depth] || any
  --depth
  if (depth > 0 && doesBuild && !isLambda[depth]) hasBuilt[depth] = 1
}

{
  previous = ""
  while (line != "") {
    if (match(line, /^[A-Za-z_][A-Za-z_0-9]*/)) {
      previous = substr(line, 1, RLENGTH); line = substr(line, RLENGTH + 1)
      # The template arguments of a call belong to its name.
      if (match(line, /^<[A-Za-z_0-9:, ]*>\(/)) line = substr(line, RLENGTH)
      continue
    }
    c = substr(line, 1, 1); line = substr(line, 2)
    if (c == "(") enter(previous !~ /^(if|for|while|switch|return)$/, (previous == "create" || previous == "make" || previous == "clone" || previous in builds))
    else if (c == "{") enter(0, 0)
    else if (c == "[") { if (depth > 0 && previous == "") isLambda[depth] = 1; enter(0, 0) }
    else if (c == ")" || c == "}" || c == "]") leave()
    else if (c == "," || c == ";") { if (depth > 0) separate() }
    if (c !~ /[ \t]/) previous = ""
  }
}
