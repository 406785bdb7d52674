//===- ProgressLine.h - how far a search is, on stderr ----------*- C++ -*-===//
// Owns the one line that is rewritten while tuning. Silent when stderr is not a terminal.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_TOOLS_PROGRESSLINE_H
#define HEDDLE_COMPILER_TOOLS_PROGRESSLINE_H

#include "tuner/Search/TuningSession.h"

namespace heddle::cli {

class ProgressLine {
public:
  ProgressLine();
  void show(const tuner::Progress &progress);
  /// Leaves an empty line for what follows.
  void finish();

private:
  bool isTerminal, isShown = false;
};

} // namespace heddle::cli

#endif
