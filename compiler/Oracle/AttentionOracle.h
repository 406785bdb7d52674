// Owns what is right: single rows of attention in fp64 over the multiset of keys that PatternOracle keeps, the same
// rows by plain attention in the precision of the inputs, and the rule that says how far a kernel may be off
// (docs/verification.md). Nothing here is fast and nothing here knows tiles, ranges or pieces.
#pragma once

#include "compiler/Io/AttentionInputs.h"
#include "compiler/Oracle/ScoreOracle.h"

#include <functional>
#include <optional>

namespace heddle::oracle {

/// One row of the result.
struct RowId {
  int64_t batch = 0, head = 0, row = 0;
};

struct RowResult {
  std::vector<double> out; ///< value_dim values; all 0 if the row keeps no key
  double lse;              ///< natural logarithm; -infinity if the row keeps no key
  /// Of exact rows of fp32 inputs, and of e4m3 that tensor cores sum: what rounding every score and the result once changes at most.
  double scoreUnit = 0;
  /// What rounding lse and every score once in fp32, and sums of products as tensor cores do, changes of lse, to first order.
  double lseUnit = 0;
};

/// Inputs that may lie in no memory. Both functions are called by many threads at a time.
struct InputRows {
  AttentionSizes sizes;
  DType dtype;
  /// The elements of one head of a row of q, k or v, as fp32.
  std::function<void(Role role, const RowId &id, float *values)> read;
  /// What all of them are multiplied by; nothing: by none.
  std::function<float(Role role, const RowId &id)> descale = {};
  /// Keys that a row may keep, ascending; the definition is asked of these alone. Nothing: of all.
  std::function<std::vector<int64_t>(const RowId &id)> candidates = {};
  Precision precision = Precision::exact; ///< that the call has of products
  bool isOfTensorCores = false;           ///< what the rows are compared with; plain attention sums as they do
};
/// The rows of tensors, which outlive it.
InputRows inputRowsOf(const AttentionInputs &inputs);

/// Attention over one set of inputs. Thread safe where PatternOracle is.
class AttentionOracle {
public:
  /// `problem` must have the sizes of `inputs`.
  AttentionOracle(attn::PatternOp pattern, const Problem &problem, InputRows inputs, double scale);
  /// `problem` must have the sizes of `inputs`, which must outlive the oracle; `scale` multiplies q . k.
  AttentionOracle(attn::PatternOp pattern, const Problem &problem, const AttentionInputs &inputs, double scale);

  struct Rows {
    /// Everything in fp64.
    RowResult exact;
    /// As plain attention computes it in the inputs' precision: products accumulated in fp32, softmax in fp32, weights
    /// and output rounded to the inputs' type; of calls in tf32, operands of products to that; of fast ones weights and lse
    /// from bits; scores of e4m3 on a GPU summed
    /// as its tensor cores do (TensorCoreSum.h).
    RowResult plain;
  };
  /// Of one branch as if there were no other, and no sink.
  Rows bothRows(RowId id, std::optional<unsigned> branch = {}) const;

  const AttentionSizes &sizes() const { return inputs.sizes; }
  bool keeps(const RowId &id, int64_t key) const;
  /// Scores of plain attention are those of coarser products than fp32's.
  bool hasCoarseScores() const { return inputs.precision != Precision::exact || hasTensorCoreSums(); }
  /// Of a sum of weights of which each is off by up to 8.5%, and which tensor cores cut.
  double leastLseUnit() const { return inputs.precision == Precision::fast ? 0.05 : 0; }
  bool isThreadSafe() const { return pairs.isThreadSafe(); }

  /// `value` as a number of that type.
  static float rounded(double value, DType dtype);
  /// As an operand of a product of that precision.
  static float operand(float value, Precision precision);

private:
  /// A key of the row and the number of branches that keep it.
  struct Key {
    int64_t index;
    int copies;
  };
  /// What a row attends to: its keys, in order, and the score of its sink.
  struct Kept {
    std::vector<Key> keys;
    double sink;
  };
  Kept keptBy(RowId id, std::optional<unsigned> branch = {}) const;
  bool hasTensorCoreSums() const { return inputs.isOfTensorCores && traitsOf(inputs.dtype).isScaled(); }
  /// Rounds weights and output to `roundTo`, if that is given.
  template <class Number> RowResult attend(RowId id, const Kept &kept, std::optional<DType> roundTo) const;

  PatternOracle pairs;
  ScoreOracle chain;
  Problem problem;
  InputRows inputs;
  double scale;
};

struct VerifyReport {
  int64_t rowsChecked = 0;
  double maxError = 0; ///< max |K - R| over the checked rows, K the result under test, R Rows::exact
  /// 2 max |P - R| + 2 max U, P Rows::plain, U |(R + 0.3 - 0.3) - R| or, if it is more, R's scoreUnit
  double allowedError = 0;
  double maxLseError = 0;
  double allowedLseError = 1e-3; ///< or 2 max lseUnit, if that is more
  RowId worst;                   ///< where maxError was found
  RowId worstLse;
  bool ok = true; ///< both errors are within bounds and no value is NaN
};

/// What rows should be, computed once and compared with many results.
struct ReferenceRows {
  std::vector<RowId> rows;
  std::vector<RowResult> exact, plain; ///< in the order of `rows`
  DType dtype = DType::fp32;           ///< of the result under test
};
/// Both results of every row; rows are spread over `threads` threads (0: one per processor).
ReferenceRows referenceRows(const AttentionOracle &oracle, const std::vector<RowId> &rows, DType dtype,
                            int threads = 0);

/// Compares what `produced` yields for each reference row. A NaN counts as an infinite error.
VerifyReport compareRows(const ReferenceRows &reference, const std::function<RowResult(const RowId &)> &produced);

/// At most `count` different rows, always the same ones for the same sizes: the first and the last row of the
/// sequence first, then rows spread over heads, batch and sequence. All rows if there are no more than `count`.
std::vector<RowId> sampleRows(const AttentionSizes &sizes, int64_t count);

} // namespace heddle::oracle
