//===- Lattice.cpp - the Chinese remainder theorem, symbolically ----------===//
#include "dialect/Analysis/Lattice.h"

#include <numeric>

namespace heddle::attn {
namespace {

/// The x in [0, modulus) with a * x congruent to 1; a and modulus are coprime.
int64_t inverse(int64_t a, int64_t modulus) {
  for (int64_t x = 0; x < modulus; ++x)
    if (a % modulus * x % modulus == 1 % modulus)
      return x;
  return 0;
}

/// Adds "column is congruent to `residue` modulo `modulus`" to the class.
void meet(ColumnClass &columns, int64_t modulus, const IntExpr &residue) {
  int64_t common = std::gcd(columns.rate, modulus);
  int64_t fresh = modulus / common;
  if (fresh > 1 && residue.dependsOn(Symbol::Cell)) { // one class per cell: leave it to the predicate
    columns.exact = false;
    return;
  }
  if (common > 1)
    columns.condition = both(columns.condition, equal(mod(residue - columns.residue, common), 0));
  if (fresh == 1)
    return;
  IntExpr steps = mod(floorDiv(residue - columns.residue, common) * inverse(columns.rate / common, fresh), fresh);
  columns.residue = mod(columns.residue + steps * columns.rate, columns.rate * fresh);
  columns.rate *= fresh;
}

} // namespace

ColumnClass solveColumns(const Piece &piece) {
  ColumnClass columns;
  IntExpr row = symbol(Symbol::TileFirst);
  for (const Congruence &congruence : piece.qLattice)
    columns.condition = both(columns.condition, equal(mod(row - congruence.residue, congruence.modulus), 0));
  for (const Congruence &congruence : piece.tie)
    meet(columns, congruence.modulus, row + congruence.residue);
  for (const Congruence &congruence : piece.kLattice)
    meet(columns, congruence.modulus, congruence.residue);
  return columns;
}

int64_t rowRate(const PieceList &pieces) {
  int64_t rate = 1;
  for (const Piece &piece : pieces) {
    for (const Congruence &congruence : piece.qLattice)
      rate = std::lcm(rate, congruence.modulus);
    for (const Congruence &congruence : piece.tie)
      rate = std::lcm(rate, congruence.modulus);
  }
  return rate;
}

} // namespace heddle::attn
