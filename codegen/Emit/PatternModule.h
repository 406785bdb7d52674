// Owns what a module of generated functions is held against before the text emitter and the CPU target touch it: the
// rows of the table of functions that its pattern has, and how their arguments are called.
#pragma once

#include "codegen/Schedule/PatternFunction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace heddle {

struct PatternInfo;
struct PatternOperand;

bool hasKeyTiles(mlir::ModuleOp module);

// A module of the pattern must have the function.
bool isRequired(const PatternFunction &function, const PatternInfo &info, bool hasKeyTiles);

// One for each branch: `words`, a function of kept columns, answers for it.
std::vector<bool> branchesWithKeptColumns(mlir::ModuleOp module, const PatternInfo &info, Generated words);

// Takes words of columns and documents, which only kernels ask for, out of a module that is not for text.
void dropTextFunctions(mlir::ModuleOp module);

// batch, head, heads, seqlen_q, seqlen_k, q_origin, k_origin, then param_0 ... param_{P-1}: the words of a context.
std::vector<std::string> contextWordNames(const PatternInfo &info);

// The words, then operand_<argument> of every tensor.
std::vector<std::string> contextArgumentNames(const PatternInfo &info);

// The type of a tensor in a function.
mlir::MemRefType operandTypeOf(mlir::MLIRContext *context, const PatternOperand &operand);

// The names of all arguments of `function`, context first.
std::vector<std::string> argumentNames(const PatternFunction &function, const PatternInfo &info);

// Fails with a diagnostic at the module (function missing) or at the function (wrong type or no
// body) when the module is not what the table says.
mlir::LogicalResult verifyPatternModule(mlir::ModuleOp module, const PatternInfo &info);

} // namespace heddle
