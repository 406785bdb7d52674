//===- BranchEvaluator.cpp - programs of one branch ------------------------===//
#include "dialect/Geometry/BranchEvaluator.h"

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
  }
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

/// Cells [0, count) whose runs move by the slopes. Runs with less than a tile between them leave no tile out: one run
/// stands for them all.
void BranchEvaluator::collectAlike(const CellRuns<SweepDomain> &runs, int64_t count,
                                   Collector<PlainDomain> &collector) {
  auto at = [](SweepNumber number, int64_t cell) { return number.value + cell * number.slope; };
  for (const auto &[begin, end] : runs.visited) {
    auto isJoined = [&, begin = begin, end = end](int64_t cell) {
      return at(begin, cell + 1) - at(end, cell) < collector.columnsPerTile;
    };
    const bool ascends = begin.slope >= 0 && end.slope >= 0;
    if (count == 1 || (ascends && isJoined(0) && isJoined(count - 2)))
      collector.visited.push_back({begin.value, at(end, count - 1)});
    else
      for (int64_t cell = 0; cell < count; ++cell)
        collector.visited.push_back({at(begin, cell), at(end, cell)});
  }
  if (!runs.hasRows)
    return;
  std::vector<Run<int64_t>> full;
  for (const auto &[begin, end] : runs.full)
    full.push_back({std::max(begin.value, at(begin, count - 1)), std::min(end.value, at(end, count - 1))});
  if (!full.empty() && full[0].end <= full[0].begin)
    full.clear();
  collector.meetFull(full);
}

bool BranchEvaluator::uses(Symbol::Kind kind) const {
  return countProgram.uses(kind) || std::any_of(pieces.begin(), pieces.end(), [&](const CompiledPiece &piece) {
           return piece.program.uses(kind) || piece.listProgram.uses(kind) ||
                  std::any_of(piece.cells.begin(), piece.cells.end(),
                              [&](const CompiledPiece::Cell &cell) { return cell.program.uses(kind); });
         });
}

} // namespace heddle::attn
