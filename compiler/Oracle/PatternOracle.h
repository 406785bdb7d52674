// Decides kept pairs by walking the pattern's ops and evaluating each op's definition on 64-bit integers. Shares no
// code with the analysis or with buildPredicate: a disagreement is a bug in one of the three.
#pragma once

#include "compiler/Io/OperandTensor.h"
#include "dialect/IR/Attn.h"

#include <vector>

namespace heddle::oracle {

/// Concrete sizes of one call; `parameters` has one value per argument of the pattern, `operands` its tensors.
struct Problem {
  int64_t heads = 1, seqlenQ = 0, seqlenK = 0, qOrigin = 0, kOrigin = 0;
  std::vector<int64_t> parameters = {};
  Operands operands = {};
};

/// The pattern must have passed verification, stay as it is, and outlive the oracle.
class PatternOracle {
public:
  PatternOracle(attn::PatternOp pattern, Problem problem);

  /// True unless a predicate has to be folded in a context that allows one thread only.
  bool isThreadSafe() const;

  /// 1 for a union; else the operands of the softmax, each of which counts a kept key once.
  unsigned branchCount() const;

  /// Row i, key j (indices, not positions). Throws std::logic_error for a predicate that has no value there (a
  /// division by zero).
  bool keeps(unsigned branch, int64_t head, int64_t i, int64_t j, int64_t batch = 0) const;

private:
  /// A pair in the coordinates of one pullback.
  struct Local {
    int64_t q, k, extentQ, extentK, batch, head, group;
  };

  int64_t size(mlir::OperandRange dynamic, llvm::ArrayRef<int64_t> sizes, unsigned index) const;
  template <class Op> int64_t offset(Op op, const Local &at) const;
  const OperandTensor &tensorOf(mlir::Value argument) const;
  int64_t groupOf(int64_t head, int64_t groups) const;
  bool evaluate(mlir::Value mask, const Local &at) const;
  bool evaluateComposite(mlir::Operation *op, const Local &at) const;
  bool evaluateSegment(attn::SegmentOp op, const Local &at) const;
  bool evaluateCsr(attn::CsrOp op, const Local &at) const;
  bool evaluateTree(attn::TreeOp op, const Local &at) const;
  bool evaluateDocuments(attn::DocumentsOp op, const Local &at) const;
  bool evaluateDilate(attn::DilateOp op, const Local &at) const;
  bool evaluateRandom(attn::RandomOp op, const Local &at) const;

  mutable attn::PatternOp pattern;
  Problem problem;
  int64_t extentQ, extentK; ///< where positions end: those of the call, or of the whole that it is a part of
};

/// The value of a predicate's region, found by folding one op after the other on constants.
bool evaluatePredicate(attn::PredicateOp op, llvm::ArrayRef<int64_t> arguments);

/// pi_t(cell) of docs/language.md, "Random cells": a permutation of [0, extent), found by its definition. `head` is -1
/// for permutations that all heads share.
int64_t randomCell(int64_t seed, int64_t head, int64_t t, int64_t extent, int64_t cell);

} // namespace heddle::oracle
