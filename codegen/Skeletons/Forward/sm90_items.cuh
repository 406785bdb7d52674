// Which work items, or splits of them, a block computes, one after the other. kGrid says how they are dealt out:
//   0 tile     one block per item
//   1 stride   block c takes items c, c + blocks, ...
//   3 dynamic  a counter in the workspace, zero at the start, gives the next one
#pragma once

#include "Forward/sm90_softmax.cuh"
#include "Forward/sm90_split_kv.cuh"
#include "Shared/quads.cuh"

namespace heddle {

constexpr int32_t kNoItem = -1;

// The planning warp asks this.
template <class K> DEV bool isSecondPass() { return K::kMayRedo && ptx::loadShared4(K::kSecondPass) != 0; }

template <class K> class ItemSequence {
public:
  // In the second pass the same items come once more.
  DEV explicit ItemSequence(const ParamsOf<K> &p) : p(p), round(0) {
    if (K::kSplitsLast)
      noteLastRound();
    if (kKeepsChain && ptx::rereadLane() == 0)
      ptx::storeShared4(K::kPreviousItem, blockIdx.x);
  }

  // The place of what next() gave among the items of this block.
  DEV int32_t ordinal() const { return round - 1; }

  // All lanes of the warp call together and get the same.
  DEV WorkUnit next() {
    const int32_t blocks = ptx::rereadGridSize(), block = blockIdx.x;
    int32_t number = block + round * blocks;
    if constexpr (K::kGrid == kGridDynamic)
      if (round > 0)
        number = __shfl_sync(kWholeWarp, ptx::rereadLane() == 0 ? numberFromCounter() : 0, 0);
    if (K::kGrid == kGridTile && round > 0)
      number = p.items;
    ++round;
    if constexpr (K::kSplitsLast) {
      const auto last = loadRecord<LastRound>(K::kLastRound);
      if (number >= last.firstItem)
        return splitOfLastRound(last.firstItem, number - last.firstItem, last.splits);
    }
    return WorkUnit{number < p.items ? number : kNoItem, SplitRecord{0}};
  }

private:
  static constexpr bool kKeepsChain = K::kMayRedo && K::kGrid == kGridDynamic;

  // One lane. Which items a block got is kept as a chain in the workspace, if they may be wanted again.
  DEV int32_t numberFromCounter() const {
    if (!kKeepsChain)
      return ptx::rereadGridSize() + ptx::addGlobal(p.workspace + workspace::kNextItem, 1);
    uint32_t *following = chain() + ptx::loadShared4(K::kPreviousItem);
    if (!isSecondPass<K>())
      *following = ptx::rereadGridSize() + ptx::addGlobal(p.workspace + workspace::kNextItem, 1);
    const int32_t number = *following;
    ptx::storeShared4(K::kPreviousItem, number);
    return number;
  }

  DEV uint32_t *chain() const {
    constexpr int64_t kSlotWords = K::kConsumerWarps * stateBytes(K::kOutputTiles * 8) / 4;
    if (!K::kHasSplits)
      return p.workspace + workspace::kChain;
    return p.workspace + workspace::kStates +
           (kSplitSlots + (K::kSplitsLong ? kOwnSlots * ptx::rereadGridSize() : 0)) * kSlotWords;
  }

  // Notes the first item of the last round and the splits of each. No item: nothing is cut. The splits are those
  // with the least time, when a split costs its share of an item and a little for itself.
  DEV void noteLastRound() const {
    constexpr int32_t kItemCost = 1000, kSplitCost = 30, kMostSplits = 8, kLeastTiles = 3;
    const int32_t blocks = ptx::rereadGridSize(), rest = p.items % blocks;
    // A launch that is nothing but its last round is cut as far as splits of a few key tiles go.
    const int32_t mostSplits = p.items < blocks ? min(kMaxSplits, p.seqlenK / (kLeastTiles * K::kBlockN)) : kMostSplits;
    int32_t best = 1, least = kItemCost;
#pragma unroll 1
    for (int32_t splits = 2; splits <= mostSplits && rest * splits <= kSplitSlots; ++splits) {
      const int32_t cost = ceilDiv(rest * splits, blocks) * (kItemCost / splits + kSplitCost);
      best = cost < least ? splits : best;
      least = min(cost, least);
    }
    if (ptx::rereadLane() == 31)
      storeRecord(K::kLastRound, LastRound{best > 1 ? p.items - rest : p.items, best});
    __syncwarp();
  }

  DEV WorkUnit splitOfLastRound(int32_t firstItem, int32_t index, int32_t splits) const {
    const int32_t item = index / splits, number = firstItem + item;
    return WorkUnit{number < p.items ? number : kNoItem,
                    SplitRecord::make(item * splits, 0, splits, index - item * splits)};
  }

  const ParamsOf<K> &p;
  int32_t round;
};

} // namespace heddle
