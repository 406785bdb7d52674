// Owns the loops of BranchEvaluator over cells; those of the innermost loop that evaluate alike are evaluated once.
#pragma once

#include "dialect/Geometry/BranchEvaluator.h"

namespace heddle::attn {

template <class Domain, class SymbolValues>
void BranchEvaluator::walkCells(const CompiledPiece &piece, size_t depth, std::vector<typename Domain::Number> &cells,
                                SymbolValues &valueOf, Collector<Domain> &collector) const {
  using Number = typename Domain::Number;
  Domain &domain = collector.domain;
  auto withCells = [&](Symbol symbol) -> Number {
    if (symbol.kind != Symbol::Cell)
      return valueOf(symbol);
    for (size_t i = 0; i < depth; ++i)
      if (piece.cells[i].symbol == symbol.index)
        return cells[i];
    return domain.constant(0);
  };
  std::vector<Number> slots;
  if (depth < piece.cells.size()) {
    const CompiledPiece::Cell &cell = piece.cells[depth];
    cell.program.run(domain, withCells, slots);
    const Number lower = slots[cell.lower], upper = slots[cell.upper];
    if (depth + 1 == piece.cells.size() && !piece.rule)
      return walkAlike(piece, {lower, upper, slots[cell.span]}, withCells, collector);
    ++collector.evaluations;
    for (Number index = lower; !collector.isSpent() && !domain.less(upper, index);
         index = domain.add(index, domain.constant(1))) {
      cells[depth] = index;
      walkCells(piece, depth + 1, cells, valueOf, collector);
    }
    return;
  }
  ++collector.evaluations;
  piece.program.run(domain, withCells, slots);
  CellRuns<Domain> runs = runsOf(piece, domain, slots);
  if (piece.rule && !runs.visited.empty()) {
    auto listed = listedRuns(piece, domain, withCells, slots);
    runs.visited = common(domain, runs.visited, listed);
    runs.full = common(domain, runs.full, listed);
  }
  collector.visited.insert(collector.visited.end(), runs.visited.begin(), runs.visited.end());
  if (runs.hasRows)
    collector.meetFull(runs.full);
}

template <class Domain, class SymbolValues>
void BranchEvaluator::walkAlike(const CompiledPiece &piece, const CellBounds<typename Domain::Number> &bounds,
                                SymbolValues &valueOf, Collector<Domain> &collector) const {
  Domain &domain = collector.domain;
  if (domain.less(bounds.upper, bounds.lower))
    return;
  const int64_t count = domain.fixed(domain.sub(bounds.upper, bounds.lower)) + 1;
  auto ofFirstTile = [&](Symbol symbol) { return firstOf(valueOf(symbol)); };
  const int64_t period = cellPeriod(piece, firstOf(bounds.span), count, ofFirstTile);
  if constexpr (std::is_same_v<Domain, SweepDomain>) {
    sweepCells(piece, {bounds.lower, count, period}, valueOf, collector);
  } else {
    SweepDomain oneTile{0, 0, &tensors};
    Collector<SweepDomain> ofTile{oneTile, collector.columnsPerTile, collector.most - collector.evaluations};
    auto constants = [&](Symbol symbol) { return oneTile.constant(valueOf(symbol)); };
    sweepCells(piece, {{bounds.lower}, count, period}, constants, ofTile);
    collectTile(ofTile, collector);
  }
}

template <class Domain>
BranchEvaluator::CellRuns<Domain> BranchEvaluator::runsOf(const CompiledPiece &piece, Domain &domain,
                                                          const std::vector<typename Domain::Number> &slots) {
  using Number = typename Domain::Number;
  auto run = [&](unsigned first, unsigned last) -> std::vector<Run<Number>> {
    if (domain.less(slots[last], slots[first]))
      return {};
    return {{slots[first], domain.add(slots[last], domain.constant(1))}};
  };
  CellRuns<Domain> runs{
      run(piece.visitFirst, piece.visitLast), {}, !domain.equal(slots[piece.hasRows], domain.constant(0))};
  if (runs.hasRows)
    runs.full = run(piece.fullFirst, piece.fullLast);
  return runs;
}

template <class SymbolValues>
int64_t BranchEvaluator::cellPeriod(const CompiledPiece &piece, int64_t span, int64_t count,
                                    SymbolValues valueOf) const {
  constexpr int64_t kFew = 16; // take fewer evaluations than a period that is looked for
  if (count <= kFew)
    return count;
  PlainDomain domain{&tensors};
  std::vector<int64_t> slots, divisors;
  piece.program.run(domain, valueOf, slots);
  piece.program.appendDivisors(
      slots, [&](unsigned cell) { return cell == piece.cells.back().symbol ? span : 1; }, divisors);
  return choosePeriod(std::move(divisors), span, span * count);
}

template <class SymbolValues>
void BranchEvaluator::sweepCells(const CompiledPiece &piece, const CellSweep &sweep, SymbolValues &valueOf,
                                 Collector<SweepDomain> &collector) const {
  SweepDomain &domain = collector.domain;
  const Symbol swept{Symbol::Cell, piece.cells.back().symbol};
  std::vector<SweepNumber> slots;
  coverByRectangles(sweep.count, sweep.period, [&](const Rectangle &all) -> Rectangle {
    const SweepNumber cell = domain.add(sweep.first, {all.step + sweep.period * all.turn, 0, 0, 1, sweep.period});
    domain.cells = all.steps - 1;
    domain.cellTurns = all.turns - 1;
    piece.program.run(
        domain, [&](Symbol symbol) -> SweepNumber { return symbol == swept ? cell : valueOf(symbol); }, slots);
    const CellRuns<SweepDomain> runs = runsOf(piece, domain, slots);
    const Rectangle alike{all.step, all.turn, domain.cells + 1, domain.cellTurns + 1};
    domain.cells = domain.cellTurns = 0;
    collectAlike(runs, alike, collector);
    return collector.isSpent() ? Rectangle{} : alike;
  });
}

template <class Domain, class SymbolValues>
std::vector<BranchEvaluator::Run<typename Domain::Number>>
BranchEvaluator::listedRuns(const CompiledPiece &piece, Domain &domain, SymbolValues &valueOf,
                            const std::vector<typename Domain::Number> &slots) const {
  using Number = typename Domain::Number;
  std::vector<int64_t> arguments;
  for (unsigned argument : piece.arguments)
    arguments.push_back(domain.fixed(slots[argument]));
  const bool moves = piece.rule->movesWithRow(); // then sums need not go from row to row
  const int64_t row = moves ? 0 : domain.fixed(slots[piece.row]);
  const Number base = moves ? slots[piece.row] : domain.constant(0);
  std::vector<Run<Number>> runs;
  std::vector<Number> columns;
  for (int64_t cell : piece.rule->cells(arguments, row, &tensors)) {
    piece.listProgram.run(
        domain,
        [&](Symbol symbol) -> Number {
          return symbol.kind == Symbol::ListedCell ? domain.add(base, domain.constant(cell)) : valueOf(symbol);
        },
        columns);
    runs.push_back({columns[piece.listedFirst], domain.add(columns[piece.listedLast], domain.constant(1))});
  }
  return runs;
}

} // namespace heddle::attn
