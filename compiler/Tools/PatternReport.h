// Owns the description of an analysed pattern, as text and as JSON: sizes, head groups, rates, and which parts are
// evaluated pair by pair and why.
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "compiler/Tools/Output.h"

namespace heddle::cli {

/// "head group 0, branch 1, piece 2 (keys up to 63): why" for every piece without a closed form, and for every branch
/// whose pieces cannot be kept apart. Empty: the pattern is structural.
std::vector<std::string> maskedParts(const PatternFile &file);

/// "line 5: 22.0 times ..." if the pattern has a cliff (Cliff.h) with the sizes that it gives itself, for one head of
/// each group, at the length and the tiles that the text names. None also where it gives not all of its sizes.
std::optional<std::string> cliffLine(const PatternFile &file);

struct PatternReport {
  /// {"name", "q_origin", "combine", "parameters", "branches", "variants", "masked"}; a variant is a choice of head
  /// group.
  Json json;
  std::string text; ///< indented lines, each ending with a newline
};

/// Fails as PatternFile::schedule does.
Result<PatternReport> reportOf(const PatternFile &file);

} // namespace heddle::cli
