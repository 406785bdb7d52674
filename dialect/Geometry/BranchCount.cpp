#include "dialect/Geometry/BranchCount.h"
#include "dialect/Geometry/CellWalk.h"
#include "dialect/Geometry/Period.h"

#include <algorithm>

namespace heddle::attn {

namespace {

/// Sum of the lengths of runs.
SweepNumber totalLength(const std::vector<BranchEvaluator::Run<SweepNumber>> &runs, SweepDomain &domain) {
  SweepNumber total;
  for (const auto &run : runs)
    total = domain.add(total, domain.sub(run.end, run.begin));
  return total;
}

/// Sums one branch over the tiles of one class of rows.
class ClassSum {
public:
  ClassSum(const BranchEvaluator &evaluator, const ProblemSizes &sizes, int64_t head, int64_t columnsPerTile)
      : evaluator(evaluator), sizes(sizes), head(head), columnsPerTile(columnsPerTile), left(sizes.mostEvaluations) {}

  /// More evaluations than the sizes allow: what `run` returned is not the sum.
  bool isCutShort() const { return left < 0; }
  int64_t evaluations() const { return sizes.mostEvaluations - left; }

  TileCounts run(const ClassTiles &tiles) {
    auto valueOf = [&](Symbol symbol) {
      return symbol.kind == Symbol::TileFirst || symbol.kind == Symbol::TileLast ? tiles.first
                                                                                 : symbolValue(sizes, head, symbol);
    };
    const int64_t period =
        choosePeriod(evaluator.divisors(valueOf, columnsPerTile), tiles.step, tiles.step * tiles.count);
    TileCounts counts;
    coverByRectangles(tiles.count, period, [&](const Rectangle &all) { return sumCorner(tiles, period, all, counts); });
    return counts;
  }

private:
  /// Sums the tiles about the first of `all` that are evaluated alike, and returns which they are.
  Rectangle sumCorner(const ClassTiles &tiles, int64_t period, const Rectangle &all, TileCounts &counts) {
    SweepDomain domain{all.steps - 1, all.turns - 1, &sizes.tensors};
    SweepNumber tileFirst{tiles.first + tiles.step * (all.step + period * all.turn), tiles.step, tiles.step * period};
    SweepNumber whole = domain.add(tileFirst, {tiles.span, 0, 0}), limit{tiles.lastRow, 0, 0};
    SweepNumber tileLast = domain.less(limit, whole) ? limit : whole;
    auto visit = evaluator.visit(
        domain,
        [&](Symbol symbol) -> SweepNumber {
          if (symbol.kind == Symbol::TileFirst)
            return tileFirst;
          if (symbol.kind == Symbol::TileLast)
            return tileLast;
          return {symbolValue(sizes, head, symbol), 0, 0};
        },
        columnsPerTile, left);
    left -= std::max<int64_t>(visit.evaluations, 1);
    if (isCutShort())
      return {};
    SweepNumber visited = totalLength(visit.visited, domain), full = totalLength(visit.full, domain);
    Rectangle done{all.step, all.turn, domain.horizon + 1, domain.turns + 1};
    counts.visited += seriesSum(visited, done.steps, done.turns);
    counts.full += seriesSum(full, done.steps, done.turns);
    return done;
  }

  const BranchEvaluator &evaluator;
  const ProblemSizes &sizes;
  int64_t head, columnsPerTile, left;
};

/// Tiles of a shape over these rows.
struct ClassTilesOf {
  SplitRows split;
  RowAxis rows;
  TileShape shape;
};

TileCounts sumClasses(const BranchEvaluator &evaluator, const ClassTilesOf &of, const ProblemSizes &sizes,
                      int64_t head) {
  TileCounts counts;
  ClassSum sum(evaluator, sizes, head, of.shape.columns);
  for (int64_t rowClass = 0; rowClass < std::min(of.split.rate, of.rows.count) && !sum.isCutShort(); ++rowClass)
    counts.add(sum.run(ClassTiles(of.rows, of.split.rate, rowClass, of.shape.rows)));
  if (sum.isCutShort())
    counts = everyTile(of.split, 1, sizes, of.shape);
  counts.isCutShort = sum.isCutShort();
  counts.evaluations = sum.evaluations();
  return counts;
}

BranchRanges withoutLists(const BranchRanges &branch) {
  BranchRanges plain = branch;
  auto isListed = [](const PieceRange &piece) { return piece.list.has_value(); };
  plain.pieces.erase(std::remove_if(plain.pieces.begin(), plain.pieces.end(), isListed), plain.pieces.end());
  return plain;
}

} // namespace

TileCounts everyTile(SplitRows split, int64_t columnRate, const ProblemSizes &sizes, TileShape shape) {
  const int64_t rows = rowAxis(sizes, split.direction).count,
                inClass = rowsInClass(rowAxis(sizes, opposite(split.direction)).count, columnRate, 0);
  return {WideInt(countRowTiles(rows, split.rate, shape.rows)) * ((inClass + shape.columns - 1) / shape.columns), 0,
          /*isBound=*/true};
}

bool hasLists(const BranchRanges &branch) {
  return std::any_of(branch.pieces.begin(), branch.pieces.end(),
                     [](const PieceRange &piece) { return piece.list.has_value(); });
}

BranchCount::BranchCount(const BranchRanges &branch, SplitRows split, const TensorData &tensors)
    : split(split), whole(branch, tensors), plain(withoutLists(branch), tensors) {}

BranchCount BranchCount::of(const Variant &variant, size_t index, Direction direction, const TensorData &tensors) {
  const VariantRanges &own = variant.ranges(direction), &other = variant.ranges(opposite(direction));
  BranchCount count(own.branches[index], {direction, own.rowRate}, tensors);
  auto isExact = [&](const VariantRanges &side) {
    const BranchRanges &branch = side.branches[index];
    return side.rowRate == 1 && branch.columnRate == 1 && !branch.masked && !branch.mayVisitGaps;
  };
  if (hasLists(own.branches[index]) && isExact(own) && isExact(other) && !hasLists(other.branches[index]))
    count.fromOtherAxis.emplace(other.branches[index], tensors);
  return count;
}

TileCounts BranchCount::count(const ProblemSizes &sizes, int64_t head, TileShape shape) {
  return count(sizes, head, shape, rowAxis(sizes, split.direction));
}

TileCounts BranchCount::count(const ProblemSizes &sizes, int64_t head, TileShape shape, RowAxis rows) {
  if (cutShort.isCutShort)
    return cutShort;
  const TileCounts counts = countAnew(sizes, head, shape, rows);
  if (counts.isCutShort) {
    cutShort = counts;
    cutShort.evaluations = 0;
  }
  return counts;
}

TileCounts BranchCount::countAnew(const ProblemSizes &sizes, int64_t head, TileShape shape, RowAxis rows) {
  auto valueOf = [&](Symbol symbol) { return symbolValue(sizes, head, symbol); };
  if (fromOtherAxis) {
    const Direction other = opposite(split.direction);
    return sumClasses(*fromOtherAxis, {{other, 1}, rowAxis(sizes, other), {shape.columns, shape.rows}}, sizes, head);
  }
  entries += split.rate * whole.listEntries(valueOf, rows.count);
  if (entries <= kMostListEntries)
    return sumClasses(whole, {split, rows, shape}, sizes, head);
  TileCounts bound = sumClasses(plain, {split, rows, shape}, sizes, head);
  bound.visited += split.rate * whole.listTiles(valueOf, rows.count, shape);
  bound.isBound = true;
  return bound;
}

} // namespace heddle::attn
