//===- HeadGroups.cpp - heads that a pattern treats alike ------------------===//
#include "dialect/Geometry/Variant.h"
#include "dialect/Geometry/ExprProgram.h"
#include "dialect/Geometry/Period.h"
#include "dialect/Geometry/RowTiles.h"

#include <algorithm>
#include <map>

namespace heddle::attn {
namespace {

/// The largest parts of expressions that depend on the head, and on no tile, cell or tensor.
class HeadParts {
public:
  void of(const IntExpr &expr) {
    if (!expr.dependsOn(Symbol::Head))
      return;
    const bool isOfTile = expr.readsTensors() || expr.dependsOn(Symbol::TileFirst) ||
                          expr.dependsOn(Symbol::TileLast) || expr.dependsOn(Symbol::Cell);
    if (!isOfTile)
      return add(expr);
    for (const IntExpr &operand : expr.get()->operands)
      of(operand);
  }
  void of(const Interval &interval) {
    of(interval.lower);
    of(interval.upper);
  }
  void of(const CellLoop &loop) {
    for (const IntExpr &part : {loop.q.base, loop.k.base, loop.span, loop.count})
      of(part);
  }
  void of(const Piece &piece) {
    for (const Interval &bounds : {piece.q, piece.k, piece.diagonal})
      of(bounds);
    for (const auto *lattice : {&piece.qLattice, &piece.kLattice, &piece.tie})
      for (const Congruence &congruence : *lattice)
        of(congruence.residue);
    for (const CellLoop &loop : piece.cells)
      of(loop);
    for (const CellBand &band : piece.bands) {
      of(band.loop);
      of(band.steps);
    }
    for (const auto *classes : {&piece.qCells, &piece.kCells})
      for (const CellClass &cells : *classes) {
        of(cells.loop);
        of(cells.residue);
      }
    if (!piece.list)
      return;
    of(piece.list->loop);
    for (const IntExpr &argument : piece.list->arguments)
      of(argument);
  }

  std::vector<IntExpr> parts;

private:
  void add(const IntExpr &expr) {
    if (std::find(parts.begin(), parts.end(), expr) == parts.end())
      parts.push_back(expr);
  }
};

std::vector<IntExpr> headParts(const PatternAnalysis &analysis) {
  HeadParts found;
  for (const Variant &variant : analysis.variants)
    for (const PieceList &pieces : variant.branches)
      for (const Piece &piece : pieces)
        found.of(piece);
  return std::move(found.parts);
}

int64_t periodOfHeads(const ExprProgram &program, const ProblemSizes &sizes) {
  PlainDomain domain;
  std::vector<int64_t> slots, divisors;
  program.run(domain, [&](Symbol symbol) { return symbolValue(sizes, 0, symbol); }, slots);
  program.appendDivisors(slots, [](unsigned) { return int64_t(1); }, divisors);
  return choosePeriod(std::move(divisors), 1, sizes.heads);
}

} // namespace

std::vector<HeadGroup> headGroups(const PatternAnalysis &analysis, const ProblemSizes &sizes) {
  ExprProgram program;
  std::vector<unsigned> places = {program.add(analysis.variantOfHead)};
  for (const IntExpr &part : headParts(analysis))
    places.push_back(program.add(part));
  std::map<std::vector<int64_t>, HeadGroup> groups;
  const int64_t period = periodOfHeads(program, sizes);
  std::vector<SweepNumber> slots;
  std::vector<int64_t> values(places.size());
  coverByRectangles(sizes.heads, period, [&](const Rectangle &all) -> Rectangle {
    SweepDomain domain{all.steps - 1, all.turns - 1};
    const int64_t head = all.step + period * all.turn;
    program.run(
        domain,
        [&](Symbol symbol) {
          return symbol.kind == Symbol::Head ? SweepNumber{head, 1, period}
                                             : domain.constant(symbolValue(sizes, 0, symbol));
        },
        slots);
    for (size_t i = 0; i < places.size(); ++i)
      values[i] = domain.fixed(slots[places[i]]);
    HeadGroup &group = groups.try_emplace(values, HeadGroup{unsigned(values[0]), head, 0}).first->second;
    group.first = std::min(group.first, head);
    group.heads += (domain.horizon + 1) * (domain.turns + 1);
    return {all.step, all.turn, domain.horizon + 1, domain.turns + 1};
  });
  std::vector<HeadGroup> result;
  for (const auto &[key, group] : groups)
    result.push_back(group);
  return result;
}

} // namespace heddle::attn
