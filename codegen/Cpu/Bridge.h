// Owns the functions that are added to a pattern's module before it is compiled for the CPU: C++ can
// call them without knowing how many run-time sizes the pattern has.
#pragma once

#include "codegen/Schedule/PatternFunction.h"

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace heddle {

struct PatternInfo;

// The symbol of the entry point of a generated function.
std::string bridgeSymbol(const char *patternFunction);
inline constexpr const char *keepRowSymbol = "heddle_jit_keep_row";
inline constexpr const char *keepColumnSymbol = "heddle_jit_keep_column";
inline constexpr const char *scoreColumnSymbol = "heddle_jit_score_column";
inline constexpr const char *scoreRowSymbol = "heddle_jit_score_row";
inline constexpr const char *scoreGradientColumnSymbol = "heddle_jit_score_gradient_column";
inline constexpr const char *scoreGradientRowSymbol = "heddle_jit_score_gradient_row";

// Along queries, of an argument of the pattern: the derivatives of scores by it, or the places of elements.
std::string columnSymbol(Generated which, int argument);

// Where the pointers to tensors lie behind the address of a context.
inline constexpr int64_t contextPointerOffset = 160;

// Adds one entry point per generated function, with the context behind a pointer to its words, which its pointers
// follow, and i1 widened to i32, the two loops over pattern_keep, one over pattern_score if the pattern has it, and
// those of a backward pass over it and pattern_score_gradient if the module has that.
// Everything else becomes internal. The module must have passed verifyPatternModule.
void addBridgeFunctions(mlir::ModuleOp module, const PatternInfo &info);

} // namespace heddle
