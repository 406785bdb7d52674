// Knows of MLIR's syntax only what opens and closes, strings and comments. Signs count as well: an affine expression
// descends for each.
#include "compiler/Pattern/PatternSource.h"

#include <algorithm>

namespace heddle {
namespace {

/// The end of the string or comment that begins at `begin`, or `begin` where neither does.
size_t skipQuoted(const std::string &text, size_t begin) {
  if (text.compare(begin, 2, "//") == 0)
    return std::min(text.find('\n', begin), text.size());
  if (text[begin] != '"')
    return begin;
  for (size_t i = begin + 1; i < text.size() && text[i] != '\n'; ++i)
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  return text.size(); // the parser says what is wrong
}

} // namespace

Status checkPatternText(const std::string &text, const std::string &label) {
  if (text.size() > kMaxPatternBytes)
    return Status::invalidArgument(label + ": error: expected at most " + std::to_string(kMaxPatternBytes) +
                                   " bytes, got " + std::to_string(text.size()));
  int open = 0, signs = 0, line = 1;
  for (size_t i = 0; i < text.size();) {
    if (size_t end = skipQuoted(text, i); end != i) {
      i = end;
      continue;
    }
    const char c = text[i++];
    line += c == '\n';
    const bool isArrow = c == '-' && i < text.size() && text[i] == '>';
    if (isArrow)
      ++i;
    open += c == '(' || c == '[' || c == '{' || c == '<';
    open -= open > 0 && (c == ')' || c == ']' || c == '}' || c == '>');
    signs = c == '-' && !isArrow ? signs + 1 : c == ' ' || c == '\n' || c == '\t' || c == '\r' ? signs : 0;
    if (open > kMaxBrackets || signs > kMaxBrackets)
      return Status::invalidArgument(label + ":" + std::to_string(line) + ": error: expected at most " +
                                     std::to_string(kMaxBrackets) +
                                     (open > kMaxBrackets ? " open brackets" : " signs in a row"));
  }
  return {};
}

} // namespace heddle
