// Owns what code generation knows of a pattern: how rows and keys are split, and the module of pattern functions
// (docs/architecture.md, section 2) from which the CUDA text and the CPU code are both made.
#pragma once

#include "dialect/Analysis/PatternAnalysis.h"
#include "runtime/Core/DType.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace heddle {

struct ScheduleBranch {
  int64_t keyRate;
  bool masked;        ///< every visited tile evaluates the predicate
  std::string reason; ///< why, if masked
};
struct ScheduleVariant {
  int64_t queryRate;
  std::vector<ScheduleBranch> branches;
};

/// A tensor operand, whose word is its length.
struct ScheduleOperand {
  DType element;
  bool hasLength; ///< an extent that no size of the call gives
};

/// A run-time size of the pattern, a run-time number: its default is then a word (RealWord.h), or a tensor.
struct ScheduleParameter {
  std::string name, doc;
  std::optional<int64_t> defaultValue;
  int64_t minimum;
  bool isReal = false;
  double realMinimum = 0, realMaximum = 0; ///< of a number; may be infinite
  std::optional<ScheduleOperand> operand = {};
};

struct AttentionSchedule {
  std::string name;
  attn::Origin qOrigin;
  std::vector<ScheduleParameter> parameters;
  std::vector<ScheduleVariant> variants;
  unsigned branchCount;
  bool hasScore = false;   ///< a chain changes scores
  bool hasSink = false;    ///< every row has a key without a value
  int sinkArgument = -1;   ///< the argument that the sink comes from; -1: none
  bool isDetached = false; ///< gradients of out do not go through the weights of branches
  mlir::OwningOpRef<mlir::ModuleOp> functions;
};

/// `pattern` is verified and `analysis` is of it. Fails with a diagnostic at the op that has no form on the device.
llvm::FailureOr<AttentionSchedule> buildSchedule(attn::PatternOp pattern, const attn::PatternAnalysis &analysis);

/// Appends what backward passes need beside: pattern_score_gradient, where a chain changes scores, and the functions of
/// key tiles. Fails as buildSchedule does.
llvm::LogicalResult appendBackwardFunctions(mlir::ModuleOp functions, attn::PatternOp pattern,
                                            const attn::PatternAnalysis &analysis);

/// Appends the functions of key tiles and the queries that they visit, for kernels that walk those. `functions` are a
/// schedule's of the same pattern. Fails as buildSchedule does.
llvm::LogicalResult appendTransposedFunctions(mlir::ModuleOp functions, attn::PatternOp pattern,
                                              const attn::PatternAnalysis &analysis);

/// The dialects that the module of functions uses.
void loadScheduleDialects(mlir::MLIRContext &context);

} // namespace heddle
