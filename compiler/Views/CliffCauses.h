// Owns the table of causes of cliffs, and how much of its tiles each of them leaves to one piece of a pattern.
#pragma once

#include "dialect/Geometry/Counts.h"

#include <string>

namespace heddle::views {

enum class CliffCause {
  masked,        ///< a predicate, or what stands for several pieces
  pieces,        ///< more pieces in a branch than are kept apart
  rowLattice,    ///< more classes of rows than are made
  commonLattice, ///< rows are split into more classes than the piece asks for
  keyLattice,    ///< keys on a lattice that tiles do not follow
  keyStride,     ///< keys on a lattice, in a branch that is walked at a finer one
  segments,
  documents,
  blocks,     ///< of a list, or at a stride
  singleKeys, ///< of a list
  band,
  box, ///< a few rows or columns
  queries,
  keys,
  borders, ///< nothing is smaller than a tile, but most tiles are cut
};

struct CauseWords {
  const char *name, *advice;
};
const CauseWords &wordsOf(CliffCause cause);

/// What one cause leaves: `fill` of the pairs of a visited tile, at most, by an estimate.
struct CauseShare {
  CliffCause cause = CliffCause::borders;
  double fill = 1;
  std::string detail;
};

/// How tiles lie on the two axes: every `rowRate`-th row, every `columnRate`-th column.
struct TileLattice {
  attn::TileShape tile;
  int64_t rowRate = 1, columnRate = 1;

  double rows() const { return double(tile.rows) * double(rowRate); }
  double columns() const { return double(tile.columns) * double(columnRate); }
  /// "tiles of 128 x 128 at strides 2 x 2"
  std::string inWords() const;
};

/// The cause that leaves least, among what is small beside a tile.
CauseShare leastFill(const attn::Piece &piece, const attn::ProblemSizes &sizes, int64_t head, const TileLattice &tiles);

} // namespace heddle::views
