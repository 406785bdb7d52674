// Owns the two forms of `heddle explain`. Field names of the JSON object are relied on by other programs: add, never
// rename. Integers beyond 64 bits are decimal strings, and then `big_integers` is true.
#pragma once

#include "compiler/Views/Explanation.h"
#include "compiler/Views/Quality.h"

namespace heddle::views {

/// "66.00 KiB"
std::string bytesText(double bytes);

/// One JSON object, indented, with a final newline.
std::string explanationJson(const PatternFile &file, const ExplainRequest &request, const Explanation &explanation,
                            bool withConfigs, const Quality *quality = nullptr);
std::string explanationText(const PatternFile &file, const ExplainRequest &request, const Explanation &explanation,
                            bool withConfigs);

} // namespace heddle::views
