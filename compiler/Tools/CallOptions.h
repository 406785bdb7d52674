// Owns the options that say which call of which pattern is meant, as text too: tables and reports name calls by it.
#pragma once

#include "compiler/Tools/Options.h"

namespace heddle::cli {

/// A pattern, a call and the kernels that may serve it.
struct CallOptions {
  PatternOptions pattern;
  ProblemOptions problem;
  ShapeOptions shape;
  ConfigOptions config;

  void add(CLI::App &command);
  /// As `add` takes it, on one line.
  std::string text() const;
  /// What is read of it: the pattern, its tensors.
  std::vector<std::string> files() const;
  /// The inverse. invalidArgument: what the options do not take.
  static Result<CallOptions> parse(const std::string &text);
};

/// Says what the problem names and there is not: pattern, sizes, tensors. Ok, or the exit code.
int checkNames(const CallOptions &problem);

} // namespace heddle::cli
