// The graph of a layer, the balance of its tiles, and what is printed. Weights are RowQuality's.
#include "compiler/Views/Quality.h"
#include "compiler/Views/Explanation.h"
#include "dialect/Geometry/TileVisitor.h"
#include "runtime/Core/CountText.h"

#include <algorithm>
#include <cstdio>

namespace heddle::views {
namespace {

constexpr int64_t kMostQueryTiles = int64_t(1) << 18;

/// The sources of each node, all heads together: a layer mixes them.
AttentionGraph graphOf(KeptRows &kept, const QualityRequest &request, const std::vector<AlikeHeads> &heads,
                       int64_t nodeSize) {
  const attn::ProblemSizes &sizes = request.sizes;
  const int64_t nodes = (sizes.seqlenQ + nodeSize - 1) / nodeSize;
  std::vector<char> isSource(nodes);
  std::vector<uint16_t> copies;
  AttentionGraph graph(nodes);
  for (int64_t node = 0; node < nodes; ++node) {
    std::fill(isSource.begin(), isSource.end(), 0);
    if (request.pairs.progress)
      request.pairs.progress(double(node) / double(nodes));
    for (int64_t row = node * nodeSize; row < std::min((node + 1) * nodeSize, sizes.seqlenQ); ++row)
      for (const AlikeHeads &alike : heads) {
        kept.read(alike.first, row, copies);
        for (int64_t key = 0; key < sizes.seqlenK; ++key)
          isSource[key / nodeSize] |= copies[key] > 0;
      }
    for (int64_t source = 0; source < nodes; ++source)
      if (isSource[source])
        graph[node].push_back(static_cast<int32_t>(source));
  }
  return graph;
}

DepthQuality measureDepth(KeptRows &kept, const QualityRequest &request, bool isCausal) {
  const attn::ProblemSizes &sizes = request.sizes;
  DepthQuality depth;
  if (sizes.seqlenQ != sizes.seqlenK || sizes.qOrigin != sizes.kOrigin) {
    depth.whyNot = "queries and keys are not the same positions";
    return depth;
  }
  const std::vector<AlikeHeads> heads = alikeHeads(sizes.heads, [&](int64_t head) { return kept.headValues(head); });
  if (attn::WideInt(heads.size()) * sizes.seqlenQ * sizes.seqlenK > request.pairs.mostPairs) {
    depth.whyNot = "more than " + grouped(request.pairs.mostPairs) + " pairs would have to be tried";
    return depth;
  }
  while (sizes.seqlenQ > kMostNodes * depth.nodeSize)
    depth.nodeSize *= 2;
  const int64_t before = kept.rowsRead();
  depth.closure = closureDepth(graphOf(kept, request, heads, depth.nodeSize), isCausal);
  depth.rowsRead = kept.rowsRead() - before;
  return depth;
}

/// Adds heads that visit alike, class by class.
void addTiles(const std::vector<attn::TileVisitor> &branches, int64_t rowRate, const QualityRequest &request,
              const AlikeHeads &alike, BalanceQuality &balance) {
  const attn::ProblemSizes &sizes = request.sizes;
  for (int64_t rowClass = 0; rowClass < std::min(rowRate, sizes.seqlenQ); ++rowClass) {
    const int64_t rows = (sizes.seqlenQ - rowClass + rowRate - 1) / rowRate;
    for (int64_t index = 0; index * request.tile.rows < rows; ++index) {
      int64_t ofTile = 0;
      for (const attn::TileVisitor &branch : branches)
        for (const attn::TileRun &run :
             branch.visit(alike.first, {rowClass, index, request.tile.rows}, request.tile.columns).visited)
          ofTile += run.end - run.begin;
      balance.visited += ofTile * alike.heads;
      balance.most = std::max(balance.most, ofTile);
      balance.queryTiles += alike.heads;
      ++balance.tilesSeen;
    }
  }
}

BalanceQuality measureBalance(const PatternFile &file, const QualityRequest &request) {
  const attn::ProblemSizes &sizes = request.sizes;
  BalanceQuality balance;
  const attn::HeadVisitors visitors(file.analysis(), attn::Direction::Forward, sizes);
  const std::vector<AlikeHeads> heads =
      alikeHeads(sizes.heads, [&](int64_t head) { return visitors.headValues(head); });
  for (const AlikeHeads &alike : heads) {
    const attn::Variant &variant = file.analysis().variants[attn::variantOf(file.analysis(), sizes, alike.first)];
    const int64_t rowRate = variant.forward.rowRate;
    if (attn::countRowTiles(sizes.seqlenQ, rowRate, request.tile.rows) > kMostQueryTiles / int64_t(heads.size())) {
      balance.whyNot = "more than " + counted(kMostQueryTiles, "query tile");
      return balance;
    }
    addTiles(visitors.of(alike.first), rowRate, request, alike, balance);
  }
  balance.mean = balance.queryTiles ? double(balance.visited) / double(balance.queryTiles) : 0;
  return balance;
}

template <class... Values> std::string format(const char *pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string depthText(const DepthQuality &depth) {
  if (!depth.whyNot.empty())
    return "- (" + depth.whyNot + ")";
  const bool isExact = depth.nodeSize == 1;
  const std::string nodes = isExact ? "positions" : "blocks of " + std::to_string(depth.nodeSize) + " positions";
  if (depth.closure.layers)
    return (isExact ? "" : "at least ") + counted(*depth.closure.layers, "layer") +
           " until every pair of the reference is connected (" + nodes + ")";
  return "never all: " + format("%.4g %%", depth.closure.connected * 100) +
         " of the reference's pairs are connected after " + counted(depth.closure.settledAfter, "layer") +
         ", and no more (" + nodes + ")";
}

} // namespace

Status checkQualitySizes(const AttentionSizes &s) {
  const attn::WideInt q = attn::WideInt(s.batch) * s.seqlenQ * s.heads * s.headDim;
  const attn::WideInt kv = attn::WideInt(s.batch) * s.seqlenK * s.kvHeads * std::max(s.headDim, s.valueDim);
  if (q <= kMostInputElements && kv <= kMostInputElements)
    return {};
  return Status::invalidArgument("expected q, k and v of at most " + std::to_string(kMostInputElements) +
                                 " elements for --quality, got " + attn::toString(std::max(q, kv)) +
                                 "; fewer heads or channels may do");
}

Result<Quality> measureQuality(const PatternFile &file, const QualityRequest &request) {
  HEDDLE_TRY(checkQualitySizes(request.inputs->sizes));
  attn::PatternOp pattern = file.pattern();
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    if (pattern.isOperand(i) && (i >= request.operands.size() || !request.operands[i]))
      return Status::invalidArgument("tensor '" + pattern.getParameterName(i).str() + "' is not given");
  HEDDLE_ASSIGN(KeptRows kept, KeptRows::create(file, request.sizes, request.operands));
  Quality quality;
  quality.rows = measureRows(kept, request);
  quality.depth = measureDepth(kept, request, quality.rows.isCausal);
  quality.balance = measureBalance(file, request);
  return quality;
}

std::string qualityText(const std::string &inputs, uint64_t seed, const Quality &quality) {
  const RowQuality &rows = quality.rows;
  const bool isSample = rows.rows < rows.rowsInAll;
  auto line = [](const char *label, const std::string &value) { return format("  %-16s ", label) + value + "\n"; };
  std::string text = "quality of batch element 0 on " + inputs + "\n";
  text += line("reference", rows.isCausal ? "attention over all keys up to the query: no row keeps a later one"
                                          : "attention over all keys");
  text +=
      line("rows", isSample ? grouped(rows.rows) + " of " + grouped(rows.rowsInAll) +
                                  format(", one from each of as many equal runs, seed %llu", (unsigned long long)seed)
                            : "all " + grouped(rows.rows));
  text += line("captured mass",
               format("mean %.4f, least %.4f (head %lld, row %lld) of a row's reference weights; ", rows.meanMass,
                      rows.leastMass, (long long)rows.leastHead, (long long)rows.leastRow) +
                   counted(rows.emptyRows, "row") + (rows.emptyRows == 1 ? " keeps" : " keep") + " nothing");
  text += line("output error",
               format("relative %.4g (Frobenius), largest of an element %.4g", rows.relativeError, rows.maxError));
  text += line("depth", depthText(quality.depth));
  const BalanceQuality &balance = quality.balance;
  text += line("imbalance", !balance.whyNot.empty()
                                ? "- (" + balance.whyNot + ")"
                                : format("%.3g: a query tile visits at most %s, %.4g on average", balance.imbalance(),
                                         counted(balance.most, "key tile").c_str(), balance.mean));
  return text;
}

} // namespace heddle::views
