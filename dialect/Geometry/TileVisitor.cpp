#include "dialect/Geometry/TileVisitor.h"
#include "dialect/Geometry/CellWalk.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/RowTiles.h"

namespace heddle::attn {

TileVisitor::TileVisitor(const VariantRanges &variant, unsigned branch, Direction direction, const ProblemSizes &sizes)
    : evaluator(std::make_unique<BranchEvaluator>(variant.branches[branch], sizes.tensors)), rowRate(variant.rowRate),
      direction(direction), sizes(sizes) {}
TileVisitor::TileVisitor(TileVisitor &&) noexcept = default;
TileVisitor::~TileVisitor() = default;

TileVisit TileVisitor::visit(int64_t head, RowTile tile, int64_t columnsPerTile, int64_t most) const {
  const ClassTiles tiles(rowAxis(sizes, direction), rowRate, tile.rowClass, tile.block);
  const int64_t first = tiles.first + tiles.step * tile.index;
  return visit(head, RowSpan{first, std::min(first + tiles.span, tiles.lastRow)}, columnsPerTile, most);
}

TileVisit TileVisitor::visit(int64_t head, RowSpan rows, int64_t columnsPerTile, int64_t most) const {
  PlainDomain domain{&sizes.tensors};
  auto visit = evaluator->visit(
      domain,
      [&](Symbol symbol) {
        if (symbol.kind == Symbol::TileFirst)
          return rows.first;
        return symbol.kind == Symbol::TileLast ? rows.last : symbolValue(sizes, head, symbol);
      },
      columnsPerTile, most);
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

int64_t TileVisitor::columnResidue(int64_t head, int64_t firstRow) const {
  return evaluator->residue(
      [&](Symbol symbol) { return symbol.kind == Symbol::TileFirst ? firstRow : symbolValue(sizes, head, symbol); });
}

HeadVisitors::HeadVisitors(const PatternAnalysis &analysis, Direction direction, const ProblemSizes &sizes)
    : analysis(analysis), sizes(sizes), variants(analysis.variants.size()) {
  for (size_t variant = 0; variant < variants.size(); ++variant) {
    const VariantRanges &ranges = analysis.variants[variant].ranges(direction);
    for (unsigned branch = 0; branch < ranges.branches.size(); ++branch)
      variants[variant].emplace_back(ranges, branch, direction, sizes);
  }
}

const std::vector<TileVisitor> &HeadVisitors::of(int64_t head) const {
  return variants[variantOf(analysis, sizes, head)];
}

std::vector<int64_t> HeadVisitors::headValues(int64_t head) const {
  const unsigned variant = variantOf(analysis, sizes, head);
  std::vector<int64_t> values = {variant};
  for (const TileVisitor &branch : variants[variant]) {
    const std::vector<int64_t> own = branch.headValues(head);
    values.insert(values.end(), own.begin(), own.end());
  }
  return values;
}

} // namespace heddle::attn
