//===- BranchEvaluator.h - ranges of one branch, in any domain --*- C++ -*-===//
// Owns the evaluation of BranchRanges for one tile of rows: loops over the cells that the tile crosses, joins the
// visited ranges and intersects the full ones. Shared by single tiles (PlainDomain) and sums (SweepDomain).
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_ANALYSIS_BRANCHEVALUATOR_H
#define HEDDLE_DIALECT_ANALYSIS_BRANCHEVALUATOR_H

#include "dialect/Analysis/Counts.h"
#include "dialect/Analysis/ExprProgram.h"

#include <map>

namespace heddle::attn {

class BranchEvaluator {
public:
  explicit BranchEvaluator(const BranchRanges &branch);

  bool uses(Symbol::Kind kind) const;
  /// Positions after which every floor and remainder, and the split of columns into tiles, repeat, for sizes that
  /// `valueOf` gives. Divisors that would take it beyond `limit` are left out.
  template <class SymbolValues> int64_t period(SymbolValues valueOf, int64_t columnsPerTile, int64_t limit) const;

  /// Heads with equal values (sizes alike) have equal ranges for every tile.
  template <class SymbolValues> std::vector<int64_t> headValues(SymbolValues valueOf) const;

  template <class Number> struct Run { Number begin, end; };
  template <class Domain> struct Visit { std::vector<Run<typename Domain::Number>> visited, full; };

  /// Tile runs for the tile of rows that `valueOf` describes (TileFirst, TileLast); sorted and joined.
  template <class Domain, class SymbolValues>
  Visit<Domain> visit(Domain &domain, SymbolValues valueOf, int64_t columnsPerTile) const;

private:
  struct CompiledPiece {
    struct Cell {
      unsigned symbol;
      ExprProgram program;
      unsigned lower, upper, span;
    };
    std::vector<Cell> cells;
    ExprProgram program;
    unsigned visitFirst, visitLast, hasRows, fullFirst, fullLast;
  };
  template <class Domain> struct Collector {
    Domain &domain;
    std::vector<Run<typename Domain::Number>> visited; ///< columns [begin, end)
    bool anyCell = false;
    typename Domain::Number fullFirst, fullLast;
  };
  template <class Domain, class SymbolValues>
  void walkCells(const CompiledPiece &piece, size_t depth, std::vector<typename Domain::Number> &cells,
                 SymbolValues &valueOf, Collector<Domain> &collector) const;
  template <class Domain>
  static std::vector<Run<typename Domain::Number>> joined(Domain &domain, std::vector<Run<typename Domain::Number>> runs);

  std::vector<CompiledPiece> pieces;
  int64_t columnRate;
  ExprProgram countProgram;
  unsigned columnCount;
};

template <class SymbolValues>
int64_t BranchEvaluator::period(SymbolValues valueOf, int64_t columnsPerTile, int64_t limit) const {
  PlainDomain domain;
  std::vector<int64_t> slots;
  int64_t period = columnRate * columnsPerTile; // a tile's number is a floor of a floor
  std::map<unsigned, int64_t> spans;
  auto spanOf = [&](unsigned cell) { return spans.count(cell) ? spans[cell] : int64_t(1); };
  auto include = [&](const ExprProgram &program) {
    program.run(domain, valueOf, slots);
    period = program.leastCommonDivisor(slots, spanOf, period, limit);
  };
  for (const CompiledPiece &piece : pieces) {
    spans.clear();
    for (const CompiledPiece::Cell &cell : piece.cells) {
      include(cell.program);
      spans[cell.symbol] = slots[cell.span];
    }
    include(piece.program);
  }
  return period;
}

template <class SymbolValues> std::vector<int64_t> BranchEvaluator::headValues(SymbolValues valueOf) const {
  PlainDomain domain;
  std::vector<int64_t> slots, values;
  auto include = [&](const ExprProgram &program) {
    program.run(domain, valueOf, slots);
    program.headValues(slots, values);
  };
  include(countProgram);
  for (const CompiledPiece &piece : pieces) {
    include(piece.program);
    for (const CompiledPiece::Cell &cell : piece.cells)
      include(cell.program);
  }
  return values;
}

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
    Number upper = slots[cell.upper];
    for (Number index = slots[cell.lower]; !domain.less(upper, index); index = domain.add(index, domain.constant(1))) {
      cells[depth] = index;
      walkCells(piece, depth + 1, cells, valueOf, collector);
    }
    return;
  }
  piece.program.run(domain, withCells, slots);
  if (!domain.less(slots[piece.visitLast], slots[piece.visitFirst]))
    collector.visited.push_back({slots[piece.visitFirst], domain.add(slots[piece.visitLast], domain.constant(1))});
  if (domain.equal(slots[piece.hasRows], domain.constant(0)))
    return;
  Number first = slots[piece.fullFirst], last = slots[piece.fullLast];
  if (!collector.anyCell || domain.less(collector.fullFirst, first))
    collector.fullFirst = first;
  if (!collector.anyCell || domain.less(last, collector.fullLast))
    collector.fullLast = last;
  collector.anyCell = true;
}

template <class Domain>
std::vector<BranchEvaluator::Run<typename Domain::Number>>
BranchEvaluator::joined(Domain &domain, std::vector<Run<typename Domain::Number>> runs) {
  std::vector<Run<typename Domain::Number>> sorted;
  for (const auto &run : runs) { // insertion sort: the domain decides every comparison once
    auto place = sorted.end();
    while (place != sorted.begin() && domain.less(run.begin, (place - 1)->begin))
      --place;
    sorted.insert(place, run);
  }
  std::vector<Run<typename Domain::Number>> result;
  for (const auto &run : sorted) {
    if (result.empty() || domain.less(result.back().end, run.begin))
      result.push_back(run);
    else if (domain.less(result.back().end, run.end))
      result.back().end = run.end;
  }
  return result;
}

template <class Domain, class SymbolValues>
BranchEvaluator::Visit<Domain> BranchEvaluator::visit(Domain &domain, SymbolValues valueOf, int64_t columnsPerTile) const {
  using Number = typename Domain::Number;
  Number one = domain.constant(1), block = domain.constant(columnsPerTile);
  auto ceilDiv = [&](Number a) { return domain.floorDiv(domain.add(a, domain.constant(columnsPerTile - 1)), block); };
  std::vector<Number> slots;
  countProgram.run(domain, valueOf, slots);
  Number count = slots[columnCount];
  std::vector<Run<Number>> visited, full;
  for (const CompiledPiece &piece : pieces) {
    Collector<Domain> collector{domain, {}, false, {}, {}};
    std::vector<Number> cells(piece.cells.size());
    walkCells(piece, 0, cells, valueOf, collector);
    for (const auto &columns : collector.visited)
      visited.push_back({domain.floorDiv(columns.begin, block),
                         domain.add(domain.floorDiv(domain.sub(columns.end, one), block), one)});
    if (!collector.anyCell || domain.less(collector.fullLast, collector.fullFirst))
      continue;
    bool reachesEnd = !domain.less(domain.add(collector.fullLast, one), count);
    Run<Number> run{ceilDiv(collector.fullFirst),
                    reachesEnd ? ceilDiv(count) : domain.floorDiv(domain.add(collector.fullLast, one), block)};
    if (domain.less(run.begin, run.end))
      full.push_back(run);
  }
  return {joined(domain, visited), joined(domain, full)};
}

} // namespace heddle::attn

#endif
