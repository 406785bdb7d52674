"""parameters.py <most> <allowed> <file>...: prints "file:line: name takes N parameters" of each C++ function, declared or defined outside
of a body, that takes more than <most> and that the file <allowed> does not name with a reason. Bodies are not looked into. Lambdas and types
of functions have no name and are not counted."""
import re
import sys

_TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*"
                    r"|[A-Za-z_]\w*|[0-9][\w.']*|::|->|[^\sA-Za-z0-9_]|\n", re.S | re.M)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
# Before a group these make it no list of parameters.
_NO_NAMES = {"decltype", "alignas", "noexcept", "requires", "explicit", "__attribute__", "__launch_bounds__", "defined", "static_assert", "sizeof"}


def tokens(text):
    """(token, line), without comments, literals and the preprocessor."""
    line = 1
    for found in _TOKEN.finditer(text):
        token = found.group()
        if not (token.isspace() or token.startswith(("//", "/*")) or token.lstrip().startswith("#")):
            yield ('""' if token[0] in "\"'" or token.startswith('R"') else token), line
        line += token.count("\n")


def skip(of, at):
    """The place behind the group that begins at `at`."""
    depth = 0
    while at < len(of):
        depth += (of[at][0] in _CLOSING) - (of[at][0] in ")]}")
        at += 1
        if depth == 0:
            return at
    return at


def count(of, begin, end):
    """Parameters between the brackets; commas of groups and of template arguments are not between them."""
    if end - begin <= 2 or [token for token, _ in of[begin + 1:end - 1]] == ["void"]:
        return 0
    commas, angles, at = 0, 0, begin + 1
    while at < end - 1:
        token = of[at][0]
        if token in _CLOSING:
            at = skip(of, at)
            continue
        angles = max(0, angles + (token == "<") - (token == ">"))
        commas += token == "," and angles == 0
        at += 1
    return commas + 1


def parameters_of(of):
    """(name, line, number) of a declaration, None if it is not of a function."""
    angles, at = 0, 0
    while at < len(of):
        token, line = of[at]
        before = of[at - 1][0] if at else ""
        if token == "=" and "operator" not in (before, of[at - 2][0] if at > 1 else ""):
            return None
        if token == "(":
            end = skip(of, at)
            is_name = re.fullmatch(r"[A-Za-z_]\w*", before) and before not in _NO_NAMES or "operator" in [each for each, _ in of[max(0, at - 3):at]]
            if is_name and angles == 0 and of[at + 1][0] != "*":
                return before, line, count(of, at, end)
            at = end
            continue
        if token in "[{":
            at = skip(of, at)
            continue
        if "operator" not in [each for each, _ in of[max(0, at - 3):at]]:
            angles = max(0, angles + (token == "<") - (token == ">"))
        at += 1
    return None


def functions(of):
    """Of namespaces, classes and extern "C"."""
    statement, at = [], 0
    while at < len(of):
        token, _ = of[at]
        words = [each for each, _ in statement]
        if token == "(" or token == "[":
            end = skip(of, at)
            statement += of[at:end]
            at = end
        elif token == ";" or token == "}":
            if statement:
                yield parameters_of(statement)
            statement, at = [], at + 1
        elif token == "{":
            is_scope = "namespace" in words or words[:2] == ["extern", '""'] and "(" not in words or \
                any(word in ("class", "struct", "union") for word in words) and "(" not in words and "=" not in words
            if is_scope:
                statement, at = [], at + 1
                continue
            is_initial = words and (words[-1] in ("=", ",", "return") or re.fullmatch(r"[A-Za-z_]\w*|>", words[-1]) and "(" not in words)
            end = skip(of, at)
            ends_here = "(" in words and not is_initial
            if ":" in words and end < len(of) and of[end][0] in (",", "{"):  # a member's initial value
                ends_here = False
            if ends_here:
                yield parameters_of(statement)
                statement = []
            else:
                statement += of[at:end]
            at = end
        elif token == ":" and words and words[-1] in ("public", "private", "protected"):
            statement, at = [], at + 1
        else:
            statement.append(of[at])
            at += 1


def main(most, allowed, paths):
    with open(allowed, encoding="utf-8") as file:
        names = {line.split()[0] for line in file if line.strip() and not line.startswith("#")}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            of = list(tokens(file.read()))
        for found in functions(of):
            if found and found[2] > most and found[0] not in names:
                print(f"{path}:{found[1]}: {found[0]} takes {found[2]} parameters, at most {most} are read without counting; make a struct of those that belong together")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
