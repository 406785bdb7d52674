#include "codegen/Choose/WorkCounts.h"
#include "dialect/Geometry/TileVisitor.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace heddle {
namespace {

constexpr int64_t kColumns = 64;         // keys are counted in tiles of so many
constexpr double kItemKeys = 64;         // an item costs as much as so many keys beside its own
constexpr int64_t kMostVisits = 1 << 14; // of one block size; beyond, items stand for their neighbours

/// The longest of `blocks` that take items as they end.
double greedyEnd(const std::vector<double> &costs, size_t blocks) {
  std::priority_queue<double, std::vector<double>, std::greater<double>> ends;
  double last = 0;
  for (double cost : costs) {
    double start = 0;
    if (ends.size() == blocks) {
      start = ends.top();
      ends.pop();
    }
    ends.push(start + cost);
    last = std::max(last, start + cost);
  }
  return last;
}

double roundsEnd(const std::vector<double> &costs, size_t blocks) {
  std::vector<double> ends(blocks, 0);
  for (size_t i = 0; i < costs.size(); ++i)
    ends[i % blocks] += costs[i];
  return *std::max_element(ends.begin(), ends.end());
}

} // namespace

Result<WorkCounts> WorkCounts::create(std::vector<const attn::PatternAnalysis *> kernels, attn::ProblemSizes sizes,
                                      int64_t batch) {
  for (const attn::PatternAnalysis *analysis : kernels) {
    if (attn::lacksTensors(*analysis, sizes))
      return Status::unsupported("what the pattern keeps follows from tensors that are not given");
    if (attn::hasLongLists(*analysis, sizes))
      return Status::unsupported("the pattern's lists have more entries than counts read");
  }
  return WorkCounts(std::move(kernels), std::move(sizes), batch);
}

const TileWork &WorkCounts::tiles(int64_t blockM, int64_t blockN) {
  auto [entry, isNew] = tileWork.try_emplace({blockM, blockN});
  TileWork &work = entry->second;
  for (size_t i = 0; isNew && i < kernels.size(); ++i) {
    const attn::TileCounts counts = attn::countTiles(*kernels[i], sizes, {blockM, blockN}, attn::Direction::Forward);
    work.visited += double(batch) * double(counts.visited);
    work.full += double(batch) * double(counts.full);
    for (int64_t head = 0; head < sizes.heads; ++head) {
      const attn::VariantRanges &ranges = kernels[i]->variants[attn::variantOf(*kernels[i], sizes, head)].forward;
      work.items += double(batch) * double(attn::countRowTiles(sizes.seqlenQ, ranges.rowRate, blockM));
    }
  }
  return work;
}

WorkCounts::ItemKeys WorkCounts::keysOf(const attn::VariantRanges &ranges, int64_t head, int64_t blockM) const {
  std::vector<attn::TileVisitor> visitors;
  for (unsigned branch = 0; branch < ranges.branches.size(); ++branch)
    visitors.emplace_back(ranges, branch, attn::Direction::Forward, sizes);
  const int64_t rate = ranges.rowRate, rows = (sizes.seqlenQ + rate - 1) / rate;
  ItemKeys keys(size_t(rate * ((rows + blockM - 1) / blockM)), -1);
  const int64_t step = (int64_t(keys.size()) + kMostVisits - 1) / kMostVisits;
  for (int64_t number = 0; number < int64_t(keys.size()); ++number) {
    const attn::RowTile tile{number % rate, number / rate, blockM};
    if (tile.rowClass + rate * tile.index * blockM >= sizes.seqlenQ)
      continue;
    if (number % step && keys[size_t(number - 1)] >= 0) {
      keys[size_t(number)] = keys[size_t(number - 1)];
      continue;
    }
    int64_t visited = 0;
    for (const attn::TileVisitor &visitor : visitors)
      for (const attn::TileRun &run : visitor.visit(head, tile, kColumns).visited)
        visited += (run.end - run.begin) * kColumns;
    keys[size_t(number)] = visited;
  }
  return keys;
}

const WorkCounts::Items &WorkCounts::items(int64_t blockM) {
  auto [entry, isNew] = itemsOfBlock.try_emplace(blockM);
  Items &items = entry->second;
  if (!isNew)
    return items;
  for (const attn::PatternAnalysis *analysis : kernels) {
    std::map<std::pair<unsigned, std::vector<int64_t>>, size_t> alike;
    std::vector<size_t> &of = items.of.emplace_back();
    for (int64_t head = 0; head < sizes.heads; ++head) {
      const unsigned variant = attn::variantOf(*analysis, sizes, head);
      const attn::VariantRanges &ranges = analysis->variants[variant].forward;
      std::vector<int64_t> values;
      for (unsigned branch = 0; branch < ranges.branches.size(); ++branch)
        for (int64_t value : attn::TileVisitor(ranges, branch, attn::Direction::Forward, sizes).headValues(head))
          values.push_back(value);
      auto [known, isOther] = alike.emplace(std::make_pair(variant, std::move(values)), items.lists.size());
      if (isOther)
        items.lists.push_back(keysOf(ranges, head, blockM));
      of.push_back(known->second);
    }
  }
  for (const ItemKeys &list : items.lists) {
    items.perHead = std::max(items.perHead, list.size());
    for (int64_t keys : list)
      items.mostKeys = std::max(items.mostKeys, keys);
  }
  return items;
}

/// Costs of all items, in units of a key.
std::vector<double> WorkCounts::inOrder(const Items &items, const Dealing &dealing) const {
  std::vector<double> costs;
  for (const std::vector<size_t> &of : items.of)
    for (int64_t first = 0; first < pairs(); first += dealing.sectionPairs)
      for (size_t step = 0; step < items.perHead; ++step) {
        const size_t number = dealing.isReversed ? items.perHead - 1 - step : step;
        for (int64_t pair = first; pair < std::min(first + dealing.sectionPairs, pairs()); ++pair) {
          const ItemKeys &list = items.lists[of[size_t(pair % sizes.heads)]];
          const int64_t keys = number < list.size() ? list[number] : -1;
          if (keys < 0)
            continue;
          const int64_t parts = dealing.partKeys && keys >= 2 * dealing.partKeys ? keys / dealing.partKeys : 1;
          costs.insert(costs.end(), size_t(parts), kItemKeys + double(keys) / double(parts));
        }
      }
  return costs;
}

const DealtWork &WorkCounts::deal(const Dealing &asked) {
  Dealing dealing = asked;
  const Items &work = items(dealing.blockM);
  if (work.mostKeys < 2 * dealing.partKeys)
    dealing.partKeys = 0;
  dealing.sectionPairs = std::clamp<int64_t>(dealing.sectionPairs, 1, pairs());
  auto [entry, isNew] = dealtWork.try_emplace(dealing.key());
  DealtWork &dealt = entry->second;
  if (!isNew)
    return dealt;
  const std::vector<double> costs = inOrder(work, dealing);
  const double all = std::accumulate(costs.begin(), costs.end(), 0.0);
  if (costs.empty())
    return dealt;
  const size_t blocks = size_t(std::max<int64_t>(dealing.blocks, 1));
  const double end = dealing.takesStrides ? roundsEnd(costs, blocks) : greedyEnd(costs, blocks);
  dealt.imbalance = std::max(1.0, end * double(blocks) / all);
  if (dealing.partKeys) {
    Dealing whole = dealing;
    whole.partKeys = 0;
    dealt.parts = int64_t(costs.size()) - int64_t(inOrder(work, whole).size());
  }
  return dealt;
}

} // namespace heddle
