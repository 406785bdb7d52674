//===- FieldRange.cpp - which numbers a field may hold ----------------------------------===//
#include "codegen/Config/FieldRange.h"

#include <type_traits>

namespace heddle {
namespace {

FieldRange rangeOf(int64_t KernelConfig::*field, const std::vector<FieldRange> &ranges) {
  for (const FieldRange &range : ranges)
    if (range.field == field)
      return range;
  return {field, 0, 0};
}

std::string expectation(const FieldRange &range) {
  const std::string least = std::to_string(range.least);
  return least + (range.most == range.least ? "" : " to " + std::to_string(range.most));
}

} // namespace

std::optional<std::string> outsideRange(const KernelConfig &config, const std::vector<FieldRange> &ranges) {
  std::optional<std::string> reason;
  KernelConfig::fields([&](const char *name, auto member) {
    if constexpr (std::is_same_v<decltype(member), int64_t KernelConfig::*>) {
      const FieldRange range = rangeOf(member, ranges);
      const int64_t value = config.*member;
      if (!reason && (value < range.least || value > range.most))
        reason = std::string(name) + " is " + std::to_string(value) + ", expected " + expectation(range);
    }
  });
  return reason;
}

} // namespace heddle
