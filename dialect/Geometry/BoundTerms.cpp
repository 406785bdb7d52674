#include "dialect/Geometry/Piece.h"

#include <algorithm>

namespace heddle::attn {

/// The operands of a tree of max or min.
static void collectTerms(const IntExpr &bound, IntExpr::Op op, std::vector<IntExpr> &terms) {
  if (!bound)
    return;
  if (bound.get()->op != op) {
    terms.push_back(bound);
    return;
  }
  collectTerms(bound.get()->operands[0], op, terms);
  collectTerms(bound.get()->operands[1], op, terms);
}

static std::vector<IntExpr> termsOf(const IntExpr &bound, IntExpr::Op op) {
  std::vector<IntExpr> terms;
  collectTerms(bound, op, terms);
  return terms;
}

namespace {

/// Values that an expression may have, for sizes >= 0; as far as kFar or beyond are all one.
struct Reach {
  static constexpr int64_t kFar = int64_t(1) << 31; // products of two fit
  int64_t least = -kFar, most = kFar;

  static int64_t cut(int64_t value) { return std::clamp(value, -kFar, kFar); }
  static Reach of(int64_t one, int64_t other) { return {cut(std::min(one, other)), cut(std::max(one, other))}; }
};

Reach sumOf(const Reach &a, const Reach &b) {
  return {std::min(a.least, b.least) == -Reach::kFar ? -Reach::kFar : Reach::cut(a.least + b.least),
          std::max(a.most, b.most) == Reach::kFar ? Reach::kFar : Reach::cut(a.most + b.most)};
}

Reach reachOf(const IntExpr &expr) {
  const IntExpr::Node &node = *expr.get();
  const Reach a = node.operands[0] ? reachOf(node.operands[0]) : Reach(),
              b = node.operands[1] ? reachOf(node.operands[1]) : Reach();
  switch (node.op) {
  case IntExpr::Constant:
    return Reach::of(node.value, node.value);
  case IntExpr::Symbolic:
    return node.symbol.kind == Symbol::Parameter ? Reach{0, Reach::kFar} : Reach();
  case IntExpr::Add:
    return sumOf(a, b);
  case IntExpr::Sub:
    return sumOf(a, {-b.most, -b.least});
  case IntExpr::Mul:
    return b.least == b.most ? Reach::of(a.least * b.least, a.most * b.least) : Reach();
  case IntExpr::Min:
    return {std::min(a.least, b.least), std::min(a.most, b.most)};
  case IntExpr::Max:
    return {std::max(a.least, b.least), std::max(a.most, b.most)};
  default:
    return {};
  }
}

} // namespace

bool isNeverEmpty(const Interval &interval) {
  if (!interval.lower || !interval.upper)
    return true;
  const int64_t lower = reachOf(interval.lower).most, upper = reachOf(interval.upper).least;
  return lower <= upper && lower < Reach::kFar && upper > -Reach::kFar;
}

std::vector<IntExpr> lowerTerms(const Interval &interval) { return termsOf(interval.lower, IntExpr::Max); }
std::vector<IntExpr> upperTerms(const Interval &interval) { return termsOf(interval.upper, IntExpr::Min); }

} // namespace heddle::attn
