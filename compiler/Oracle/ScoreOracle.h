// Evaluates score ops one after the other by their definitions. Shares no code with buildScore: a disagreement is a bug
// in one of the two.
#pragma once

#include "compiler/Oracle/Dual.h"
#include "compiler/Oracle/PatternOracle.h"

#include <optional>

namespace heddle::oracle {

/// Positions of the call, not indices.
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

  /// The derivative by an argument of the pattern, a number or the element of a tensor that the pair reads.
  double slopeBy(unsigned argument, const ScorePlace &at, double scaled) const;
  /// The place of that element; 0 of a number. Nothing: the chain does not read the argument.
  std::optional<int64_t> elementOf(unsigned argument, const ScorePlace &at) const;
  /// The sink is this argument, or an element of it.
  bool isSink(unsigned argument) const;

private:
  /// `by`: the argument of the pattern that a Dual has its derivative by, or -1.
  template <class Number> Number change(mlir::Operation *op, const ScorePlace &at, Number score, int by) const;
  double number(mlir::Value dynamic, mlir::FloatAttr constant) const;
  /// Tensors of the documents inside which scores count positions.
  struct Documents {
    mlir::Value ofQueries, ofKeys, used;
    bool isEnd = false; ///< the last query of a document stands at its last key
  };
  std::optional<Documents> findDocuments(attn::PatternOp pattern) const;
  /// The positions that scores count.
  ScorePlace counted(const ScorePlace &at) const;
  int64_t biasPlace(attn::BiasOp op, const ScorePlace &at) const;
  int64_t relativePlace(attn::RelativeOp op, const ScorePlace &pair) const;

  llvm::SmallVector<mlir::Operation *> links;
  attn::SoftmaxOp softmax;
  Problem problem;
  std::optional<Documents> documents;
};

/// A constant of `Number`, an argument of the pattern or nothing: one that a Dual has its derivative by, if it is `by`.
template <class Number> Number numberOf(double value, mlir::Value argument, int by) {
  if constexpr (std::is_same_v<Number, Dual>)
    return Dual(value, argument && int(llvm::cast<mlir::BlockArgument>(argument).getArgNumber()) == by);
  else
    return Number(value);
}

/// What a region makes of a score: reals in `Number`, integers folded op by op. Throws std::logic_error where it has no
/// value (an integer division by zero).
template <class Number>
Number evaluateScoreMap(attn::ScoreMapOp map, const ScorePlace &at, Number score,
                        const std::vector<int64_t> &parameters, int by = -1);

/// The slope of each of `heads` heads in ALiBi.
std::vector<double> alibiSlopes(int64_t heads);

} // namespace heddle::oracle
