// Owns what is kept of a pattern between its preparation, once, and the compilation of its variants.
#pragma once

#include "compiler/Pattern/StageTimes.h"

#include <memory>
#include <string>
#include <vector>

namespace heddle {

struct CountedPattern;
struct PatternRates;

/// The generated CUDA functions and struct Pattern.
struct PatternText {
  std::string usual;
  std::string exact; ///< of kernels with exact products of floats; empty: as usual
  const std::string &of(bool isExact) const { return isExact && !exact.empty() ? exact : usual; }
  bool operator==(const PatternText &other) const { return usual == other.usual && exact == other.exact; }
};

/// All that variants need of a pattern: immutable text and numbers. Cheap to copy but for the text.
struct PreparedPattern {
  std::string name;
  std::string digest; ///< PatternFile::digest()
  PatternText functions;
  /// the same of each pass; none without passes, or if only defaults were wanted, which do not chain them
  std::vector<PatternText> passFunctions;
  std::vector<std::string> parameterNames;       ///< of the run-time sizes, in order of param<i>
  std::string note;                              ///< what is evaluated pair by pair and why; empty if nothing
  StageTimes times;                              ///< parse, analyse, schedule, emit, passes, digest
  std::shared_ptr<const PatternRates> rates;     ///< never null
  std::shared_ptr<const CountedPattern> counted; ///< never null
};

/// Its kernels leave out masks because whole blocks of pairs are kept or dropped.
bool reliesOnBlocks(const PreparedPattern &prepared);
/// The same pattern, with kernels that mask its blocks, so that calls may cut them.
PreparedPattern withoutBlocks(PreparedPattern prepared);

} // namespace heddle
