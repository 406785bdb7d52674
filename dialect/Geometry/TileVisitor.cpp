//===- TileVisitor.cpp - single tiles of rows -----------------------------===//
#include "dialect/Geometry/TileVisitor.h"
#include "dialect/Geometry/BranchEvaluator.h"
#include "dialect/Geometry/RowTiles.h"

namespace heddle::attn {

TileVisitor::TileVisitor(const VariantRanges &variant, unsigned branch, Direction direction, const ProblemSizes &sizes)
    : evaluator(std::make_unique<BranchEvaluator>(variant.branches[branch], sizes.tensors)), rowRate(variant.rowRate),
      direction(direction), sizes(sizes) {}
TileVisitor::TileVisitor(TileVisitor &&) noexcept = default;
TileVisitor::~TileVisitor() = default;

TileVisit TileVisitor::visit(int64_t head, RowTile tile, int64_t columnsPerTile) const {
  ClassTiles tiles(rowAxis(sizes, direction), rowRate, tile.rowClass, tile.block);
  PlainDomain domain{&sizes.tensors};
  int64_t first = tiles.first + tiles.step * tile.index;
  auto visit = evaluator->visit(
      domain,
      [&](Symbol symbol) {
        if (symbol.kind == Symbol::TileFirst)
          return first;
        if (symbol.kind == Symbol::TileLast)
          return std::min(first + tiles.span, tiles.lastRow);
        return symbolValue(sizes, head, symbol);
      },
      columnsPerTile);
  TileVisit result;
  result.evaluations = visit.evaluations;
  for (const auto &run : visit.visited)
    result.visited.push_back({run.begin, run.end});
  for (const auto &run : visit.full)
    result.full.push_back({run.begin, run.end});
  return result;
}

std::vector<int64_t> TileVisitor::headValues(int64_t head) const {
  return evaluator->headValues([&](Symbol symbol) { return symbolValue(sizes, head, symbol); });
}

TileVisit visitTile(const VariantRanges &variant, unsigned branch, Direction direction, const ProblemSizes &sizes,
                    int64_t head, RowTile tile, int64_t columnsPerTile) {
  return TileVisitor(variant, branch, direction, sizes).visit(head, tile, columnsPerTile);
}

} // namespace heddle::attn
