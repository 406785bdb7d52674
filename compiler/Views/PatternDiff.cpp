#include "compiler/Views/PatternDiff.h"
#include "dialect/Geometry/RowRuns.h"
#include "runtime/Core/CountText.h"

namespace heddle::views {

using namespace heddle::attn;

namespace {

void add(DiffCounts &counts, std::array<int64_t, 2> copies, WideInt pairs) {
  const auto [first, second] = copies;
  counts.both += first && second ? pairs : 0;
  counts.onlyFirst += first && !second ? pairs : 0;
  counts.onlySecond += !first && second ? pairs : 0;
  counts.unequal += first && second && first != second ? pairs : 0;
}

/// None: it takes too many evaluations. Progress is that towards the bound.
std::optional<DiffCounts> countRuns(RowRuns &runs, const DiffSide &first, const DiffSide &second,
                                    const PairEffort &effort) {
  constexpr int64_t kCallsOfProgress = 1024;
  DiffCounts counts;
  counts.isClosedForm = true;
  int64_t calls = 0;
  for (const HeadGroup &alike :
       headGroups({{first.file.analysis(), first.sizes}, {second.file.analysis(), second.sizes}})) {
    auto use = [&](const AlikeRows &rows) {
      if (effort.progress && ++calls % kCallsOfProgress == 0)
        effort.progress(double(runs.evaluations()) / double(first.sizes.mostEvaluations));
      for (const KeyStretch &stretch : rows.stretches)
        add(counts, stretch.copies, rows.pairsOf(stretch) * alike.heads);
    };
    if (!runs.visit(alike.first, {0, first.sizes.seqlenQ}, use))
      return std::nullopt;
  }
  return counts;
}

DiffCounts countPairByPair(RowPairs &rows, const ProblemSizes &sizes, const PairEffort &effort) {
  DiffCounts counts;
  const std::vector<AlikeHeads> groups = alikeHeads(sizes.heads, [&](int64_t head) { return rows.headValues(head); });
  for (size_t group = 0; group < groups.size(); ++group)
    for (int64_t row = 0; row < sizes.seqlenQ; ++row) {
      if (effort.progress && row % 256 == 0)
        effort.progress((double(group) + double(row) / double(sizes.seqlenQ)) / double(groups.size()));
      DiffCounts ofRow;
      rows.forEachKey(groups[group].first, row,
                      [&](int64_t, int64_t left, int64_t right) { add(ofRow, {left, right}, 1); });
      const int64_t heads = groups[group].heads;
      counts.both += ofRow.both * heads;
      counts.onlyFirst += ofRow.onlyFirst * heads;
      counts.onlySecond += ofRow.onlySecond * heads;
      counts.unequal += ofRow.unequal * heads;
    }
  counts.rowsRead = rows.rowsRead();
  return counts;
}

Status checkPairs(WideInt heads, const ProblemSizes &sizes, const PairEffort &effort, bool isCutShort) {
  const WideInt pairs = heads * sizes.seqlenQ * sizes.seqlenK;
  if (pairs <= effort.mostPairs)
    return {};
  const std::string why = isCutShort ? "the closed form of the two patterns takes more than " +
                                           grouped(sizes.mostEvaluations) + " evaluations"
                                     : std::string("the two patterns together have no closed form");
  return Status::unsupported(
      why + ", and " + counted(pairs, "pair") + " are more than the " + grouped(effort.mostPairs) +
      " that are compared one by one; take a smaller --seqlen, fewer --heads or a larger --limit");
}

} // namespace

Result<RowPairs> RowPairs::create(const DiffSide &first, const DiffSide &second, std::optional<int64_t> head,
                                  const PairEffort &effort, bool isCutShort) {
  HEDDLE_TRY(checkPairs(1, first.sizes, effort, isCutShort)); // before anything is compiled for too many
  HEDDLE_ASSIGN(KeptRows a, KeptRows::create(first.file, first.sizes, first.operands));
  HEDDLE_ASSIGN(KeptRows b, KeptRows::create(second.file, second.sizes, second.operands));
  RowPairs rows(std::move(a), std::move(b));
  auto valuesOf = [&](int64_t one) { return rows.headValues(one); };
  if (!head)
    HEDDLE_TRY(checkPairs(alikeHeads(first.sizes.heads, valuesOf).size(), first.sizes, effort, isCutShort));
  return rows;
}

std::vector<int64_t> RowPairs::headValues(int64_t head) const {
  std::vector<int64_t> values = first.headValues(head);
  const std::vector<int64_t> more = second.headValues(head);
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

Result<DiffCounts> countDifference(const DiffSide &first, const DiffSide &second, const PairEffort &effort) {
  std::optional<RowRuns> runs =
      RowRuns::create({first.file.analysis(), first.sizes}, {second.file.analysis(), second.sizes});
  if (runs)
    if (std::optional<DiffCounts> counts = countRuns(*runs, first, second, effort))
      return *counts;
  HEDDLE_ASSIGN(RowPairs rows, RowPairs::create(first, second, {}, effort, runs.has_value()));
  return countPairByPair(rows, first.sizes, effort);
}

} // namespace heddle::views
