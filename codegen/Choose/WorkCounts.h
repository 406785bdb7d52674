// Owns the exact counts of the analysis that estimates of time are made of: key tiles visited and full under any
// tiling, and how evenly work items fall on blocks when they are dealt out as kernels deal them (work_items.cuh).
// Counts are kept as they are asked for.
#pragma once

#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "dialect/Geometry/Counts.h"
#include "runtime/Core/Status.h"

#include <map>
#include <tuple>

namespace heddle {

/// What is counted of a pattern, without its IR.
struct CountedPattern {
  attn::PatternAnalysis whole;
  std::vector<attn::PatternAnalysis> passes; ///< in the order of their kernels, where it falls into several
};

/// What all kernels of a call do together.
struct TileWork {
  double visited = 0, full = 0; ///< key tiles
  double items = 0;             ///< query tiles
};

/// How items go to blocks.
struct Dealing {
  int64_t blockM = 0;
  bool takesStrides = true; ///< blocks take every so many-th item, else the next one when they end
  bool isReversed = false;
  int64_t partKeys = 0;     ///< items of at least twice as many keys fall into parts of so many; 0: none
  int64_t blocks = 1;       ///< at work at a time
  int64_t sectionPairs = 1; ///< (batch, head) pairs whose items run side by side

  auto key() const { return std::make_tuple(blockM, takesStrides, isReversed, partKeys, blocks, sectionPairs); }
};

struct DealtWork {
  double imbalance = 1; ///< time of the last block over the mean, at least 1
  int64_t parts = 0;    ///< more than there are items
};

/// One thread at a time. The analyses must outlive it.
class WorkCounts {
public:
  /// One analysis for each kernel of the call. unsupported: what is kept follows from tensors that are not given, or
  /// from lists that counts do not read.
  static Result<WorkCounts> create(std::vector<const attn::PatternAnalysis *> kernels, attn::ProblemSizes sizes,
                                   int64_t batch);

  const TileWork &tiles(int64_t blockM, int64_t blockN);
  const DealtWork &deal(const Dealing &dealing);
  int64_t pairs() const { return batch * sizes.heads; }

private:
  /// Keys that each item of a head visits, by the item's number; -1: the head has no such item.
  using ItemKeys = std::vector<int64_t>;
  struct Items {
    std::vector<ItemKeys> lists;         ///< of heads that differ
    std::vector<std::vector<size_t>> of; ///< for each kernel and head, which list
    size_t perHead = 0;
    int64_t mostKeys = 0;
  };

  WorkCounts(std::vector<const attn::PatternAnalysis *> kernels, attn::ProblemSizes sizes, int64_t batch)
      : kernels(std::move(kernels)), sizes(std::move(sizes)), batch(batch) {}
  const Items &items(int64_t blockM);
  ItemKeys keysOf(const attn::VariantRanges &ranges, int64_t head, int64_t blockM) const;
  std::vector<double> inOrder(const Items &items, const Dealing &dealing) const;

  std::vector<const attn::PatternAnalysis *> kernels;
  attn::ProblemSizes sizes;
  int64_t batch;
  std::map<std::pair<int64_t, int64_t>, TileWork> tileWork;
  std::map<int64_t, Items> itemsOfBlock;
  std::map<decltype(Dealing().key()), DealtWork> dealtWork;
};

} // namespace heddle
