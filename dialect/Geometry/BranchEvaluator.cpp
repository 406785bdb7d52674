#include "dialect/Geometry/BranchEvaluator.h"

#include <stdexcept>
#include <utility>

namespace heddle::attn {

BranchEvaluator::BranchEvaluator(const BranchRanges &branch, const TensorData &tensors)
    : tensors(tensors), columnRate(branch.columnRate) {
  columnCount = countProgram.add(branch.columnCount);
  columnResidue = residueProgram.add(branch.columnResidue);
  for (const PieceRange &range : branch.pieces) {
    CompiledPiece &piece = pieces.emplace_back();
    for (const CellRange &cell : range.cells) {
      CompiledPiece::Cell &compiled = piece.cells.emplace_back();
      compiled.symbol = cell.cell;
      compiled.lower = compiled.program.add(cell.lower);
      compiled.upper = compiled.program.add(cell.upper);
      compiled.span = compiled.program.add(cell.span);
    }
    piece.visitFirst = piece.program.add(range.visitFirst);
    piece.visitLast = piece.program.add(range.visitLast);
    piece.hasRows = piece.program.add(range.hasRows);
    piece.fullFirst = piece.program.add(range.fullFirst);
    piece.fullLast = piece.program.add(range.fullLast);
    if (range.list)
      compileList(piece, *range.list);
    piece.requireOwnCells();
  }
}

void BranchEvaluator::CompiledPiece::requireOwnCells() const {
  for (const ExprProgram *asked : {&program, &listProgram})
    for (unsigned used : asked->cells())
      if (std::none_of(cells.begin(), cells.end(), [&](const Cell &cell) { return cell.symbol == used; }))
        throw std::logic_error("a range of columns uses cell " + std::to_string(used) +
                               ", which its piece has no loop of");
}

void BranchEvaluator::compileList(CompiledPiece &piece, const ListedColumns &list) {
  piece.rule = list.rule;
  for (const IntExpr &argument : list.arguments)
    piece.arguments.push_back(piece.program.add(argument));
  piece.row = piece.program.add(list.row);
  piece.listSpan = piece.program.add(list.span);
  piece.listedFirst = piece.listProgram.add(list.first);
  piece.listedLast = piece.listProgram.add(list.last);
}

namespace {

using SweepRun = BranchEvaluator::Run<SweepNumber>;

/// So many cells of a rectangle in one of its directions.
struct SweepAxis {
  int64_t SweepNumber::*change;
  int64_t count;

  SweepNumber at(SweepNumber number, int64_t cell) const {
    number.value += cell * std::exchange(number.*change, 0);
    return number;
  }
  SweepNumber last(const SweepNumber &number) const { return at(number, count - 1); }
};

/// Runs with less than a tile between them, and the next, leave no tile out.
bool areJoined(SweepDomain &domain, const SweepRun &run, const SweepAxis &axis, const SweepAxis &other,
               int64_t columnsPerTile) {
  if (run.begin.*axis.change < 0 || run.end.*axis.change < 0)
    return false;
  for (int64_t cell : {int64_t(0), axis.count - 2})
    for (int64_t beside : {int64_t(0), other.count - 1}) {
      const SweepNumber gap = domain.sub(axis.at(run.begin, cell + 1), axis.at(run.end, cell));
      if (!domain.less(other.at(gap, beside), domain.constant(columnsPerTile)))
        return false;
    }
  return true;
}

/// The runs of all cells along an axis; one stands for those that are joined.
std::vector<SweepRun> alongAxis(SweepDomain &domain, const std::vector<SweepRun> &runs, const SweepAxis &axis,
                                const SweepAxis &other, int64_t columnsPerTile) {
  std::vector<SweepRun> all;
  for (const SweepRun &run : runs)
    if (axis.count > 1 && areJoined(domain, run, axis, other, columnsPerTile))
      all.push_back({axis.at(run.begin, 0), axis.last(run.end)});
    else
      for (int64_t cell = 0; cell < axis.count; ++cell)
        all.push_back({axis.at(run.begin, cell), axis.at(run.end, cell)});
  return all;
}

} // namespace

void BranchEvaluator::collectAlike(const CellRuns<SweepDomain> &runs, const Rectangle &alike,
                                   Collector<SweepDomain> &collector) {
  SweepDomain &domain = collector.domain;
  const SweepAxis steps{&SweepNumber::cell, alike.steps}, turns{&SweepNumber::cellTurn, alike.turns};
  auto visited = alongAxis(domain, runs.visited, steps, turns, collector.columnsPerTile);
  visited = alongAxis(domain, visited, turns, steps, collector.columnsPerTile);
  collector.visited.insert(collector.visited.end(), visited.begin(), visited.end());
  collector.evaluations += std::max<int64_t>(int64_t(visited.size()), 1);
  if (!runs.hasRows)
    return;
  std::vector<SweepRun> full = runs.full;
  for (SweepRun &run : full)
    for (const SweepAxis &axis : {steps, turns}) {
      run.begin = run.begin.*axis.change > 0 ? axis.last(run.begin) : axis.at(run.begin, 0);
      run.end = run.end.*axis.change < 0 ? axis.last(run.end) : axis.at(run.end, 0);
    }
  if (!full.empty() && !domain.less(full[0].begin, full[0].end))
    full.clear();
  collector.meetFull(full);
}

void BranchEvaluator::collectTile(const Collector<SweepDomain> &tile, Collector<PlainDomain> &collector) {
  auto plain = [](const std::vector<SweepRun> &runs) {
    std::vector<Run<int64_t>> values;
    for (const SweepRun &run : runs)
      values.push_back({run.begin.value, run.end.value});
    return values;
  };
  const auto visited = plain(tile.visited);
  collector.visited.insert(collector.visited.end(), visited.begin(), visited.end());
  collector.evaluations += tile.evaluations;
  if (tile.anyCell)
    collector.meetFull(plain(tile.full));
}

bool BranchEvaluator::uses(Symbol::Kind kind) const {
  return countProgram.uses(kind) || std::any_of(pieces.begin(), pieces.end(), [&](const CompiledPiece &piece) {
           return piece.program.uses(kind) || piece.listProgram.uses(kind) ||
                  std::any_of(piece.cells.begin(), piece.cells.end(),
                              [&](const CompiledPiece::Cell &cell) { return cell.program.uses(kind); });
         });
}

} // namespace heddle::attn
