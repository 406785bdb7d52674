#include "dialect/Geometry/Grain.h"

#include <algorithm>
#include <numeric>

namespace heddle::attn {
namespace {

/// The common divisor of every place where a piece begins or ends.
class Borders {
public:
  int64_t divisor() const { return common; }

  void none() { common = 1; }
  void at(const IntExpr &position) {
    if (position)
      common = std::gcd(common, knownDivisor(position));
  }
  void of(const Interval &positions) {
    at(positions.lower);
    if (positions.upper)
      at(positions.upper + 1);
  }
  void of(const CellLoop &loop) {
    if (!loop.isEven())
      return none();
    at(loop.q.base);
    at(loop.k.base);
    at(loop.span);
  }

private:
  int64_t common = 0;
};

/// All but those of its band of positions.
void include(Borders &borders, const Piece &piece) {
  borders.of(piece.q);
  borders.of(piece.k);
  for (const CellLoop &loop : piece.cells)
    borders.of(loop);
  for (const CellBand &band : piece.bands)
    borders.of(band.loop);
  for (const auto *classes : {&piece.qCells, &piece.kCells})
    for (const CellClass &cells : *classes)
      borders.of(cells.loop);
  if (piece.list)
    borders.of(piece.list->loop);
}

bool isExact(const BranchRanges &branch) {
  return !branch.masked && !branch.mayVisitGaps && branch.exactFromColumns == 1;
}

/// How many of `positions` lie in one class.
int64_t inClass(int64_t positions, int64_t rate) { return positions % rate == 0 ? positions / rate : 1; }

/// What bands of positions cut apart.
int64_t grainBesideBands(const PieceList &pieces, const BranchRanges &branch, int64_t rowRate) {
  if (!isExact(branch))
    return 1;
  Borders borders;
  for (const Piece &piece : pieces)
    include(borders, piece);
  return std::gcd(inClass(borders.divisor(), rowRate), inClass(borders.divisor(), branch.columnRate));
}

int64_t grainBesideBands(const PatternAnalysis &analysis, Direction direction) {
  int64_t grain = 0;
  for (const Variant &variant : analysis.variants)
    for (size_t branch = 0; branch < variant.branches.size(); ++branch)
      grain = std::gcd(grain, grainBesideBands(variant.branches[branch], variant.ranges(direction).branches[branch],
                                               variant.ranges(direction).rowRate));
  return std::max<int64_t>(grain, 1);
}

bool hasBand(const Piece &piece) { return piece.diagonal.lower || piece.diagonal.upper; }

bool isSame(const IntExpr &a, const IntExpr &b) { return bool(a) == bool(b) && (!a || a == b); }

/// The same wherever the pair lies.
bool isEverywhere(const IntExpr &bound) { return !bound || (!bound.dependsOn(Symbol::Cell) && !bound.readsTensors()); }

/// What all pieces of a branch have.
std::optional<Interval> commonBand(const PieceList &pieces) {
  if (pieces.empty())
    return Interval();
  const Interval &band = pieces.front().diagonal;
  const bool isCommon = std::all_of(pieces.begin(), pieces.end(), [&](const Piece &piece) {
    return isSame(piece.diagonal.lower, band.lower) && isSame(piece.diagonal.upper, band.upper);
  });
  return isCommon && isEverywhere(band.lower) && isEverywhere(band.upper) ? std::optional(band) : std::nullopt;
}

template <class Holds> bool anyPiece(const PatternAnalysis &analysis, Holds holds) {
  for (const Variant &variant : analysis.variants)
    for (const PieceList &pieces : variant.branches)
      if (std::any_of(pieces.begin(), pieces.end(), holds))
        return true;
  return false;
}

} // namespace

int64_t knownDivisor(const IntExpr &expr) {
  const IntExpr::Node *node = expr.get();
  auto of = [&](int operand) { return knownDivisor(node->operands[operand]); };
  switch (node->op) {
  case IntExpr::Constant:
    return std::abs(node->value);
  case IntExpr::Mul:
    return of(0) * of(1);
  case IntExpr::Add:
  case IntExpr::Sub:
  case IntExpr::Min:
  case IntExpr::Max:
    return std::gcd(of(0), of(1));
  case IntExpr::Select:
    return std::gcd(of(1), of(2));
  case IntExpr::Cut: // no border lies where it cuts
    return of(0);
  default:
    return 1;
  }
}

int64_t grainOf(const PatternAnalysis &analysis, Direction direction) {
  return anyPiece(analysis, hasBand) ? 1 : grainBesideBands(analysis, direction);
}

BandedGrain bandedGrainOf(const PatternAnalysis &analysis, Direction direction) {
  const bool hasLists = anyPiece(analysis, [](const Piece &piece) { return piece.list.has_value(); });
  BandedGrain banded;
  if (!hasLists || !anyPiece(analysis, hasBand))
    return {};
  for (const Variant &variant : analysis.variants) {
    std::vector<Interval> &bands = banded.bands.emplace_back();
    for (const PieceList &pieces : variant.branches) {
      const std::optional<Interval> band = commonBand(pieces);
      if (!band)
        return {};
      bands.push_back(*band);
    }
  }
  banded.grain = grainBesideBands(analysis, direction);
  return banded.grain > 1 ? banded : BandedGrain();
}

} // namespace heddle::attn
