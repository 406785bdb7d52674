//===- ProgressLine.h - how far long work is, on stderr ----------*- C++ -*-===//
// Owns the one line that is rewritten during long work. Silent with --quiet and when stderr is not a terminal.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_TOOLS_PROGRESSLINE_H
#define HEDDLE_COMPILER_TOOLS_PROGRESSLINE_H

#include "tuner/Search/TuningSession.h"

#include <string>

namespace heddle::cli {

class ProgressLine {
public:
  ProgressLine();
  void show(const tuner::Progress &progress);
  /// `share` of the work is done, from 0 to 1.
  void show(double share, const std::string &text);
  /// Leaves an empty line for what follows.
  void finish();

private:
  bool isTerminal, isShown = false;
};

} // namespace heddle::cli

#endif
