#include "compiler/Pattern/PatternFunctions.h"
#include "codegen/Schedule/AttentionSchedule.h"
#include "compiler/Pattern/PatternFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heddle {

/// Whether the function that says which pairs are kept asks for the head.
static bool keepsByHead(mlir::ModuleOp functions) {
  constexpr unsigned kHead = 1; // behind the batch
  auto keep = functions.lookupSymbol<mlir::func::FuncOp>("pattern_keep");
  return !keep || !keep.getArgument(kHead).use_empty();
}

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
  info.keepsByHead = keepsByHead(*schedule.functions);
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
