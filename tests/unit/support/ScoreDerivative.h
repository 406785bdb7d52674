//===- ScoreDerivative.h - the derivative of a chain, compiled -----------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_SCOREDERIVATIVE_H
#define HEDDLE_TESTS_UNIT_SUPPORT_SCOREDERIVATIVE_H

#include "codegen/Cpu/JitPattern.h"
#include "codegen/Schedule/ScoreFunction.h"

#include "mlir/IR/SymbolTable.h"
#include <doctest/doctest.h>

namespace heddle::test {

// The functions of `pattern`, with the derivative in the place of the score.
inline JitPattern compileDerivative(mlir::ModuleOp functions, attn::PatternOp pattern, const PatternInfo &info) {
  mlir::OwningOpRef<mlir::ModuleOp> module = functions.clone();
  appendScoreDerivative(*module, pattern);
  module->lookupSymbol("pattern_score")->erase();
  mlir::SymbolTable::setSymbolName(module->lookupSymbol("pattern_score_derivative"), "pattern_score");
  auto jit = JitPattern::create(*module, info);
  REQUIRE(succeeded(jit));
  return *jit;
}

} // namespace heddle::test

#endif
