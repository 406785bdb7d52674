//===- PatternModule.h - the generated functions of one pattern -------------===//
// Owns the list of the functions that codegen/Schedule generates for a pattern (docs/architecture.md,
// section 2): their names, their arguments in order and their types. The text emitter and the CPU
// target both check a module against this list before they touch it.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace heddle {

struct PatternInfo;
struct PatternOperand;

enum class PatternResult { none, i32, i1, f32 };

// One generated function. `arguments` follow the context where the function takes one; "out" is the
// memref<5xi32> that receives a range, "score" an f32, every other argument an i32; the tensors of the context are
// memrefs without an end (dialect/IR/Operands.h).
struct PatternFunction {
  const char *symbol;
  bool takesContext;
  std::vector<const char *> arguments;
  PatternResult result;
};

// The six functions that every pattern has, in the order in which they are emitted.
llvm::ArrayRef<PatternFunction> patternFunctions();

// The seventh function, which a module may lack: the kept columns of a tile as one word. Its attribute
// "heddle.branches" says for which branches it answers. It calls "columns_below", which only the text has: a skeleton
// defines it.
const PatternFunction &keptColumnsFunction();
inline constexpr llvm::StringLiteral kColumnsBelowSymbol = "columns_below";

// The same for the band of positions that alone cuts the squares of a pattern (dialect/Geometry/Grain.h); answers for
// all branches of the patterns that have it.
const PatternFunction &bandColumnsFunction();
bool hasBandColumns(mlir::ModuleOp module, const PatternFunction &words = bandColumnsFunction());

// One for each branch: `words`, a function of kept columns, answers for it.
std::vector<bool> branchesWithKeptColumns(mlir::ModuleOp module, const PatternInfo &info, const PatternFunction &words);

// How many documents the rows lie in, and where one begins; only in modules of patterns with documents, and there both.
const PatternFunction &documentCountFunction();
const PatternFunction &documentRowFunction();
bool hasDocumentRows(mlir::ModuleOp module);

// The functions of key tiles, which only modules for kernels that walk those have, and there all four; and their kept
// columns and the columns of the band, which such a module may lack.
llvm::ArrayRef<PatternFunction> transposedFunctions();
const PatternFunction &transposedKeptColumnsFunction();
const PatternFunction &transposedBandColumnsFunction();
bool hasTransposedFunctions(mlir::ModuleOp module);

// Takes words of columns and documents, which only kernels ask for, out of a module that is not for text.
void dropTextFunctions(mlir::ModuleOp module);

// The document of a query, which functions of its pairs take, so that it is looked up once; only in modules of patterns
// whose scores count positions inside documents. In others that argument says nothing.
const PatternFunction &scoreDocumentFunction();
bool hasScoreDocument(mlir::ModuleOp module);
inline constexpr const char *kScoreDocument = "score_document"; // the argument

// What a chain makes of a score, in a pattern that has one.
const PatternFunction &scoreFunction();

// The derivative of that with respect to scale * <q, k>; only in modules for kernels of backward passes.
const PatternFunction &scoreGradientFunction();
bool hasScoreGradient(mlir::ModuleOp module);

// The derivative of scores by an argument of the pattern, and the place of the element of it that a pair reads, as i64;
// only in modules for backward passes. The first is of the type of pattern_score, the second takes the positions and the document.
std::string argumentGradientSymbol(int argument);
std::string argumentPlaceSymbol(int argument);

// The score of the key without a value, in a pattern that has one.
const PatternFunction &sinkFunction();

// The functions of one pattern, in order.
std::vector<PatternFunction> functionsOf(const PatternInfo &info);

// batch, head, heads, seqlen_q, seqlen_k, q_origin, k_origin, then param_0 ... param_{P-1}: the words of a context.
std::vector<std::string> contextWordNames(const PatternInfo &info);

// The words, then operand_<argument> of every tensor.
std::vector<std::string> contextArgumentNames(const PatternInfo &info);

// The type of a tensor in a function.
mlir::MemRefType operandTypeOf(mlir::MLIRContext *context, const PatternOperand &operand);

// The names of all arguments of `function`, context first.
std::vector<std::string> argumentNames(const PatternFunction &function, const PatternInfo &info);

// Fails with a diagnostic at the module (function missing) or at the function (wrong type or no
// body) when the module is not what the list above says.
mlir::LogicalResult verifyPatternModule(mlir::ModuleOp module, const PatternInfo &info);

} // namespace heddle
