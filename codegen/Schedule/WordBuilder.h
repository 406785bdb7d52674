// Owns how sets of columns are written: as limits for as long as possible, so that a conjunction of several bounds is
// one minimum and not several words.
#pragma once

#include "mlir/IR/Builders.h"

namespace heddle {

/// Called with an unsigned count of columns; which bit stands for which column is the definition's business.

/// slope * column + base, slope not 0; divided by `divisor`, rounded down, if there is one.
struct Line {
  int64_t slope = 0;
  mlir::Value base;
  mlir::Value divisor;
};

/// The columns c with c < below, c >= from and a bit in `other`, and none unless `when`; what is null says nothing.
/// Limits are i32 without a sign, `other` is a word, `when` an i1.
struct Word {
  mlir::Value below, from, other, when;
};

class WordBuilder {
public:
  WordBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);

  /// line < bound, or line <= bound; the line has no divisor.
  Word less(const Line &line, mlir::Value bound, bool orEqual);
  Word both(const Word &a, const Word &b);
  Word either(const Word &a, const Word &b);
  Word differ(const Word &a, const Word &b);
  Word negation(const Word &word);
  Word pick(mlir::Value condition, const Word &a, const Word &b);

  /// The i32 with one bit for each column.
  mlir::Value bits(const Word &word);

private:
  mlir::Value limit(mlir::Value low, mlir::Value high, int64_t slope);
  mlir::Value conjunction(mlir::Value a, mlir::Value b);
  mlir::Value inverted(mlir::Value word);
  mlir::Value choose(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value isLess(mlir::Value a, mlir::Value b);
  mlir::Value below(mlir::Value limit);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace heddle
