//===- BoundTerms.cpp - the terms of a bound ------------------------------===//
#include "dialect/Analysis/BoundTerms.h"

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

std::vector<IntExpr> lowerTerms(const Interval &interval) { return termsOf(interval.lower, IntExpr::Max); }
std::vector<IntExpr> upperTerms(const Interval &interval) { return termsOf(interval.upper, IntExpr::Min); }

} // namespace heddle::attn
