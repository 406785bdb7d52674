// What travels between two ranks: of each head the columns that some row keeps, of windows that hold them.
#include "dialect/Geometry/GroupBlocks.h"
#include "dialect/Geometry/TravelRuns.h"

#include <map>

namespace heddle::attn {
namespace {

bool areEqual(const std::vector<RowRun> &a, const std::vector<RowRun> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const RowRun &x, const RowRun &y) {
    return x.first == y.first && x.rate == y.rate && x.count == y.count;
  });
}

void addPart(Hop &hop, HeadRows part) {
  if (part.rows.empty())
    return;
  HeadRows *last = hop.parts.empty() ? nullptr : &hop.parts.back();
  if (last && last->firstHead + last->heads == part.firstHead && areEqual(last->rows, part.rows))
    ++last->heads;
  else
    hop.parts.push_back(std::move(part));
}

} // namespace

void addWindows(std::vector<RowRange> &windows, const std::vector<RowRange> &clusters) {
  windows.insert(windows.end(), clusters.begin(), clusters.end());
  std::sort(windows.begin(), windows.end(), [](const RowRange &a, const RowRange &b) { return a.begin < b.begin; });
  std::vector<RowRange> joined;
  for (const RowRange &window : windows)
    if (!joined.empty() && window.begin <= joined.back().end)
      joined.back().end = std::max(joined.back().end, window.end);
    else
      joined.push_back(window);
  windows = std::move(joined);
}

void GroupBlocks::addHop(GroupStep &step, size_t from, size_t to, const std::vector<size_t> &ofBlocks) const {
  std::vector<IndexRange> places;
  for (const IndexRange &own : rangesOf(from))
    for (const RowRange &window : step.ranks[to].windows)
      if (const IndexRange common{std::max(own.begin, window.begin), std::min(own.end, window.end)};
          common.begin < common.end)
        places.push_back(common);
  if (places.empty())
    return;
  Hop hop{int32_t(from), int32_t(to), {}};
  std::map<int64_t, std::vector<RowRun>> known; // of heads that are the first of their like
  for (int64_t head = 0; head < columnHeads(); ++head) {
    const auto [rows, isNew] = known.try_emplace(firstAlike(head));
    if (isNew)
      rows->second = askedRows(to, ofBlocks, head, places);
    addPart(hop, {head, 1, rows->second});
  }
  if (!hop.parts.empty())
    step.hops.push_back(std::move(hop));
}

/// What those blocks of a rank keep of a head in these places.
std::vector<RowRun> GroupBlocks::askedRows(size_t rank, const std::vector<size_t> &ofBlocks, int64_t head,
                                           const std::vector<IndexRange> &places) const {
  RunsByClass classes;
  for (size_t block : ofBlocks)
    addColumns(classes, blocks[rank][block].ofHeads[size_t(head)]);
  const std::vector<LatticeColumns> asked = latticeColumns(std::move(classes));
  std::vector<RowRun> rows;
  for (const IndexRange &place : places)
    for (const RowRun &run : travelRuns(within(asked, {place})))
      rows.push_back(run);
  return rows;
}

} // namespace heddle::attn
