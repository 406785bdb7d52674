//===- Closure.h - how far layers carry -------------------------*- C++ -*-===//
// Owns the question how many layers of one pattern it takes until every position has heard of every other one. A layer
// hands a position what the positions that it attends to know; what it knows itself stays (the residual connection).
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_VIEWS_CLOSURE_H
#define HEDDLE_COMPILER_VIEWS_CLOSURE_H

#include <cstdint>
#include <optional>
#include <vector>

namespace heddle::views {

/// sources[i]: the nodes that node i attends to, each < sources.size().
using AttentionGraph = std::vector<std::vector<int32_t>>;

struct ClosureDepth {
  std::optional<int64_t> layers; ///< until all wanted pairs are connected, at least 1; nothing: they never are
  int64_t settledAfter = 0;      ///< layers after which nothing new is connected
  double connected = 0;          ///< share of the wanted pairs that are connected in the end; 1 for no pairs
};

/// Wanted are all pairs, or with `isCausal` those whose source is not later.
ClosureDepth closureDepth(const AttentionGraph &graph, bool isCausal);

} // namespace heddle::views

#endif
