//===- PatternFunctions.cpp - the generated functions of a file -----------===//
#include "compiler/Pattern/PatternFunctions.h"
#include "codegen/Schedule/AttentionSchedule.h"
#include "compiler/Pattern/PatternFile.h"

namespace heddle {

PatternInfo patternInfoOf(const AttentionSchedule &schedule) {
  PatternInfo info;
  info.name = schedule.name;
  info.paramCount = static_cast<int>(schedule.parameters.size());
  info.variantCount = static_cast<int>(schedule.variants.size());
  info.branchCount = static_cast<int>(schedule.branchCount);
  info.hasScore = schedule.hasScore;
  info.hasSink = schedule.hasSink;
  info.sinkArgument = schedule.sinkArgument;
  info.isDetached = schedule.isDetached;
  for (int argument = 0; argument < info.paramCount; ++argument)
    if (const auto &operand = schedule.parameters[size_t(argument)].operand)
      info.operands.push_back({argument, operand->element});
  return info;
}

Result<PatternFunctions> functionsOf(const PatternFile &file, Walk walk) {
  HEDDLE_ASSIGN(AttentionSchedule schedule, file.schedule());
  if (walk == Walk::both && failed(appendBackwardFunctions(*schedule.functions, file.lowered(), file.analysis())))
    return Status::invalidArgument(file.takeDiagnostics());
  return PatternFunctions{std::make_shared<const PatternInfo>(patternInfoOf(schedule)), std::move(schedule.functions)};
}

} // namespace heddle
