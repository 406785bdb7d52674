// Owns what is right of a backward pass: gradients of single queries and keys in fp64, pair by pair, the same as plain
// attention computes them in the precision of the inputs, and the rule that says how far a result may be off
// (docs/verification.md).
#pragma once

#include "compiler/Oracle/KindOracle.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

namespace heddle::oracle {

/// One row of a gradient.
struct GradientRow {
  std::vector<double> exact, plain;
  std::vector<double> unit; ///< what rounding the result once, and every number on the way in fp32, changes
};

/// What the gradients of one key are made of.
struct KeyGradients {
  GradientRow dK, dV;
};

/// Knows the gradients of one call of kind backward. Thread safe where PatternOracle is.
class GradientOracle {
public:
  /// What `call` refers to must outlive the oracle; its inputs have d_out. Gradients of keys need the softmax of every
  /// row: recomputed from q, k and v where that is quick or branches have deltas of their own, else from the given out
  /// and lse, which gradients of queries, always recomputed, disagree with if they are of another call.
  explicit GradientOracle(const KindCall &call);
  ~GradientOracle();

  GradientRow ofQuery(RowId id) const;
  /// `id` names a row and a head of k.
  KeyGradients ofKey(RowId id) const;

  /// The gradient of a number of the pattern or of all elements of a tensor, in fp32. Every pair is looked at.
  GradientRow ofArgument(unsigned wanted) const;
  /// How many keys of `wanted` take a bearable time.
  int64_t affordableKeys(int64_t wanted) const;
  const AttentionSizes &sizes() const { return inputs.sizes; }
  bool isThreadSafe() const { return pairs.isThreadSafe(); }

private:
  /// One row's, as exact or plain attention has it.
  struct Softmax {
    double lse = 0;
    /// delta minus the gradient of lse, and what rounding changes: of each branch where these have their own, else one.
    std::vector<double> delta, unit;
    /// exp(score - lse); an lse that was given is rounded, and might make it pass 1.
    template <class Number> Number weightOf(Number score) const {
      return lse == -INFINITY ? Number(0) : std::exp(Number(std::min(double(score) - lse, 0.0)));
    }
  };
  struct Row {
    Softmax exact, plain;
  };
  struct Pair {
    RowId query;
    int64_t key;
    std::vector<unsigned> branches; ///< that keep it
  };
  template <class Number> struct Terms;

  Pair pairOf(RowId query, int64_t key) const;
  Row recomputedRow(RowId id) const;
  Row givenRow(const Pair &pair) const;
  const Row &rowOf(const Pair &pair, Row &room) const;
  RowResult givenResult(RowId id) const;
  template <class Number> void addDelta(Softmax &softmax, RowId id, const RowResult &result) const;
  /// By the score, or by an argument of the pattern.
  template <class Number>
  Terms<Number> termsOf(const Pair &pair, const Softmax &softmax, std::optional<unsigned> by = {}) const;
  template <class Number> Terms<Number> sinkTerms(RowId id, const Softmax &softmax) const;
  float rounded(float value) const {
    return AttentionOracle::operand(AttentionOracle::rounded(value, inputs.dtype()), inputs.precision);
  }
  double rounded(double value) const { return value; }
  /// A sum of weights in tf32, which were rounded at another maximum than those of plain attention.
  bool isOutRounded() const { return inputs.precision != Precision::exact; }
  /// What rounding out changes of a delta that is a sum of so large products of random signs.
  double roundingOfOut(double size) const;
  /// Rounds the rows, adds what that changes.
  void finish(GradientRow &row, double factor, DType dtype) const;

  /// What pairs multiply: of plain attention, with products of rounded operands, these.
  void roundOperands();
  template <class Number> const AttentionInputs &operands() const {
    return std::is_same_v<Number, float> && roundedInputs ? *roundedInputs : inputs;
  }

  const AttentionInputs &inputs;
  std::unique_ptr<AttentionInputs> roundedInputs; ///< null: plain attention multiplies the inputs
  AttentionOracle attention;
  PatternOracle pairs;
  ScoreOracle chain;
  Problem problem;
  double scale;
  bool isDetached;
  /// Has all rows, in the order of lse, where they are recomputed for gradients of keys too.
  struct RowCache;
  std::unique_ptr<RowCache> cache;
};

/// Gradients of sampled queries and keys, computed once and compared with many results.
struct ReferenceGradients {
  std::vector<RowId> queries, keys;
  std::vector<GradientRow> dQ, dK, dV; ///< in their order
  std::vector<GradientRow> arguments;  ///< in the order of the call's; none where pairs are too many
};
/// `count` of each (sampleRows), spread over `threads` threads (0: one per processor).
ReferenceGradients referenceGradients(const KindCall &call, int64_t count, int threads = 0);

} // namespace heddle::oracle
