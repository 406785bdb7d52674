//===- BoundTerms.h - the terms of a bound ----------------------*- C++ -*-===//
#ifndef HEDDLE_DIALECT_GEOMETRY_BOUNDTERMS_H
#define HEDDLE_DIALECT_GEOMETRY_BOUNDTERMS_H

#include "dialect/Geometry/Piece.h"

namespace heddle::attn {

/// Each of them is a lower bound, the largest counts; empty where nothing bounds.
std::vector<IntExpr> lowerTerms(const Interval &interval);
/// Each of them is an upper bound, the smallest counts.
std::vector<IntExpr> upperTerms(const Interval &interval);

/// True if no sizes >= 0 make the lower bound larger than the upper one, as far as that is seen.
bool isNeverEmpty(const Interval &interval);

} // namespace heddle::attn

#endif
