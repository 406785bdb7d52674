//===- Grain.cpp - divisors of the borders of pieces ----------------------===//
#include "dialect/Analysis/Grain.h"

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

void include(Borders &borders, const Piece &piece) {
  if (piece.diagonal.lower || piece.diagonal.upper)
    borders.none();
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

/// Of `positions`, how many lie in one class.
int64_t inClass(int64_t positions, int64_t rate) { return positions % rate == 0 ? positions / rate : 1; }

int64_t grainOf(const PieceList &pieces, const BranchRanges &branch, int64_t rowRate) {
  if (!isExact(branch))
    return 1;
  Borders borders;
  for (const Piece &piece : pieces)
    include(borders, piece);
  return std::gcd(inClass(borders.divisor(), rowRate), inClass(borders.divisor(), branch.columnRate));
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
  default:
    return 1;
  }
}

int64_t grainOf(const PatternAnalysis &analysis) {
  int64_t grain = 0;
  for (const Variant &variant : analysis.variants)
    for (size_t branch = 0; branch < variant.branches.size(); ++branch)
      grain = std::gcd(grain, grainOf(variant.branches[branch], variant.forward.branches[branch], variant.forward.rowRate));
  return std::max<int64_t>(grain, 1);
}

} // namespace heddle::attn
