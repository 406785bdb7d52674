//===- PassesOfFile.h - a file's pattern as kernels are chosen for it -*- C++ -*-===//
// Owns the way from a pattern file and its passes to what codegen/Choose takes.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_PATTERN_PASSESOFFILE_H
#define HEDDLE_COMPILER_PATTERN_PASSESOFFILE_H

#include "compiler/Pattern/PatternFile.h"

namespace heddle {

struct PatternRates;

/// What file.passes gives.
struct PassesOfFile {
  explicit PassesOfFile(const PatternFile &file) : passes(file.passes(whyNone)) {}
  std::string whyNone;
  std::vector<PatternFile::Pass> passes;
};

PatternRates ratesOf(const PatternFile &file, const PassesOfFile &passes);

} // namespace heddle

#endif
