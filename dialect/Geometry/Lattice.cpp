#include "dialect/Geometry/Lattice.h"

#include <numeric>
#include <utility>

namespace heddle::attn {
namespace {

/// The x in [0, modulus) with a * x congruent to 1; a and modulus are coprime.
int64_t inverse(int64_t a, int64_t modulus) {
  int64_t previous = 0, x = 1;
  for (int64_t larger = modulus, rest = a % modulus; rest > 1;) {
    const int64_t quotient = larger / rest;
    larger = std::exchange(rest, larger % rest);
    previous = std::exchange(x, previous - quotient * x);
  }
  return modulus == 1 ? 0 : (x % modulus + modulus) % modulus;
}

void drop(ColumnClass &columns, const char *what) {
  columns.exact = false;
  columns.inexactness = what;
}

/// Adds "column is congruent to `residue` modulo `modulus`" to the class.
void meet(ColumnClass &columns, int64_t modulus, const IntExpr &residue) {
  int64_t common = std::gcd(columns.rate, modulus);
  int64_t fresh = modulus / common;
  if (fresh > 1 && residue.dependsOn(Symbol::Cell)) { // one class per cell: leave it to the predicate
    drop(columns, "a residue class changes from segment to segment");
    return;
  }
  if (common > 1)
    columns.condition = both(columns.condition, equal(mod(residue - columns.residue, common), 0));
  if (fresh == 1)
    return;
  if (columns.rate * fresh > kMaxRate)
    return drop(columns, "several key rates meet, and kernels do not count with their common multiple");
  IntExpr steps = mod(floorDiv(residue - columns.residue, common) * inverse(columns.rate / common, fresh), fresh);
  columns.residue = mod(columns.residue + steps * columns.rate, columns.rate * fresh);
  columns.rate *= fresh;
}

/// Classes of cells of rows are conditions; those of columns too, where the row's cell says which cell it is.
void meetCells(ColumnClass &columns, const Piece &piece) {
  auto require = [&](const CellClass &cells, int64_t step) {
    IntExpr number = symbol(Symbol::Cell, cells.loop.cell) + step;
    columns.condition = both(columns.condition, equal(mod(number - cells.residue, cells.modulus), 0));
  };
  for (const CellClass &rows : piece.qCells)
    require(rows, 0);
  for (const CellClass &keys : piece.kCells)
    if (std::optional<int64_t> step = stepToColumns(piece, keys.loop))
      require(keys, *step);
    else
      drop(columns, "columns come in blocks at a stride");
}

/// Every listed cell must hold a column of the class.
void meetList(ColumnClass &columns, const Piece &piece) {
  if (!piece.list || columns.rate == 1)
    return;
  std::optional<int64_t> span = piece.list->loop.span.constant();
  if (!span || *span < columns.rate)
    drop(columns, "listed cells lie between the columns of a residue class");
}

} // namespace

std::optional<int64_t> stepToColumns(const Piece &piece, const CellLoop &loop) {
  for (const CellLoop &shared : piece.cells)
    if (shared.cell == loop.cell)
      return 0;
  for (const CellBand &band : piece.bands)
    if (band.loop.cell == loop.cell && band.steps.lower && band.steps.upper &&
        band.steps.lower.constant() == band.steps.upper.constant())
      return band.steps.lower.constant();
  return std::nullopt;
}

ColumnClass solveColumns(const Piece &piece) {
  ColumnClass columns;
  IntExpr row = symbol(Symbol::TileFirst);
  for (const Congruence &congruence : piece.qLattice)
    columns.condition = both(columns.condition, equal(mod(row - congruence.residue, congruence.modulus), 0));
  for (const Congruence &congruence : piece.tie)
    meet(columns, congruence.modulus, row + congruence.residue);
  for (const Congruence &congruence : piece.kLattice)
    meet(columns, congruence.modulus, congruence.residue);
  meetCells(columns, piece);
  meetList(columns, piece);
  return columns;
}

int64_t rowRate(const PieceList &pieces) {
  int64_t rate = 1;
  auto include = [&](const Congruence &congruence) {
    rate = rate > kMaxRate ? rate : std::lcm(rate, congruence.modulus);
  };
  for (const Piece &piece : pieces) {
    for (const Congruence &congruence : piece.qLattice)
      include(congruence);
    for (const Congruence &congruence : piece.tie)
      include(congruence);
  }
  return rate;
}

} // namespace heddle::attn
