//===- RangeCheck.h - ranges against a rule ---------------------------------===//
// Walks the key ranges of every query tile of a pattern, from the JIT or from the emitted text, and
// compares them pair by pair with a rule in plain C++.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_RANGECHECK_H
#define HEDDLE_TESTS_UNIT_SUPPORT_RANGECHECK_H

#include "support/HandPatterns.h"
#include <algorithm>
#include <string>
#include <vector>

namespace heddle::test {

// What was seen on the way; `error` is empty when every promise of the ranges held.
struct RangeReport {
  std::string error;
  long visitedTiles = 0;
  long fullTiles = 0;
  long nonEmptyTiles = 0;  // by the rule
  long trulyFullTiles = 0; // by the rule, empty tiles not counted
};

// Sizes of one check; rows and keys are indices, positions add the origins of the context.
struct TileShape {
  int blockM, blockN;
};

namespace detail {

inline int ceilDiv(int a, int b) { return (a + b - 1) / b; }

// The rows of one query tile, as indices.
struct QueryTile {
  int variant, branch;
  std::vector<int> rows;
};

struct TileTruth {
  bool any = false, every = true;
};

inline TileTruth judge(const KeepRule &keeps, const JitContext &context, const QueryTile &tile,
                       const std::vector<int> &keys) {
  TileTruth truth;
  for (int row : tile.rows)
    for (int key : keys) {
      bool kept = keeps(context, tile.branch, context.qOrigin + row, context.kOrigin + key);
      truth.any |= kept;
      truth.every &= kept;
    }
  return truth;
}

// How often each key tile was visited and called full by the functions.
struct Marks {
  std::vector<int> visited, full;
};

template <class Functions>
std::string collectMarks(const Functions &functions, const JitContext &context, const QueryTile &tile, int blockN,
                         Marks &marks) {
  int first = context.qOrigin + tile.rows.front(), last = context.qOrigin + tile.rows.back();
  int tiles = int(marks.visited.size()), from = 0, reach = 0;
  while (true) {
    JitKeyRange range = functions.nextRange(context, {tile.variant, tile.branch, first, last, blockN}, from);
    if (range.begin != JitKeyRange::kNoTile && from < reach && range.begin != from)
      return "tile " + std::to_string(from) + " is not visited, the range before reached " + std::to_string(reach);
    if (range.begin == JitKeyRange::kNoTile && from < reach)
      return "no range after tile " + std::to_string(from) + ", the range before reached " + std::to_string(reach);
    if (range.begin == JitKeyRange::kNoTile)
      return range.end == JitKeyRange::kNoTile ? "" : "the end marker has a finite end";
    if (range.begin < from || range.end <= range.begin || range.end > tiles)
      return "range [" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ") after tile " +
             std::to_string(from) + " of " + std::to_string(tiles);
    if (range.reach < range.end || range.reach > tiles)
      return "reach " + std::to_string(range.reach) + " of a range that ends at " + std::to_string(range.end);
    reach = std::max(reach, range.reach);
    for (int t = range.begin; t < range.end; ++t)
      ++marks.visited[t];
    for (int t = range.fullBegin; t < range.fullEnd; ++t) {
      if (t < range.begin || t >= range.end)
        return "full tile " + std::to_string(t) + " outside its range";
      ++marks.full[t];
    }
    from = range.end;
  }
}

template <class Functions>
void checkTile(const Functions &functions, const KeepRule &keeps, const JitContext &context, const QueryTile &tile,
               int blockN, RangeReport &report) {
  int rate = functions.keyRate(tile.variant, tile.branch);
  int residue = functions.keyResidue(context, tile.variant, tile.branch, context.qOrigin + tile.rows.front());
  if (rate < 1 || residue < 0 || residue >= rate) {
    report.error = "residue " + std::to_string(residue) + " of rate " + std::to_string(rate);
    return;
  }
  int keyCount = residue < context.seqlenK ? ceilDiv(context.seqlenK - residue, rate) : 0;
  int tiles = ceilDiv(keyCount, blockN);
  Marks marks{std::vector<int>(tiles), std::vector<int>(tiles)};
  report.error = collectMarks(functions, context, tile, blockN, marks);
  for (int t = 0; t < tiles && report.error.empty(); ++t) {
    std::vector<int> keys;
    for (int number = t * blockN; number < std::min((t + 1) * blockN, keyCount); ++number)
      keys.push_back(residue + rate * number);
    TileTruth truth = judge(keeps, context, tile, keys);
    report.visitedTiles += marks.visited[t];
    report.fullTiles += marks.full[t];
    report.nonEmptyTiles += truth.any;
    report.trulyFullTiles += truth.every;
    if (truth.any && marks.visited[t] != 1)
      report.error = "tile " + std::to_string(t) + " visited " + std::to_string(marks.visited[t]) + " times";
    if (marks.visited[t] > 1 || (marks.full[t] && !truth.every))
      report.error = "tile " + std::to_string(t) + " is not what its range says";
  }
  // Keys of the other residues must hold nothing for these rows.
  std::vector<int> others;
  for (int key = 0; key < context.seqlenK; ++key)
    if (key % rate != residue)
      others.push_back(key);
  if (report.error.empty() && judge(keeps, context, tile, others).any)
    report.error = "a kept key lies outside residue " + std::to_string(residue);
}

} // namespace detail

// Every query tile of every class and branch of the head in `context`. `functions` is a JitPattern or
// a HostPattern.
template <class Functions>
RangeReport checkRanges(const Functions &functions, const HandPattern &pattern, const JitContext &context,
                        TileShape shape) {
  RangeReport report;
  int variant = functions.variant(context);
  int rate = functions.queryRate(variant);
  if (variant < 0 || variant >= pattern.variantCount() || rate < 1)
    report.error = "variant " + std::to_string(variant) + " with query rate " + std::to_string(rate);
  for (int rho = 0; rho < rate; ++rho)
    for (int start = rho; start < context.seqlenQ; start += rate * shape.blockM)
      for (int branch = 0; branch < pattern.branchCount() && report.error.empty(); ++branch) {
        detail::QueryTile tile{variant, branch, {}};
        for (int i = 0; i < shape.blockM && start + rate * i < context.seqlenQ; ++i)
          tile.rows.push_back(start + rate * i);
        detail::checkTile(functions, pattern.keeps, context, tile, shape.blockN, report);
      }
  return report;
}

} // namespace heddle::test

#endif
