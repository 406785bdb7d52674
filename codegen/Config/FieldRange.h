//===- FieldRange.h - which numbers a field may hold ------------------------------------===//
//
// Owns the rule that every skeleton puts first: stored or typed-in text may hold any number, so the
// ranges bound what all other rules compute with. A field that a skeleton does not read has the range
// 0 to 0.
//
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_CONFIG_FIELDRANGE_H
#define HEDDLE_CODEGEN_CONFIG_FIELDRANGE_H

#include "codegen/Config/KernelConfig.h"

#include <optional>
#include <vector>

namespace heddle {

struct FieldRange {
  int64_t KernelConfig::*field;
  int64_t least, most;
};

/// Products of three fields up to this stay far from an overflow.
inline constexpr int64_t kLargestField = 1 << 16;

/// The first numeric field outside its range, in list order: "stages is 9, expected 1 to 4". Fields that `ranges`
/// does not name must be 0.
std::optional<std::string> outsideRange(const KernelConfig &config, const std::vector<FieldRange> &ranges);

} // namespace heddle

#endif // HEDDLE_CODEGEN_CONFIG_FIELDRANGE_H
