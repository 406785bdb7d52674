//===- Counts.cpp - sums over tiles and pairs -----------------------------===//
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/CellWalk.h"
#include "dialect/Geometry/Piece.h"
#include "dialect/Geometry/Variant.h"
#include "dialect/Geometry/Period.h"
#include "dialect/Geometry/RowTiles.h"

#include <map>

namespace heddle::attn {

namespace {

Direction opposite(Direction direction) {
  return direction == Direction::Forward ? Direction::Transposed : Direction::Forward;
}

WideInt seriesSum(SweepNumber start, int64_t steps, int64_t turns) {
  return WideInt(start.value) * steps * turns + WideInt(start.slope) * turns * steps * (steps - 1) / 2 +
         WideInt(start.turn) * steps * turns * (turns - 1) / 2;
}

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
        columnsPerTile);
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

/// The rows of a direction, split into so many classes.
struct SplitRows {
  Direction direction;
  int64_t rate;
};

/// Every tile may be visited, for one branch and head.
TileCounts everyTile(SplitRows split, int64_t columnRate, const ProblemSizes &sizes, TileShape shape) {
  const int64_t rows = rowAxis(sizes, split.direction).count,
                inClass = rowsInClass(rowAxis(sizes, opposite(split.direction)).count, columnRate, 0);
  return {WideInt(countRowTiles(rows, split.rate, shape.rows)) * ((inClass + shape.columns - 1) / shape.columns), 0,
          /*isBound=*/true};
}

TileCounts sumClasses(const BranchEvaluator &evaluator, SplitRows split, const ProblemSizes &sizes, int64_t head,
                      TileShape shape) {
  TileCounts counts;
  const RowAxis axis = rowAxis(sizes, split.direction);
  ClassSum sum(evaluator, sizes, head, shape.columns);
  for (int64_t rowClass = 0; rowClass < std::min(split.rate, axis.count) && !sum.isCutShort(); ++rowClass)
    counts.add(sum.run(ClassTiles(axis, split.rate, rowClass, shape.rows)));
  if (!sum.isCutShort())
    return counts;
  counts = everyTile(split, 1, sizes, shape);
  counts.isCutShort = true;
  return counts;
}

bool hasLists(const BranchRanges &branch) {
  return std::any_of(branch.pieces.begin(), branch.pieces.end(),
                     [](const PieceRange &piece) { return piece.list.has_value(); });
}

/// A branch whose lists may be too long to be read; heads that differ are counted one after the other.
class BranchCount {
public:
  BranchCount(const BranchRanges &branch, int64_t rowRate, Direction direction, const TensorData &tensors)
      : rowRate(rowRate), direction(direction), whole(branch, tensors), plain(withoutLists(branch), tensors) {}

  /// Branch number `index` of a variant. What has lists is asked of the other axis if that has none: tiles are the same
  /// from both, if all rows and all columns are one class.
  static BranchCount of(const Variant &variant, size_t index, Direction direction, const TensorData &tensors) {
    const VariantRanges &own = variant.ranges(direction), &other = variant.ranges(opposite(direction));
    BranchCount count(own.branches[index], own.rowRate, direction, tensors);
    auto isExact = [&](const VariantRanges &side) {
      const BranchRanges &branch = side.branches[index];
      return side.rowRate == 1 && branch.columnRate == 1 && !branch.masked && !branch.mayVisitGaps;
    };
    if (hasLists(own.branches[index]) && isExact(own) && isExact(other) && !hasLists(other.branches[index]))
      count.fromOtherAxis.emplace(other.branches[index], tensors);
    return count;
  }

  const BranchEvaluator &evaluator() const { return whole; }

  /// After the first head that is cut short all are.
  TileCounts count(const ProblemSizes &sizes, int64_t head, TileShape shape) {
    if (!cutShort.isCutShort) {
      const TileCounts counts = countAnew(sizes, head, shape);
      if (!counts.isCutShort)
        return counts;
      cutShort = counts;
    }
    return cutShort;
  }

private:
  TileCounts countAnew(const ProblemSizes &sizes, int64_t head, TileShape shape) {
    const int64_t rows = rowAxis(sizes, direction).count;
    auto valueOf = [&](Symbol symbol) { return symbolValue(sizes, head, symbol); };
    if (fromOtherAxis)
      return sumClasses(*fromOtherAxis, {opposite(direction), 1}, sizes, head, {shape.columns, shape.rows});
    entries += rowRate * whole.listEntries(valueOf, rows);
    if (entries <= kMostListEntries)
      return sumClasses(whole, {direction, rowRate}, sizes, head, shape);
    TileCounts bound = sumClasses(plain, {direction, rowRate}, sizes, head, shape);
    bound.visited += rowRate * whole.listTiles(valueOf, rows, shape);
    bound.isBound = true;
    return bound;
  }

  static BranchRanges withoutLists(const BranchRanges &branch) {
    BranchRanges plain = branch;
    auto isListed = [](const PieceRange &piece) { return piece.list.has_value(); };
    plain.pieces.erase(std::remove_if(plain.pieces.begin(), plain.pieces.end(), isListed), plain.pieces.end());
    return plain;
  }

  int64_t rowRate;
  Direction direction;
  BranchEvaluator whole, plain;
  std::optional<BranchEvaluator> fromOtherAxis;
  WideInt entries = 0;
  TileCounts cutShort;
};

/// Calls `count(head, weight)` so that the weights of a variant's heads add up to their number, once for all heads
/// whose ranges evaluate alike.
template <class Count>
void forEachDistinctHead(const std::vector<HeadGroup> &heads, const ProblemSizes &sizes, unsigned variant,
                         const BranchEvaluator &evaluator, Count count) {
  std::map<std::vector<int64_t>, std::pair<int64_t, int64_t>> groups; // values -> representative, number
  bool headMatters = evaluator.uses(Symbol::Head);
  for (const HeadGroup &alike : heads) {
    if (alike.variant != variant)
      continue;
    std::vector<int64_t> values;
    if (headMatters)
      values = evaluator.headValues([&](Symbol symbol) { return symbolValue(sizes, alike.first, symbol); });
    groups.try_emplace(std::move(values), alike.first, 0).first->second.second += alike.heads;
  }
  for (const auto &[values, group] : groups)
    count(group.first, group.second);
}

/// A sum over pairs takes rows apart into at most so many classes.
constexpr RowRateLimits kCountedClasses = {int64_t(1) << 14, int64_t(1) << 14};

/// The direction in which one by one tiles are the pairs of a piece, if there is one: without lists, if there is such a
/// one.
std::optional<Direction> exactDirection(const Piece &piece) {
  std::optional<Direction> listed;
  for (Direction direction : {Direction::Forward, Direction::Transposed}) {
    const BranchRanges branch = buildRanges({{piece}}, direction, kCountedClasses).branches[0];
    if (piece.masked || branch.masked)
      continue;
    if (!hasLists(branch))
      return direction;
    listed = listed.value_or(direction);
  }
  return listed;
}

/// The pairs of one piece, summed over heads, as tiles of one row and column.
TileCounts countPiece(const std::vector<HeadGroup> &heads, unsigned variant, const Piece &piece, Direction direction,
                      const ProblemSizes &sizes) {
  VariantRanges ranges = buildRanges({{piece}}, direction, kCountedClasses);
  BranchCount branch(ranges.branches[0], ranges.rowRate, direction, sizes.tensors);
  TileCounts total;
  forEachDistinctHead(heads, sizes, variant, branch.evaluator(), [&](int64_t head, int64_t weight) {
    if (!total.isBound)
      total.add(branch.count(sizes, head, {1, 1}), weight);
  });
  return total;
}

/// Inclusion-exclusion over the pieces of one branch.
std::optional<WideInt> countUnion(const std::vector<HeadGroup> &heads, unsigned variant, const PieceList &pieces,
                                  const ProblemSizes &sizes, bool &isCutShort) {
  if (pieces.size() > kMaxPieces)
    return std::nullopt;
  WideInt total = 0;
  for (unsigned subset = 1; subset < (1u << pieces.size()); ++subset) {
    PieceList common;
    for (size_t i = 0; i < pieces.size(); ++i)
      if (subset >> i & 1)
        common = {common.empty() ? pieces[i] : intersect(common[0], pieces[i])};
    dropEmpty(common);
    if (common.empty())
      continue;
    std::optional<Direction> direction = exactDirection(common[0]);
    if (!direction)
      return std::nullopt;
    const TileCounts pairs = countPiece(heads, variant, common[0], *direction, sizes);
    isCutShort |= pairs.isCutShort;
    if (pairs.isBound)
      return std::nullopt;
    total += __builtin_popcount(subset) % 2 ? pairs.visited : -pairs.visited;
  }
  return total;
}

} // namespace

int64_t countRowTiles(int64_t rows, int64_t rowRate, int64_t block) {
  int64_t total = 0;
  for (int64_t rowClass = 0; rowClass < std::min(rowRate, rows); ++rowClass)
    total += (rowsInClass(rows, rowRate, rowClass) + block - 1) / block;
  return total;
}

unsigned variantOf(const PatternAnalysis &analysis, const ProblemSizes &sizes, int64_t head) {
  ExprProgram program;
  unsigned slot = program.add(analysis.variantOfHead);
  PlainDomain domain;
  std::vector<int64_t> slots;
  program.run(domain, [&](Symbol symbol) { return symbolValue(sizes, head, symbol); }, slots);
  return slots[slot];
}

/// A bound for one head where tensors that say more are not given.
static TileCounts everyTile(const VariantRanges &ranges, const ProblemSizes &sizes, TileShape shape,
                            Direction direction) {
  TileCounts total;
  for (const BranchRanges &branch : ranges.branches)
    total.add(everyTile({direction, ranges.rowRate}, branch.columnRate, sizes, shape));
  return total;
}

TileCounts countTilesOfHead(const PatternAnalysis &analysis, const ProblemSizes &sizes, int64_t head, TileShape shape,
                            Direction direction) {
  const Variant &variant = analysis.variants[variantOf(analysis, sizes, head)];
  if (lacksTensors(analysis, sizes))
    return everyTile(variant.ranges(direction), sizes, shape, direction);
  TileCounts total;
  for (size_t branch = 0; branch < variant.branches.size(); ++branch)
    total.add(BranchCount::of(variant, branch, direction, sizes.tensors).count(sizes, head, shape));
  return total;
}

TileCounts countTiles(const PatternAnalysis &analysis, const ProblemSizes &sizes, TileShape shape,
                      Direction direction) {
  TileCounts total;
  const std::vector<HeadGroup> heads = headGroups(analysis, sizes);
  if (lacksTensors(analysis, sizes)) {
    for (const HeadGroup &alike : heads)
      total.add(everyTile(analysis.variants[alike.variant].ranges(direction), sizes, shape, direction), alike.heads);
    return total;
  }
  for (unsigned index = 0; index < analysis.variants.size(); ++index)
    for (size_t branch = 0; branch < analysis.variants[index].branches.size(); ++branch) {
      BranchCount counter = BranchCount::of(analysis.variants[index], branch, direction, sizes.tensors);
      forEachDistinctHead(heads, sizes, index, counter.evaluator(),
                          [&](int64_t head, int64_t weight) { total.add(counter.count(sizes, head, shape), weight); });
    }
  return total;
}

bool lacksTensors(const PatternAnalysis &analysis, const ProblemSizes &sizes) {
  return std::any_of(analysis.maskTensors.begin(), analysis.maskTensors.end(),
                     [&](unsigned argument) { return !holds(&sizes.tensors, argument); });
}

WideInt longestList(const PatternAnalysis &analysis, const ProblemSizes &sizes) {
  const std::vector<HeadGroup> heads = headGroups(analysis, sizes);
  WideInt longest = 0;
  for (unsigned index = 0; index < analysis.variants.size(); ++index)
    for (const BranchRanges &branch : analysis.variants[index].forward.branches) {
      BranchEvaluator evaluator(branch, sizes.tensors);
      WideInt entries = 0;
      forEachDistinctHead(heads, sizes, index, evaluator, [&](int64_t head, int64_t) {
        auto valueOf = [&](Symbol symbol) { return symbolValue(sizes, head, symbol); };
        entries += analysis.variants[index].forward.rowRate * evaluator.listEntries(valueOf, sizes.seqlenQ);
      });
      longest = std::max(longest, entries);
    }
  return longest;
}

bool hasLongLists(const PatternAnalysis &analysis, const ProblemSizes &sizes) {
  return longestList(analysis, sizes) > kMostListEntries;
}

std::optional<WideInt> countPairs(const PatternAnalysis &analysis, const ProblemSizes &sizes, bool *isCutShort) {
  bool ignored = false;
  if (lacksTensors(analysis, sizes))
    return std::nullopt;
  const std::vector<HeadGroup> heads = headGroups(analysis, sizes);
  WideInt total = 0;
  for (unsigned index = 0; index < analysis.variants.size(); ++index)
    for (const PieceList &pieces : analysis.variants[index].branches) {
      std::optional<WideInt> pairs = countUnion(heads, index, pieces, sizes, isCutShort ? *isCutShort : ignored);
      if (!pairs)
        return std::nullopt;
      total += *pairs;
    }
  return total;
}

std::string toString(WideInt value) {
  if (value == 0)
    return "0";
  std::string digits;
  for (WideInt rest = value < 0 ? -value : value; rest != 0; rest /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  return value < 0 ? "-" + digits : digits;
}

} // namespace heddle::attn
