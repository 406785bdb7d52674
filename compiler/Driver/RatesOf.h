//===- RatesOf.h - what a pattern fixes for kernels --------------*- C++ -*-===//
// Owns the way from an analysed pattern to the rates, the grain and the hints that kernels are built for.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_DRIVER_RATESOF_H
#define HEDDLE_COMPILER_DRIVER_RATESOF_H

#include "compiler/Driver/PatternFile.h"

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
