#include "dialect/Geometry/Ranges.h"
#include "dialect/Geometry/Piece.h"
#include "dialect/Geometry/Lattice.h"
#include "dialect/Geometry/CellList.h"

#include <algorithm>
#include <numeric>

namespace heddle::attn {
namespace {

/// Origin and length of the two axes of a direction.
struct Sides {
  IntExpr rowOrigin, columnOrigin, columnLength;
};

Sides sidesOf(Direction direction) {
  if (direction == Direction::Forward)
    return {symbol(Symbol::QOrigin), symbol(Symbol::KOrigin), symbol(Symbol::SeqlenK)};
  return {symbol(Symbol::KOrigin), symbol(Symbol::QOrigin), symbol(Symbol::SeqlenQ)};
}

/// The cells that the tile crosses, and the rows of the tile that lie in one combination of cells.
struct TileRows {
  std::vector<CellRange> cells;
  IntExpr first, last; ///< positions, in the tile's residue class
};

IntExpr roundUpToClass(const IntExpr &position, const IntExpr &member, int64_t rate) {
  return rate == 1 ? position : member + ceilDiv(position - member, rate) * rate;
}
IntExpr roundDownToClass(const IntExpr &position, const IntExpr &member, int64_t rate) {
  return rate == 1 ? position : member + floorDiv(position - member, rate) * rate;
}

TileRows rowsInCells(const Piece &piece, int64_t rowRate) {
  TileRows rows;
  IntExpr tileFirst = symbol(Symbol::TileFirst);
  IntExpr first = tileFirst, last = symbol(Symbol::TileLast);
  for (const CellLoop &loop : piece.cells) {
    rows.cells.push_back(
        {loop.cell, loop.cellAt(loop.q, first), loop.cellAt(loop.q, last), loop.isEven() ? loop.span : 1});
    first = max(first, loop.start(loop.q));
    last = min(last, loop.last(loop.q));
  }
  rows.first = piece.cells.empty() ? first : roundUpToClass(first, tileFirst, rowRate);
  rows.last = piece.cells.empty() ? last : roundDownToClass(last, tileFirst, rowRate);
  return rows;
}

IntExpr minus(const IntExpr &a, const IntExpr &b) { return a && b ? a - b : IntExpr(); }
IntExpr plus(const IntExpr &a, const IntExpr &b) { return a && b ? a + b : IntExpr(); }

/// Positions -> column numbers of the branch's class, by way of the piece's own (finer) class.
struct ColumnNumbers {
  const ColumnClass &own;
  const BranchRanges &branch;
  IntExpr origin;

  IntExpr ceil(const IntExpr &position) const {
    IntExpr member = ceilDiv(position - own.residue, own.rate) * own.rate + own.residue;
    return ceilDiv(member - origin - branch.columnResidue, branch.columnRate);
  }
  IntExpr floor(const IntExpr &position) const {
    IntExpr member = floorDiv(position - own.residue, own.rate) * own.rate + own.residue;
    return floorDiv(member - origin - branch.columnResidue, branch.columnRate);
  }
};

/// The piece's rows with a column in reach, and the columns they reach between them.
Interval visitedPositions(const Piece &piece, const TileRows &rows, int64_t rowRate, IntExpr &nonEmpty) {
  IntExpr tileFirst = symbol(Symbol::TileFirst);
  IntExpr first = max(max(rows.first, piece.q.lower), minus(piece.k.lower, piece.diagonal.upper));
  IntExpr last = min(min(rows.last, piece.q.upper), minus(piece.k.upper, piece.diagonal.lower));
  first = roundUpToClass(first, tileFirst, rowRate);
  last = roundDownToClass(last, tileFirst, rowRate);
  nonEmpty = lessEqual(first, last);
  if (!isNeverEmpty(piece.diagonal)) // bands that do not meet for every size, or in every document
    nonEmpty = both(nonEmpty, lessEqual(piece.diagonal.lower, piece.diagonal.upper));
  return {max(piece.k.lower, plus(first, piece.diagonal.lower)), min(piece.k.upper, plus(last, piece.diagonal.upper))};
}

/// Bands of cells as bounds on the columns, given the cell of the row. A list is asked for a row's cell.
Piece withBandsAsBounds(const Piece &piece) {
  Piece result = piece;
  for (const CellBand &band : piece.bands) {
    const CellLoop &loop = band.loop;
    appendCells(result.cells, {loop});
    if (band.steps.lower)
      result.k.intersect({loop.startAfter(loop.k, band.steps.lower), {}});
    if (band.steps.upper)
      result.k.intersect({{}, loop.lastAfter(loop.k, band.steps.upper)});
  }
  for (const CellClass &rows : piece.qCells)
    appendCells(result.cells, {rows.loop});
  if (piece.list && piece.list->rule->dependsOnRow())
    appendCells(result.cells, {piece.list->loop});
  return result;
}

/// Cells of columns in a residue class are a list, unless the row's cell says which one it is (Lattice.h).
Piece withClassAsList(const Piece &piece, const Sides &sides) {
  Piece result = piece;
  if (piece.list || piece.kCells.size() != 1 || stepToColumns(piece, piece.kCells.front().loop))
    return result;
  const auto &[loop, modulus, residue] = piece.kCells.front();
  IntExpr last = sides.columnOrigin + sides.columnLength - 1;
  result.list = {
      loop, stridedCells(), {modulus, residue, loop.cellAt(loop.k, sides.columnOrigin), loop.cellAt(loop.k, last) + 1}};
  result.kCells.clear();
  return result;
}

/// A class that is not exact is rounded outward, so that no cell is without columns.
std::optional<ListedColumns> listedColumns(const std::optional<CellList> &list, const ColumnNumbers &numbers) {
  if (!list)
    return std::nullopt;
  const ColumnClass &own = numbers.own;
  const IntExpr &base = list->loop.k.base;
  IntExpr start = base + symbol(Symbol::ListedCell) * list->loop.span, last = start + list->loop.span - 1;
  if (!list->loop.span.constant())
    start = cut(start), last = cut(last);
  IntExpr position = numbers.origin + numbers.branch.columnResidue + symbol(Symbol::Column) * numbers.branch.columnRate;
  IntExpr member = ceilDiv(position - own.residue, own.rate) * own.rate + own.residue;
  return ListedColumns{list->rule,
                       list->arguments,
                       list->rule->dependsOnRow() ? symbol(Symbol::Cell, list->loop.cell) : IntExpr(0),
                       list->loop.span,
                       own.exact ? numbers.ceil(start) : numbers.floor(start),
                       own.exact ? numbers.floor(last) : numbers.ceil(last),
                       floorDiv(member - base, list->loop.span)};
}

PieceRange buildPieceRange(const Piece &banded, const ColumnClass &own, const BranchRanges &branch,
                           const IntExpr &columnOrigin, int64_t rowRate) {
  Piece piece = withBandsAsBounds(banded);
  PieceRange range;
  TileRows rows = rowsInCells(piece, rowRate);
  range.cells = rows.cells;
  ColumnNumbers numbers{own, branch, columnOrigin};

  IntExpr nonEmpty;
  Interval visited = visitedPositions(piece, rows, rowRate, nonEmpty);
  IntExpr visits = both(nonEmpty, own.condition);
  range.visitFirst = select(visits, numbers.ceil(visited.lower), 1);
  range.visitLast = select(visits, numbers.floor(visited.upper), 0);

  range.hasRows = piece.cells.empty() ? IntExpr(1) : lessEqual(rows.first, rows.last);
  IntExpr covers = both(both(lessEqual(piece.q.lower, rows.first), lessEqual(rows.last, piece.q.upper)), own.condition);
  for (const CellLoop &loop : piece.cells)
    if (!loop.isEven())
      covers = both(covers, loop.holdsAll(loop.q, symbol(Symbol::TileFirst), symbol(Symbol::TileLast)));
  if (piece.masked || !own.exact || own.rate != branch.columnRate)
    covers = 0;
  IntExpr fullLower = max(piece.k.lower, plus(rows.last, piece.diagonal.lower));
  IntExpr fullUpper = min(piece.k.upper, plus(rows.first, piece.diagonal.upper));
  range.fullFirst = select(covers, numbers.ceil(fullLower), 1);
  range.fullLast = select(covers, numbers.floor(fullUpper), 0);
  range.list = listedColumns(piece.list, numbers);
  return range;
}

/// The common class of the pieces' columns, or every column.
void chooseColumnClass(BranchRanges &branch, const std::vector<ColumnClass> &classes, const Sides &sides) {
  bool common = !classes.empty() && std::all_of(classes.begin(), classes.end(), [&](const ColumnClass &other) {
    return other.rate == classes[0].rate && other.residue == classes[0].residue;
  });
  if (common && classes[0].rate > 1) {
    branch.columnRate = classes[0].rate;
    branch.columnResidue = mod(classes[0].residue - sides.columnOrigin, branch.columnRate);
  }
  branch.columnCount = max(ceilDiv(sides.columnLength - branch.columnResidue, branch.columnRate), 0);
}

bool areEqual(const Congruence &a, const Congruence &b) { return a.modulus == b.modulus && a.residue == b.residue; }
bool areEqual(const CellLoop &a, const CellLoop &b) { return a.cell == b.cell; }

/// What the first piece has and all others, too.
template <class Part> std::vector<Part> common(const PieceList &pieces, std::vector<Part> Piece::*parts) {
  std::vector<Part> result;
  for (const Part &part : pieces[0].*parts)
    if (std::all_of(pieces.begin(), pieces.end(), [&](const Piece &piece) {
          return std::any_of((piece.*parts).begin(), (piece.*parts).end(),
                             [&](const Part &other) { return areEqual(part, other); });
        }))
      result.push_back(part);
  return result;
}

/// The congruences of the first piece that all have, and that the cells of the cover give a meaning.
std::vector<Congruence> commonLattice(const PieceList &pieces, std::vector<Congruence> Piece::*lattice, bool inCells) {
  std::vector<Congruence> result = common(pieces, lattice);
  result.erase(std::remove_if(result.begin(), result.end(),
                              [&](const Congruence &congruence) {
                                return !inCells && congruence.residue.dependsOn(Symbol::Cell);
                              }),
               result.end());
  return result;
}

/// One piece that covers all of `pieces`, with the lattices and cells that they have in common.
Piece coverOf(const PieceList &pieces, const Sides &sides) {
  Piece cover;
  cover.masked = true;
  cover.reason = "it stands for several pieces";
  cover.cells = common(pieces, &Piece::cells);
  const bool inCells = std::all_of(pieces.begin(), pieces.end(),
                                   [&](const Piece &piece) { return piece.cells.size() == cover.cells.size(); });
  if (!inCells)
    cover.cells.clear();
  cover.qLattice = commonLattice(pieces, &Piece::qLattice, inCells);
  cover.kLattice = commonLattice(pieces, &Piece::kLattice, inCells);
  cover.tie = commonLattice(pieces, &Piece::tie, inCells);
  auto everywhere = [&](const IntExpr &bound) {
    return bound && (inCells || !bound.dependsOn(Symbol::Cell)) && !bound.dependsOn(Symbol::TileFirst);
  };
  auto widest = [&](Interval Piece::*axis, IntExpr Interval::*end, IntExpr (*widen)(IntExpr, IntExpr)) {
    IntExpr result;
    for (const Piece &piece : pieces) {
      const IntExpr &bound = piece.*axis.*end;
      if (!everywhere(bound))
        return IntExpr();
      result = widen(result, bound);
    }
    return result;
  };
  for (Interval Piece::*axis : {&Piece::q, &Piece::k, &Piece::diagonal})
    cover.*axis = {widest(axis, &Interval::lower, min), widest(axis, &Interval::upper, max)};
  cover.k.intersect({sides.columnOrigin, sides.columnOrigin + sides.columnLength - 1});
  return cover;
}

/// True if the columns that neighbouring rows of a tile reach might not meet.
bool leavesGaps(const Piece &piece, const ColumnClass &own, int64_t rowRate) {
  if (rowRate == 1 || own.rate == rowRate || !piece.diagonal.lower || !piece.diagonal.upper)
    return false;
  auto width = (piece.diagonal.upper - piece.diagonal.lower + 1).constant();
  return !width || *width < rowRate;
}

std::string whyMasked(const Piece &piece, const ColumnClass &own) {
  if (piece.masked)
    return piece.reason;
  return own.exact ? "" : own.inexactness;
}

BranchRanges buildBranch(PieceList pieces, int64_t rowRate, const Sides &sides) {
  BranchRanges branch;
  std::vector<ColumnClass> classes;
  for (const Piece &piece : pieces) {
    classes.push_back(solveColumns(piece));
    if (std::string why = whyMasked(piece, classes.back()); !why.empty()) {
      branch.masked = true;
      branch.reason = std::move(why);
    }
  }
  chooseColumnClass(branch, classes, sides);
  for (size_t i = 0; i < pieces.size(); ++i) {
    branch.mayVisitGaps |= leavesGaps(pieces[i], classes[i], rowRate);
    branch.exactFromColumns = std::max(branch.exactFromColumns, classes[i].rate / branch.columnRate);
    branch.pieces.push_back(buildPieceRange(pieces[i], classes[i], branch, sides.columnOrigin, rowRate));
  }
  return branch;
}

/// The last ones become one piece where there are more than are kept apart. Returns what was done.
std::string joinSurplus(PieceList &pieces, const Sides &sides) {
  const size_t count = pieces.size();
  if (count <= kMaxPieces)
    return "";
  const auto first = pieces.begin() + (kMaxPieces - 1);
  Piece cover = coverOf(PieceList(first, pieces.end()), sides);
  pieces.erase(first, pieces.end());
  pieces.push_back(std::move(cover));
  return std::to_string(count) + " pieces, at most " + std::to_string(kMaxPieces) + " are kept apart: the last " +
         std::to_string(count - kMaxPieces + 1) +
         " are one, with all that lies between them; fewer masks in one `or`, or `lse` of masks that never meet, are "
         "exact";
}

/// What stands against rows of these lattices in so many classes.
std::string latticeLost(const PieceList &pieces, int64_t rowRate, Direction direction, const RowRateLimits &limits) {
  const int64_t rate = attn::rowRate(pieces), times = rate / std::gcd(rate, rowRate);
  if (times == 1)
    return "";
  return std::string(direction == Direction::Forward ? "rows" : "keys") + " on a lattice of rate " +
         std::to_string(rate) + ", split into " + std::to_string(rowRate) +
         (rowRate == 1 ? " class: up to " : " classes: up to ") + std::to_string(times) +
         " times the tiles; rates whose common multiple is at most " + std::to_string(limits.exact) + " are exact";
}

} // namespace

std::string whyMasked(const Piece &piece, Direction direction) {
  Piece seen = withClassAsList(direction == Direction::Forward ? piece : piece.transposed(), sidesOf(direction));
  return whyMasked(seen, solveColumns(seen));
}

VariantRanges buildRanges(const std::vector<PieceList> &input, Direction direction, const RowRateLimits &limits) {
  Sides sides = sidesOf(direction);
  VariantRanges variant;
  std::vector<PieceList> branches = input;
  for (PieceList &pieces : branches)
    for (Piece &piece : pieces) {
      if (direction == Direction::Transposed)
        piece = piece.transposed();
      piece.k.intersect({sides.columnOrigin, sides.columnOrigin + sides.columnLength - 1});
      piece = withClassAsList(piece, sides);
    }

  std::vector<std::string> reasons;
  for (PieceList &pieces : branches)
    reasons.push_back(joinSurplus(pieces, sides));
  variant.rowRate = chooseRowRate(branches, limits);
  for (size_t b = 0; b < branches.size(); ++b) {
    if (std::string lost = latticeLost(branches[b], variant.rowRate, direction, limits); !lost.empty())
      reasons[b] = std::move(lost);
    for (Piece &piece : branches[b])
      widenRows(piece, variant.rowRate);
    variant.branches.push_back(buildBranch(branches[b], variant.rowRate, sides));
    if (!reasons[b].empty())
      variant.branches.back().reason = reasons[b];
  }
  return variant;
}

} // namespace heddle::attn
