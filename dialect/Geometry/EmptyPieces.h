//===- EmptyPieces.h - pieces without a pair --------------------*- C++ -*-===//
#ifndef HEDDLE_DIALECT_GEOMETRY_EMPTYPIECES_H
#define HEDDLE_DIALECT_GEOMETRY_EMPTYPIECES_H

#include "dialect/Geometry/Piece.h"

namespace heddle::attn {

/// Drops pieces that are empty for every size.
void dropEmpty(PieceList &pieces);

} // namespace heddle::attn

#endif
