//===- ProblemOptions.h - the sizes of one call on the command line -*- C++ -*-===//
// Owns --batch, --seqlen, --heads and their relatives for the verbs that make their own inputs.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_TOOLS_PROBLEMOPTIONS_H
#define HEDDLE_COMPILER_TOOLS_PROBLEMOPTIONS_H

#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Tools/Options.h"

namespace heddle::cli {

struct ProblemOptions {
  int64_t batch = 1, seqlen = 0, seqlenK = 0, heads = 1, kvHeads = 0;
  SizeOptions sizes;
  void add(CLI::App &command, bool withSeqlen);
  /// The shape of `file` at this length; checked.
  Result<ProblemShape> shape(const PatternFile &file) const;
};

/// --budget=SECONDS, "30s", "2m".
Result<double> parseSeconds(const std::string &text);

} // namespace heddle::cli

#endif
