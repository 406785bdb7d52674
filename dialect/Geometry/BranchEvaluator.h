// Owns the evaluation of BranchRanges for one tile of rows: loops over the cells that the tile crosses, joins the
// visited ranges and intersects the full ones. Shared by single tiles (PlainDomain) and sums (SweepDomain).
#pragma once

#include "dialect/Geometry/ExprProgram.h"
#include "dialect/Geometry/Period.h"
#include "dialect/Geometry/ProblemSizes.h"
#include "dialect/Geometry/Ranges.h"

#include <algorithm>
#include <map>
#include <memory>
#include <type_traits>

namespace heddle::attn {

class BranchEvaluator {
public:
  /// `tensors` outlives the evaluator; domains name it too.
  BranchEvaluator(const BranchRanges &branch, const TensorData &tensors);

  bool uses(Symbol::Kind kind) const;
  /// What positions are divided by in floors and remainders, and in the split of columns into tiles, for sizes that
  /// `valueOf` gives.
  template <class SymbolValues> std::vector<int64_t> divisors(SymbolValues valueOf, int64_t columnsPerTile) const;

  /// Heads with equal values (sizes alike) have equal ranges for every tile.
  template <class SymbolValues> std::vector<int64_t> headValues(SymbolValues valueOf) const;

  /// Of the class of columns.
  template <class SymbolValues> int64_t residue(SymbolValues valueOf) const {
    PlainDomain domain{&tensors};
    std::vector<int64_t> slots;
    residueProgram.run(domain, valueOf, slots);
    return slots[columnResidue];
  }

  /// At most so many entries of lists are read for `rows` rows, and at most so many tiles do they visit.
  template <class SymbolValues> WideInt listEntries(SymbolValues valueOf, int64_t rows) const;
  template <class SymbolValues> WideInt listTiles(SymbolValues valueOf, int64_t rows, TileShape shape) const;

  template <class Number> struct Run {
    Number begin, end;
  };
  template <class Domain> struct Visit {
    std::vector<Run<typename Domain::Number>> visited, full;
    int64_t evaluations = 0; ///< of a piece, or of a loop's bounds, in a combination of cells, or in many alike
  };

  /// Tile runs for the tile of rows that `valueOf` describes (TileFirst, TileLast); sorted and joined. Ends early, and
  /// means nothing, once it has taken more evaluations than `most`.
  template <class Domain, class SymbolValues>
  Visit<Domain> visit(Domain &domain, SymbolValues valueOf, int64_t columnsPerTile, int64_t most) const;

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
    std::shared_ptr<const ListRule> rule; ///< null: no list
    std::vector<unsigned> arguments;
    unsigned row = 0, listSpan = 0;
    ExprProgram listProgram; ///< over Symbol::ListedCell
    unsigned listedFirst = 0, listedLast = 0;
    /// Throws std::logic_error where a program uses a cell that is not among `cells`: it would count as cell 0.
    void requireOwnCells() const;
  };
  /// Runs are columns [begin, end). `full` holds those that the rows of all cells so far keep; a run lies in one cell
  /// of every list.
  template <class Domain> struct Collector {
    Domain &domain;
    int64_t columnsPerTile, most; ///< evaluations
    std::vector<Run<typename Domain::Number>> visited = {}, full = {};
    bool anyCell = false;
    int64_t evaluations = 0;

    bool isSpent() const { return evaluations > most; }

    void meetFull(const std::vector<Run<typename Domain::Number>> &other) {
      full = anyCell ? common(domain, full, other) : other;
      anyCell = true;
    }
  };
  /// What a piece without a list asks of a tile, in one combination of cells.
  template <class Domain> struct CellRuns {
    std::vector<Run<typename Domain::Number>> visited, full; ///< at most one each
    bool hasRows;
  };
  template <class Domain>
  static CellRuns<Domain> runsOf(const CompiledPiece &piece, Domain &domain,
                                 const std::vector<typename Domain::Number> &slots);
  template <class Number> struct CellBounds {
    Number lower, upper, span;
  };
  static int64_t firstOf(int64_t number) { return number; }
  static int64_t firstOf(const SweepNumber &number) { return number.value; }
  /// walkCells over the innermost loop of a piece without a list.
  template <class Domain, class SymbolValues>
  void walkAlike(const CompiledPiece &piece, const CellBounds<typename Domain::Number> &bounds, SymbolValues &valueOf,
                 Collector<Domain> &collector) const;
  /// `count` cells from the first one on, numbered by turns of a period.
  struct CellSweep {
    SweepNumber first;
    int64_t count, period;
  };
  /// Those that evaluate alike together.
  template <class SymbolValues>
  void sweepCells(const CompiledPiece &piece, const CellSweep &sweep, SymbolValues &valueOf,
                  Collector<SweepDomain> &collector) const;
  /// How cells `span` positions apart repeat.
  template <class SymbolValues>
  int64_t cellPeriod(const CompiledPiece &piece, int64_t span, int64_t count, SymbolValues valueOf) const;
  static void collectAlike(const CellRuns<SweepDomain> &runs, const Rectangle &alike,
                           Collector<SweepDomain> &collector);
  static void collectTile(const Collector<SweepDomain> &tile, Collector<PlainDomain> &collector);
  template <class Domain, class SymbolValues>
  std::vector<Run<typename Domain::Number>> listedRuns(const CompiledPiece &piece, Domain &domain,
                                                       SymbolValues &valueOf,
                                                       const std::vector<typename Domain::Number> &slots) const;
  template <class Domain>
  static std::vector<Run<typename Domain::Number>> common(Domain &domain,
                                                          const std::vector<Run<typename Domain::Number>> &a,
                                                          const std::vector<Run<typename Domain::Number>> &b);
  /// use(rule, positions of a cell, longest list), in the first cell of every loop.
  template <class SymbolValues, class Use> void forEachList(SymbolValues valueOf, Use use) const;
  static void compileList(CompiledPiece &piece, const ListedColumns &list);
  template <class Domain, class SymbolValues>
  void walkCells(const CompiledPiece &piece, size_t depth, std::vector<typename Domain::Number> &cells,
                 SymbolValues &valueOf, Collector<Domain> &collector) const;
  template <class Domain>
  static std::vector<Run<typename Domain::Number>> joined(Domain &domain,
                                                          std::vector<Run<typename Domain::Number>> runs);

  const TensorData &tensors;
  std::vector<CompiledPiece> pieces;
  int64_t columnRate;
  ExprProgram countProgram, residueProgram;
  unsigned columnCount, columnResidue;
};

template <class SymbolValues>
std::vector<int64_t> BranchEvaluator::divisors(SymbolValues valueOf, int64_t columnsPerTile) const {
  PlainDomain domain{&tensors};
  std::vector<int64_t> slots, divisors = {columnRate * columnsPerTile}; // a tile's number is a floor of a floor
  std::map<unsigned, int64_t> spans;
  auto spanOf = [&](unsigned cell) { return spans.count(cell) ? spans[cell] : int64_t(1); };
  auto include = [&](const ExprProgram &program) {
    program.run(domain, valueOf, slots);
    program.appendDivisors(slots, spanOf, divisors);
  };
  for (const CompiledPiece &piece : pieces) {
    spans.clear();
    for (const CompiledPiece::Cell &cell : piece.cells) {
      include(cell.program);
      spans[cell.symbol] = slots[cell.span];
    }
    include(piece.program);
    include(piece.listProgram);
  }
  return divisors;
}

template <class SymbolValues> std::vector<int64_t> BranchEvaluator::headValues(SymbolValues valueOf) const {
  PlainDomain domain{&tensors};
  std::vector<int64_t> slots, values;
  auto include = [&](const ExprProgram &program) {
    program.run(domain, valueOf, slots);
    program.headValues(slots, values);
  };
  include(countProgram);
  for (const CompiledPiece &piece : pieces) {
    include(piece.program);
    include(piece.listProgram);
    for (const CompiledPiece::Cell &cell : piece.cells)
      include(cell.program);
  }
  return values;
}

template <class SymbolValues> WideInt BranchEvaluator::listEntries(SymbolValues valueOf, int64_t rows) const {
  WideInt entries = 0;
  forEachList(valueOf, [&](const ListRule &rule, int64_t span, int64_t longest) {
    const WideInt cellRows = rows / span + 2;
    // A list that moves is read whenever an entry of it enters or leaves the columns.
    entries += (rule.movesWithRow() ? std::min<WideInt>(cellRows, longest) : cellRows) * longest;
  });
  return entries;
}

template <class SymbolValues>
WideInt BranchEvaluator::listTiles(SymbolValues valueOf, int64_t rows, TileShape shape) const {
  WideInt tiles = 0;
  forEachList(valueOf, [&](const ListRule &, int64_t span, int64_t longest) {
    const WideInt pieces = WideInt(rows / span + 2) + rows / shape.rows + 1; // rows of one cell and one tile
    tiles += pieces * longest * (span / (shape.columns * columnRate) + 2);
  });
  return tiles;
}

template <class SymbolValues, class Use> void BranchEvaluator::forEachList(SymbolValues valueOf, Use use) const {
  PlainDomain domain{&tensors};
  std::vector<int64_t> slots;
  for (const CompiledPiece &piece : pieces)
    if (piece.rule) {
      piece.program.run(domain, valueOf, slots);
      std::vector<int64_t> arguments;
      for (unsigned argument : piece.arguments)
        arguments.push_back(slots[argument]);
      use(*piece.rule, slots[piece.listSpan], piece.rule->longest(arguments, &tensors));
    }
}

/// Both lists ascend; runs of one list do not overlap.
template <class Domain>
std::vector<BranchEvaluator::Run<typename Domain::Number>>
BranchEvaluator::common(Domain &domain, const std::vector<Run<typename Domain::Number>> &a,
                        const std::vector<Run<typename Domain::Number>> &b) {
  using Number = typename Domain::Number;
  std::vector<Run<Number>> result;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    Number begin = domain.less(a[i].begin, b[j].begin) ? b[j].begin : a[i].begin;
    const bool endsFirst = domain.less(a[i].end, b[j].end);
    Number end = endsFirst ? a[i].end : b[j].end;
    if (domain.less(begin, end))
      result.push_back({begin, end});
    endsFirst ? ++i : ++j;
  }
  return result;
}

template <class Domain>
std::vector<BranchEvaluator::Run<typename Domain::Number>>
BranchEvaluator::joined(Domain &domain, std::vector<Run<typename Domain::Number>> runs) {
  std::sort(runs.begin(), runs.end(), [&](const auto &a, const auto &b) { return domain.less(a.begin, b.begin); });
  std::vector<Run<typename Domain::Number>> result;
  for (const auto &run : runs) {
    if (result.empty() || domain.less(result.back().end, run.begin))
      result.push_back(run);
    else if (domain.less(result.back().end, run.end))
      result.back().end = run.end;
  }
  return result;
}

template <class Domain, class SymbolValues>
BranchEvaluator::Visit<Domain> BranchEvaluator::visit(Domain &domain, SymbolValues valueOf, int64_t columnsPerTile,
                                                      int64_t most) const {
  using Number = typename Domain::Number;
  Number one = domain.constant(1), block = domain.constant(columnsPerTile);
  auto ceilDiv = [&](Number a) { return domain.floorDiv(domain.add(a, domain.constant(columnsPerTile - 1)), block); };
  std::vector<Number> slots;
  countProgram.run(domain, valueOf, slots);
  Number count = slots[columnCount];
  std::vector<Run<Number>> visited, full;
  int64_t evaluations = 0;
  for (const CompiledPiece &piece : pieces) {
    Collector<Domain> collector{domain, columnsPerTile, most - evaluations};
    std::vector<Number> cells(piece.cells.size());
    walkCells(piece, 0, cells, valueOf, collector);
    evaluations += collector.evaluations;
    for (const auto &columns : collector.visited)
      visited.push_back({domain.floorDiv(columns.begin, block),
                         domain.add(domain.floorDiv(domain.sub(columns.end, one), block), one)});
    for (const auto &columns : collector.full) {
      bool reachesEnd = !domain.less(columns.end, count);
      Run<Number> run{ceilDiv(columns.begin), reachesEnd ? ceilDiv(count) : domain.floorDiv(columns.end, block)};
      if (domain.less(run.begin, run.end))
        full.push_back(run);
    }
  }
  return {joined(domain, visited), joined(domain, full), evaluations};
}

} // namespace heddle::attn
