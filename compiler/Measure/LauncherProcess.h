//===- LauncherProcess.h - a call in a process without a compiler -*- C++ -*-===//
// Owns what bench/launcher is told and what it answers: the sizes of a call on its command line, the pattern's tensors
// in a file, results in another one. Inputs are not handed over: both processes draw them from the same seed.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Pattern/ProblemKey.h"

namespace heddle {

struct LauncherCall {
  std::string program, database;
  std::vector<std::string> shipped; ///< databases under that one; none: what $HEDDLE_SHIPPED_DB says
  std::string name;                 ///< under which the database leads to the pattern
  const KindSpec *kind = &kinds().front();
  DType dtype = kDefaultDType;
  int64_t headDim = 0, valueDim = 0;
  uint64_t seed = 0;
  int64_t repetitions = 1;
};

struct LauncherAnswer {
  std::string match; ///< how the kernel was found, in words
  double medianUs = 0;
  RoleTensors results;
};

/// Runs the program to its end. The shape has every tensor that the pattern reads (bindOperands). A process that fails
/// is an internal error with its status; what it says on stderr goes there. The files lie in the temporary folder
/// meanwhile.
Result<LauncherAnswer> launchElsewhere(const PatternFile &file, const ProblemShape &shape, const LauncherCall &call);

} // namespace heddle
