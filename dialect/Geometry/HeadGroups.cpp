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

/// What one pattern says of the head.
struct HeadProgram {
  explicit HeadProgram(const AnalysedCall &call) : sizes(call.sizes) {
    places = {program.add(call.analysis.variantOfHead)};
    for (const IntExpr &part : headParts(call.analysis))
      places.push_back(program.add(part));
  }

  void appendDivisors(std::vector<int64_t> &divisors) const {
    PlainDomain domain;
    std::vector<int64_t> slots;
    program.run(domain, [&](Symbol symbol) { return symbolValue(sizes, 0, symbol); }, slots);
    program.appendDivisors(slots, [](unsigned) { return int64_t(1); }, divisors);
  }

  void appendValues(SweepDomain &domain, SweepNumber head, std::vector<int64_t> &values) const {
    std::vector<SweepNumber> slots;
    program.run(
        domain,
        [&](Symbol symbol) {
          return symbol.kind == Symbol::Head ? head : domain.constant(symbolValue(sizes, 0, symbol));
        },
        slots);
    for (unsigned place : places)
      values.push_back(domain.fixed(slots[place]));
  }

  const ProblemSizes &sizes;
  ExprProgram program;
  std::vector<unsigned> places;
};

} // namespace

std::vector<HeadGroup> headGroups(const std::vector<AnalysedCall> &calls) {
  std::vector<HeadProgram> programs;
  std::vector<int64_t> divisors;
  for (const AnalysedCall &call : calls)
    programs.emplace_back(call).appendDivisors(divisors);
  const int64_t heads = calls.front().sizes.heads, period = choosePeriod(std::move(divisors), 1, heads);
  std::map<std::vector<int64_t>, HeadGroup> groups;
  coverByRectangles(heads, period, [&](const Rectangle &all) -> Rectangle {
    SweepDomain domain{all.steps - 1, all.turns - 1};
    const int64_t head = all.step + period * all.turn;
    std::vector<int64_t> values;
    for (const HeadProgram &program : programs)
      program.appendValues(domain, {head, 1, period}, values);
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

std::vector<HeadGroup> headGroups(const PatternAnalysis &analysis, const ProblemSizes &sizes) {
  return headGroups({{analysis, sizes}});
}

} // namespace heddle::attn
