// Teams: the first items of a head may visit many times as many tiles as the others (keys and queries that are global).
// kLongSplit blocks share such an item, each walks every kLongSplit-th of its tiles and leaves its sums in the workspace; the one
// that arrives last adds them up, in the order of ranks, whoever computed them. Blocks of teams come first in the grid;
// those of items that are not long have nothing to do.
#pragma once

#include "Backward/sm90_backward_shared.cuh"
#include "Backward/walk_items.cuh"

namespace heddle {

constexpr int32_t kLeastLong = 32; // tiles of an item that is worth a team
constexpr int32_t kLongShare = 4;  // and one of so many parts of all tiles

// What a block has of its item.
template <class K> struct CtaTeamShare {
  int32_t team; // number of the shared item; negative: the block has all of it
  int32_t rank;

  DEV bool isAlone() const { return !K::kHasTeams || team < 0; }
};

// Which tiles a block takes, in the order of the walk.
template <class K> class Turns {
public:
  DEV explicit Turns(const CtaTeamShare<K> &share) : share(share), left(share.rank) {}
  DEV bool isOwn() {
    const bool own = !K::kHasTeams || left == 0;
    left = own ? share.isAlone() ? 0 : K::kLongSplit - 1 : left - 1;
    return own;
  }

private:
  const CtaTeamShare<K> &share;
  int32_t left; // tiles of others before the next own one
};

// Tiles of one of the heads whose columns an item visits, which make it long.
DEV int32_t leastLong(int32_t tiles, int32_t heads) { return max(ceilDiv(kLeastLong, heads), tiles / kLongShare); }

template <class Item> DEV bool isLong(const typename Item::Params &p, const Item &item) {
  const typename Item::Context context = makeContext(p, item.batch, item.head);
  const int32_t heads = Item::headsOfItem(p);
  return TileWalk<Item>(context, item).skips(leastLong(ceilDiv(Item::columns(p), Item::Kernel::kBlockM), heads));
}

// The item of a block and its share of it. False: the block has nothing to do.
template <class K, class Item>
DEV bool decodeShare(const ParamsOf<K> &p, int32_t index, Item &item, CtaTeamShare<K> &share) {
  share = CtaTeamShare<K>{-1, 0};
  if constexpr (!K::kHasTeams)
    return decodeItem(p, index, item);
  const int32_t pairs = pairsOf<Item>(p), teamBlocks = pairs * kTeamItems * K::kLongSplit;
  if (index >= teamBlocks)
    return decodeItem(p, index - teamBlocks, item) && (item.number >= kTeamItems || !isLong(p, item));
  share.team = index / K::kLongSplit;
  share.rank = index - share.team * K::kLongSplit;
  const int32_t number = share.team / pairs;
  return placeItem(p, share.team - number * pairs, number, item) && isLong(p, item);
}

// That of a block which has something to do: again, where registers are too few to keep it.
template <class K, class Item> DEV CtaTeamShare<K> shareOfBlock(const ParamsOf<K> &p) {
  if constexpr (!K::kHasTeams)
    return {-1, 0};
  const int32_t index = ptx::rereadBlockIndex(), team = index / K::kLongSplit;
  const bool isShared = team < pairsOf<Item>(p) * kTeamItems;
  return {isShared ? team : -1, isShared ? index - team * K::kLongSplit : 0};
}

// Sums of the consumers of a block, 16 bytes of a thread at a time. In the workspace a counter for each team lies
// before those of all blocks.
template <class K, int Pieces> class CtaTeamSums {
public:
  DEV CtaTeamSums(const ParamsOf<K> &p, const CtaTeamShare<K> &share, int32_t pairs)
      : arrived(static_cast<uint32_t *>(p.between) + share.team),
        sums(static_cast<float *>(p.between) + ceilDiv(pairs * kTeamItems, kTeamCounters) * kTeamCounters +
             share.team * int64_t(K::kLongSplit) * kBlockFloats + threadIdx.x * 4),
        rank(share.rank) {}

  template <int N> DEV void leave(const float (&values)[N][4], int first) const {
#pragma unroll
    for (int n = 0; n < N; ++n)
      ptx::storeGlobal16(place(rank, first + n), true, values[n][0], values[n][1], values[n][2], values[n][3]);
  }

  // All consumers together, once everything is left. True for the last block of the team.
  DEV bool isLast() const {
    ptx::fenceGlobal();
    ptx::syncNamed(kTeamBarrier, K::kConsumerThreads);
    if (threadIdx.x == 0)
      ptx::storeShared4(K::kTeamWord, ptx::addGlobal(arrived, 1));
    ptx::syncNamed(kTeamBarrier, K::kConsumerThreads);
    const bool last = ptx::loadShared4(K::kTeamWord) == K::kLongSplit - 1;
    ptx::fenceGlobal();
    return last;
  }

  template <int N> DEV void collect(float (&values)[N][4], int first) const {
#pragma unroll
    for (int n = 0; n < N; ++n)
      ptx::loadGlobal16(place(0, first + n), values[n]);
#pragma unroll 1
    for (int other = 1; other < K::kLongSplit; ++other) { // loads of all pieces are on their way together
      float part[N][4];
#pragma unroll
      for (int n = 0; n < N; ++n)
        ptx::loadGlobal16(place(other, first + n), part[n]);
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot)
          values[n][slot] += part[n][slot];
    }
  }

private:
  static constexpr int64_t kBlockFloats = int64_t(Pieces) * K::kConsumerThreads * 4;

  DEV float *place(int32_t of, int piece) const { return sums + of * kBlockFloats + piece * (K::kConsumerThreads * 4); }

  uint32_t *arrived;
  float *sums;
  int32_t rank;
};

} // namespace heddle
