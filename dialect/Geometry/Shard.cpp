#include "dialect/Geometry/Shard.h"
#include "dialect/Geometry/Counts.h"
#include "dialect/Geometry/ExprProgram.h"
#include "dialect/Geometry/RowTiles.h"

#include <algorithm>
#include <numeric>

namespace heddle::attn {
namespace {

/// Calls use(rows) for every class of a rate that has rows in the range.
template <class Use> void forEachRowClass(RowAxis axis, IndexRange rows, int64_t rate, Use use) {
  for (int64_t first = rows.begin; first < std::min(rows.end, rows.begin + rate); ++first)
    use(RowSpan{axis.origin + first, axis.origin + first + (rows.end - 1 - first) / rate * rate});
}

/// The numbers in their class of the columns in `range`.
TileRun inClass(IndexRange range, int64_t rate, int64_t residue) {
  auto atOrAfter = [&](int64_t column) { return floorDivide(column - residue + rate - 1, rate); };
  return {atOrAfter(range.begin), atOrAfter(range.end)};
}

std::vector<TileRun> clipped(const std::vector<TileRun> &runs, TileRun to) {
  std::vector<TileRun> result;
  for (const TileRun &run : runs)
    if (const TileRun cut{std::max(run.begin, to.begin), std::min(run.end, to.end)}; cut.begin < cut.end)
      result.push_back(cut);
  return result;
}

int64_t lengthOf(const std::vector<TileRun> &runs) {
  int64_t length = 0;
  for (const TileRun &run : runs)
    length += run.end - run.begin;
  return length;
}

IndexRange existing(IndexRange range, int64_t count) {
  return {std::max<int64_t>(range.begin, 0), std::min(range.end, count)};
}

} // namespace

ShardVisitor::Part ShardVisitor::partOf(const VariantRanges &variant, unsigned branch, Direction direction,
                                        const ProblemSizes &sizes) {
  const BranchRanges &ranges = variant.branches[branch];
  return {TileVisitor(variant, branch, direction, sizes), variant.rowRate, ranges.columnRate,
          !ranges.masked && !ranges.mayVisitGaps && ranges.exactFromColumns == 1};
}

ShardVisitor::ShardVisitor(const PatternAnalysis &analysis, Direction direction, const ProblemSizes &sizes)
    : analysis(analysis), direction(direction), sizes(sizes), groups(headGroups(analysis, sizes)) {
  for (const Variant &variant : analysis.variants) {
    Parts &parts = variants.emplace_back();
    for (unsigned branch = 0; branch < variant.branches.size(); ++branch) {
      parts.branches.push_back(partOf(variant.ranges(direction), branch, direction, sizes));
      for (const Piece &piece : variant.branches[branch])
        parts.pieces.push_back(partOf(buildRanges({{piece}}, direction), 0, direction, sizes));
    }
  }
}

int64_t ShardVisitor::commonRate(int64_t most) const {
  int64_t common = 1;
  for (const Parts &parts : variants)
    for (const Part &branch : parts.branches)
      common = std::min(most, std::lcm(common, branch.columnRate));
  return common;
}

ShardVisit ShardVisitor::visit(int64_t head, IndexRange rows, IndexRange columns) const {
  const RowAxis axis = rowAxis(sizes, direction);
  rows = existing(rows, axis.count);
  columns = existing(columns, rowAxis(sizes, opposite(direction)).count);
  if (rows.begin >= rows.end || columns.begin >= columns.end)
    return {};
  if (lacksTensors(analysis, sizes))
    return {{{1, 0, {{columns.begin, columns.end}}}}, false, false};
  const Parts &parts = variants[variantOf(analysis, sizes, head)];
  ShardVisit result;
  RunsByClass classes;
  for (const Part &piece : parts.pieces)
    forEachRowClass(axis, rows, piece.rowRate, [&](RowSpan span) {
      const int64_t residue = piece.visitor.columnResidue(head, span.first);
      const TileVisit visit = piece.visitor.visit(head, span, 1);
      for (const TileRun &run : clipped(visit.visited, inClass(columns, piece.columnRate, residue))) {
        classes[{piece.columnRate, residue}].push_back(run);
        result.isExact &= piece.isExact;
      }
    });
  result.columns = latticeColumns(std::move(classes));
  result.keepsAll = std::any_of(parts.branches.begin(), parts.branches.end(), [&](const Part &branch) {
    bool isFull = true;
    forEachRowClass(axis, rows, branch.rowRate, [&](RowSpan span) {
      const TileRun inside = inClass(columns, branch.columnRate, branch.visitor.columnResidue(head, span.first));
      isFull = isFull && inside.end - inside.begin == columns.end - columns.begin &&
               lengthOf(clipped(branch.visitor.visit(head, span, 1).full, inside)) == inside.end - inside.begin;
    });
    return isFull;
  });
  return result;
}

std::vector<TileRun> ShardVisitor::wholeColumns(int64_t head, IndexRange rows) const {
  const RowAxis axis = rowAxis(sizes, direction);
  rows = existing(rows, axis.count);
  if (rows.begin >= rows.end || lacksTensors(analysis, sizes))
    return {};
  std::vector<TileRun> whole = {{0, rowAxis(sizes, opposite(direction)).count}};
  for (const Part &branch : variants[variantOf(analysis, sizes, head)].branches) {
    if (branch.columnRate > 1)
      return {};
    forEachRowClass(axis, rows, branch.rowRate, [&](RowSpan span) {
      std::vector<TileRun> both;
      for (const TileRun &run : branch.visitor.visit(head, span, 1).full)
        for (const TileRun &common : clipped(whole, run))
          both.push_back(common);
      whole = std::move(both);
    });
  }
  return whole;
}

std::vector<int64_t> ShardVisitor::headValues(int64_t head) const {
  const unsigned variant = variantOf(analysis, sizes, head);
  std::vector<int64_t> values = {variant};
  for (const auto *parts : {&variants[variant].pieces, &variants[variant].branches})
    for (const Part &part : *parts) {
      const std::vector<int64_t> more = part.visitor.headValues(head);
      values.insert(values.end(), more.begin(), more.end());
    }
  return values;
}

Status checkShared(const PatternAnalysis &analysis, const ProblemSizes &sizes, const ShardLayout &layout,
                   int64_t kvHeads) {
  if (sizes.seqlenQ != sizes.seqlenK)
    return Status::unsupported("queries and keys are laid out alike: expected as many, got " +
                               std::to_string(sizes.seqlenQ) + " and " + std::to_string(sizes.seqlenK));
  if (kvHeads < 1 || sizes.heads % kvHeads)
    return Status::invalidArgument("expected query heads that are a multiple of the " + std::to_string(kvHeads) +
                                   " kv heads, got " + std::to_string(sizes.heads));
  if (lacksTensors(analysis, sizes))
    return Status::unsupported("a mask reads a tensor that is not given, so every rank may ask every other for "
                               "everything: give the tensor");
  return checkLayout(layout, sizes.seqlenQ);
}

} // namespace heddle::attn
