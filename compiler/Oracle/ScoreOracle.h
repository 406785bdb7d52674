//===- ScoreOracle.h - the definition of a chain of scores ----------------===//
// Evaluates score ops one after the other by their definitions. Shares no code with buildScore: a disagreement is a bug
// in one of the two.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_ORACLE_SCOREORACLE_H
#define HEDDLE_COMPILER_ORACLE_SCOREORACLE_H

#include "compiler/Oracle/PatternOracle.h"

#include <optional>

namespace heddle::oracle {

/// Positions, not indices.
struct ScorePlace {
  int64_t batch, head, q, k;
};

/// The pattern must have passed verification, stay as it is, and outlive the oracle.
class ScoreOracle {
public:
  ScoreOracle(attn::PatternOp pattern, const Problem &problem);

  /// What the chain makes of scale * <q, k>, in double (the definition) or in float (as plain attention computes it).
  template <class Number> Number score(const ScorePlace &at, Number scaled) const;

  /// The score of the key without a value in rows of this head, if the pattern has one.
  std::optional<double> sink(int64_t head) const;

  /// The derivative of `score` at `scaled`, by the rules of differentiation in fp64; where the score is -inf, any number.
  double slope(const ScorePlace &at, double scaled) const;

private:
  template <class Number> Number change(mlir::Operation *op, const ScorePlace &at, Number score) const;
  double number(mlir::Value dynamic, mlir::FloatAttr constant) const;
  double biasAt(attn::BiasOp op, const ScorePlace &at) const;
  double relativeAt(attn::RelativeOp op, const ScorePlace &at) const;

  llvm::SmallVector<mlir::Operation *> links;
  attn::SoftmaxOp softmax;
  Problem problem;
};

/// What a region makes of a score: reals in `Number`, integers folded op by op. Throws std::logic_error where it has no
/// value (an integer division by zero).
template <class Number>
Number evaluateScoreMap(attn::ScoreMapOp map, const ScorePlace &at, Number score,
                        const std::vector<int64_t> &parameters);

/// The slope of each of `heads` heads in ALiBi.
std::vector<double> alibiSlopes(int64_t heads);

} // namespace heddle::oracle

#endif
