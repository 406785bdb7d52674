// Owns the library inside the program, the files of patterns/, and the one rule by which every verb and plan finds a
// pattern: a file of that name if there is one, else the pattern of the library that is called so.
#pragma once

#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "runtime/Core/Status.h"

#include <string>
#include <vector>

namespace heddle {

/// patterns/*.mlir in ascending order of names, "causal.mlir" and its text.
const std::vector<EmbeddedFile> &libraryPatterns();

/// "causal", "sliding_window", in that order.
std::vector<std::string> libraryPatternNames();

struct PatternSource {
  std::string label;            ///< what diagnostics call it: the path, or "library:causal"
  std::string path;             ///< of the file; "-" is standard input; "" if it is of the library
  std::string_view libraryText; ///< if path is empty

  /// In words, for people who ask where it came from.
  std::string origin() const;
};

/// `word` is a path, "-", the name of a pattern of the library, or "library:NAME", which no file can take the place of.
/// notFound: none of these; the message says what was probably meant. A folder is no file.
Result<PatternSource> findPattern(const std::string &word);

constexpr size_t kMaxPatternBytes = 1 << 20;
constexpr int kMaxBrackets = 128; ///< one inside the other

/// What a text is called in messages: the name of its file, "<stdin>" for "-".
inline std::string sourceName(const std::string &path) { return path == "-" ? "<stdin>" : path; }

/// MLIR's parser descends with its input and has no limit of its own. invalidArgument, as label:line: error: ..., for a
/// text that is too long, or that is nested so deeply that the parser could run out of stack.
Status checkPatternText(const std::string &text, const std::string &label);

} // namespace heddle
