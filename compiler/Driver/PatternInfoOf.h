//===- PatternInfoOf.h - what users of a schedule's functions need -*- C++ -*-===//
#ifndef HEDDLE_COMPILER_DRIVER_PATTERNINFOOF_H
#define HEDDLE_COMPILER_DRIVER_PATTERNINFOOF_H

#include "codegen/Emit/PatternInfo.h"
#include "codegen/Schedule/AttentionSchedule.h"

namespace heddle {

inline PatternInfo patternInfoOf(const AttentionSchedule &schedule) {
  PatternInfo info;
  info.name = schedule.name;
  info.paramCount = static_cast<int>(schedule.parameters.size());
  info.variantCount = static_cast<int>(schedule.variants.size());
  info.branchCount = static_cast<int>(schedule.branchCount);
  info.hasScore = schedule.hasScore;
  info.hasSink = schedule.hasSink;
  for (int argument = 0; argument < info.paramCount; ++argument)
    if (const auto &operand = schedule.parameters[size_t(argument)].operand)
      info.operands.push_back({argument, operand->element});
  return info;
}

} // namespace heddle

#endif
