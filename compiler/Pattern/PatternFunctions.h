// Owns the way from a pattern file to what the CPU target and the text emitter are made from, for users who need
// nothing else of the schedule.
#pragma once

#include "codegen/Emit/PatternInfo.h"
#include "runtime/Core/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>

namespace heddle {

class PatternFile;
struct AttentionSchedule;

/// The functions of docs/architecture.md, section 2, in the context of the file, and the counts that go with them.
struct PatternFunctions {
  std::shared_ptr<const PatternInfo> info; ///< never null
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Walk::both: with derivatives of scores. Fails as PatternFile::schedule does.
Result<PatternFunctions> functionsOf(const PatternFile &file, Walk walk = Walk::queries);

PatternInfo patternInfoOf(const AttentionSchedule &schedule);

} // namespace heddle
