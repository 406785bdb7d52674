// Solves the lattices of a piece for one tile of rows: rows of a tile share a residue class, so congruences
// on the row become conditions, and congruences on the column and on the difference meet in one class
// (Chinese remainder theorem with static moduli and symbolic residues).
#pragma once

#include "dialect/Geometry/Piece.h"

namespace heddle::attn {

/// Kernels count with the key beside a tile of up to 256 of its class, residue + rate * 255, and with the residue times
/// 256: below this rate both fit 32 bits, whatever position they are added to.
inline constexpr int64_t kMaxRate = int64_t(1) << 22;

/// The complement of a lattice is a piece for each of its other classes; of a larger rate it is not written out.
inline constexpr int64_t kMaxComplementRate = 64;

/// The columns of one piece as seen from a tile of rows whose class contains TileFirst.
struct ColumnClass {
  int64_t rate = 1;             ///< static modulus
  IntExpr residue = 0;          ///< of column positions, in [0, rate)
  IntExpr condition = 1;        ///< 0: no pair of this piece in this class (may depend on cells)
  bool exact = true;            ///< false: a congruence had to be dropped, the class is a superset
  const char *inexactness = ""; ///< which one
};

/// q is the row axis of `piece`, k its column axis.
ColumnClass solveColumns(const Piece &piece);

/// Steps from the row's cell to the column's, where the piece has one number of them.
std::optional<int64_t> stepToColumns(const Piece &piece, const CellLoop &loop);

/// The rate at which rows must be split so that `solveColumns` is right for each piece: the least common
/// multiple of the moduli on rows and differences; beyond kMaxRate, of some of them.
int64_t rowRate(const PieceList &pieces);

} // namespace heddle::attn
