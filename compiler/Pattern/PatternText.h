//===- PatternText.h - what may be handed to the parser ---------*- C++ -*-===//
#ifndef HEDDLE_COMPILER_PATTERN_PATTERNTEXT_H
#define HEDDLE_COMPILER_PATTERN_PATTERNTEXT_H

#include "runtime/Core/Status.h"

#include <string>

namespace heddle {

constexpr size_t kMaxPatternBytes = 1 << 20;
constexpr int kMaxBrackets = 128; ///< one inside the other

/// What a text is called in messages: the name of its file, "<stdin>" for "-".
inline std::string sourceName(const std::string &path) { return path == "-" ? "<stdin>" : path; }

/// MLIR's parser descends with its input and has no limit of its own. invalidArgument, as label:line: error: ..., for a
/// text that is too long, or that is nested so deeply that the parser could run out of stack.
Status checkPatternText(const std::string &text, const std::string &label);

} // namespace heddle

#endif
