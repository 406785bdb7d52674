// Owns the expressions of a LaunchPlan: grid, bytes and argument values as functions of the sizes of
// one call. Values are int64; overflow and division by zero are failures, never wrapped. Text is
// function notation without spaces: ceildiv(seqlen_q,128). Symbol names are docs/architecture.md 4.
#pragma once

#include "runtime/Core/Kinds.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// The sizes of a call, by the numbers of RoleExtent; then what else expressions know of it.
enum class LaunchSymbol : uint8_t {
#define HEDDLE_SIZE_NAME(identifier, ...) identifier,
  HEDDLE_SIZES(HEDDLE_SIZE_NAME, HEDDLE_SIZE_NAME)
#undef HEDDLE_SIZE_NAME
      qOrigin,
  kOrigin,
  smCount,
  roundFirst,
  roundRows, // of a plan with rounds: the first row of this one and how many it has
  lseRows,
  carryRows,   // of one head in lse and of one batch element in the carry: seqlen_q
  firstStride, // strideOf() gives it and those behind it
};
enum class StrideDim : uint8_t { batch, row, head };
constexpr int kStrideDims = 3;
constexpr int kLaunchSymbolCount = int(LaunchSymbol::firstStride) + kStrideDims * kRoleCount;

// Of a size; `one` is none.
constexpr LaunchSymbol symbolOf(RoleExtent size) { return LaunchSymbol(int(size)); }

// Of a role that is a tensor.
constexpr LaunchSymbol strideOf(Role role, StrideDim dim) {
  return LaunchSymbol(int(LaunchSymbol::firstStride) + kStrideDims * int(role) + int(dim));
}

// The name in text: "kv_heads", "q_stride_batch", ...
const std::string &launchSymbolName(LaunchSymbol symbol);

// What the symbols are worth in one call. Strides in elements. `params` is borrowed.
struct LaunchSymbols {
  int64_t values[kLaunchSymbolCount] = {};
  const int64_t *params = nullptr;
  int64_t paramCount = 0;

  int64_t &operator[](LaunchSymbol symbol) { return values[int(symbol)]; }
  int64_t operator[](LaunchSymbol symbol) const { return values[int(symbol)]; }
};

// Most arguments of a pattern: sizes, numbers and tensors, which are numbered together. dialect/IR/Limits.h has the
// same number.
inline constexpr int64_t kMaxArguments = 64;

// A value type. Evaluation is thread safe and, where it succeeds, allocates nothing.
class LaunchExpr {
public:
  enum class Op : uint8_t { constant, symbol, param, add, sub, mul, floordiv, ceildiv, mod, min, max };

  LaunchExpr(int64_t constant = 0) : nodes{{Op::constant, 1, constant}} {}
  LaunchExpr(LaunchSymbol symbol) : nodes{{Op::symbol, 1, int64_t(symbol)}} {}
  // The run-time size number `index` of the pattern; text "param<index>".
  static LaunchExpr param(int64_t index);
  // mod takes the sign of the divisor (a - floordiv(a,b)*b). Folds nothing: text is as built.
  static LaunchExpr apply(Op op, std::vector<LaunchExpr> operands);

  // The same with another expression in the place of a symbol.
  LaunchExpr replaced(LaunchSymbol symbol, const LaunchExpr &by) const { return replacedAt(0, symbol, by); }

  // Failures (invalidArgument) name the failing sub-expression.
  Result<int64_t> evaluate(const LaunchSymbols &symbols) const;
  // 1 + the largest param index used, 0 if none.
  int64_t paramCount() const;
  // Sets used[i] for every param<i>; `used` has at least paramCount() elements.
  void markParams(std::vector<bool> &used) const;
  // Bit i: param<i> is used, of the first kMaxArguments. Allocates nothing.
  uint64_t paramMask() const;

  std::string str() const;
  // The whole text must be one expression. Failures (invalidArgument) name the column, from 1.
  static Result<LaunchExpr> parse(std::string_view text);

  bool operator==(const LaunchExpr &other) const;
  bool operator!=(const LaunchExpr &other) const { return !(*this == other); }

private:
  // Prefix order; `size` counts the nodes of the subtree, so that its neighbour is found.
  struct Node {
    Op op;
    uint32_t size;
    int64_t value; // constant, symbol number or param index
  };
  friend class LaunchExprParser;

  LaunchExpr(Op leaf, int64_t value) : nodes{{leaf, 1, value}} {}
  LaunchExpr replacedAt(size_t at, LaunchSymbol symbol, const LaunchExpr &by) const;
  Status evaluateAt(size_t at, const LaunchSymbols &symbols, int64_t &value) const;
  void print(size_t at, std::string &text) const;

  std::vector<Node> nodes;
};

LaunchExpr operator+(const LaunchExpr &a, const LaunchExpr &b);
LaunchExpr operator-(const LaunchExpr &a, const LaunchExpr &b);
LaunchExpr operator*(const LaunchExpr &a, const LaunchExpr &b);
LaunchExpr floorDiv(const LaunchExpr &a, const LaunchExpr &b);
LaunchExpr ceilDiv(const LaunchExpr &a, const LaunchExpr &b);
LaunchExpr mod(const LaunchExpr &a, const LaunchExpr &b);
LaunchExpr min(const LaunchExpr &a, const LaunchExpr &b);
LaunchExpr max(const LaunchExpr &a, const LaunchExpr &b);

} // namespace heddle
