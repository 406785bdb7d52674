// Owns where the tiles of a residue class of rows lie, and what symbols stand for in one call: shared by sums over
// tiles and by single ones.
#pragma once

#include "dialect/Geometry/ProblemSizes.h"
#include "dialect/Geometry/Ranges.h"

namespace heddle::attn {

inline Direction opposite(Direction direction) {
  return direction == Direction::Forward ? Direction::Transposed : Direction::Forward;
}

/// The rows that tiles are made of, in one direction.
struct RowAxis {
  int64_t origin, count;
};
inline RowAxis rowAxis(const ProblemSizes &sizes, Direction direction) {
  return direction == Direction::Forward ? RowAxis{sizes.qOrigin, sizes.seqlenQ}
                                         : RowAxis{sizes.kOrigin, sizes.seqlenK};
}

/// Of a symbol that no tile and no cell gives; of others 0.
inline int64_t symbolValue(const ProblemSizes &sizes, int64_t head, Symbol symbol) {
  switch (symbol.kind) {
  case Symbol::Head:
    return head;
  case Symbol::Heads:
    return sizes.heads;
  case Symbol::SeqlenQ:
    return sizes.seqlenQ;
  case Symbol::SeqlenK:
    return sizes.seqlenK;
  case Symbol::QOrigin:
    return sizes.qOrigin;
  case Symbol::KOrigin:
    return sizes.kOrigin;
  case Symbol::Parameter:
    return sizes.parameters[symbol.index];
  case Symbol::Tensor:
    return symbol.index;
  default:
    return 0;
  }
}

inline int64_t rowsInClass(int64_t rows, int64_t rate, int64_t rowClass) {
  return rows > rowClass ? (rows - rowClass - 1) / rate + 1 : 0;
}

/// Tile t of a class: positions of its first and last row.
struct ClassTiles {
  int64_t first;   ///< position of row 0 of the class
  int64_t step;    ///< positions from one tile to the next
  int64_t span;    ///< positions from the first to the last row of a whole tile
  int64_t lastRow; ///< position of the last row of the class
  int64_t count;   ///< tiles that hold a row

  ClassTiles(RowAxis axis, int64_t rate, int64_t rowClass, int64_t block) {
    int64_t rows = rowsInClass(axis.count, rate, rowClass);
    first = axis.origin + rowClass;
    step = rate * block;
    span = rate * (block - 1);
    lastRow = first + rate * (rows - 1);
    count = (rows + block - 1) / block;
  }
};

} // namespace heddle::attn
