// Teams: the first items of a head may visit many times as many tiles as the others (keys and queries that are global).
// kTeam blocks share such an item, each walks every kTeam-th of its tiles and leaves its sums in the workspace; the one
// that arrives last adds them up, in the order of ranks, whoever computed them. Blocks of teams come first in the grid;
// those of items that are not long have nothing to do.
#pragma once

#include "Backward/query_items.cuh"

namespace heddle {

constexpr int kTeam = KernelTraits::kLongSplit;
constexpr bool kHasTeams = kTeam > 1;
constexpr int32_t kLeastLong = 32; // tiles of an item that is worth a team
constexpr int32_t kLongShare = 4;  // and one of so many parts of all tiles

// What a block has of its item.
struct TeamShare {
  int32_t team; // number of the shared item; negative: the block has all of it
  int32_t rank;

  DEV bool isAlone() const { return !kHasTeams || team < 0; }
};

// Which tiles a block takes, in the order of the walk.
class Turns {
public:
  DEV explicit Turns(const TeamShare &share) : share(share), left(share.rank) {}
  DEV bool isOwn() {
    const bool own = !kHasTeams || left == 0;
    left = own ? share.isAlone() ? 0 : kTeam - 1 : left - 1;
    return own;
  }

private:
  const TeamShare &share;
  int32_t left; // tiles of others before the next own one
};

// Tiles of one head of a group that make an item long.
DEV int32_t leastLong(int32_t tiles, int32_t group) { return max(ceilDiv(kLeastLong, group), tiles / kLongShare); }

DEV bool isLong(const KernelParams &p, const KeyItem &item) {
  const PatternContext context = makeContext(p, item.batch, item.firstHead);
  const int32_t group = p.heads / p.kvHeads;
  return QueryTileWalk(context, item).skips(leastLong(ceilDiv(p.seqlenQ, kBlockM), group));
}

DEV bool isLong(const KernelParams &p, const QueryItem &item) {
  const PatternContext context = makeContext(p, item.batch, item.head);
  return KeyTileWalk(context, item).skips(leastLong(ceilDiv(p.seqlenK, kBlockM), 1));
}

DEV int32_t pairsOf(const KernelParams &p, const KeyItem &) { return p.batch * p.kvHeads; }
DEV int32_t pairsOf(const KernelParams &p, const QueryItem &) { return p.batch * p.heads; }
DEV bool place(const KernelParams &p, int32_t pair, int32_t number, KeyItem &item) {
  return placeKeyItem(p, pair, number, item);
}
DEV bool place(const KernelParams &p, int32_t pair, int32_t number, QueryItem &item) {
  return placeQueryItem(p, pair, number, item);
}
DEV bool decode(const KernelParams &p, int32_t index, KeyItem &item) { return decodeKeyItem(p, index, item); }
DEV bool decode(const KernelParams &p, int32_t index, QueryItem &item) { return decodeQueryItem(p, index, item); }

// The item of a block and its share of it. False: the block has nothing to do.
template <class Item> DEV bool decodeShare(const KernelParams &p, int32_t index, Item &item, TeamShare &share) {
  share = TeamShare{-1, 0};
  if constexpr (!kHasTeams)
    return decode(p, index, item);
  const int32_t pairs = pairsOf(p, item), teamBlocks = pairs * kTeamItems * kTeam;
  if (index >= teamBlocks)
    return decode(p, index - teamBlocks, item) && (item.number >= kTeamItems || !isLong(p, item));
  share.team = index / kTeam;
  share.rank = index - share.team * kTeam;
  const int32_t number = share.team / pairs;
  return place(p, share.team - number * pairs, number, item) && isLong(p, item);
}

// Sums of the consumers of a block, 16 bytes of a thread at a time. In the workspace a counter for each team lies before
// those of all blocks.
template <int Pieces> class TeamSums {
public:
  DEV TeamSums(const KernelParams &p, const TeamShare &share, int32_t pairs)
      : arrived(reinterpret_cast<uint32_t *>(p.teams) + share.team),
        sums(p.teams + ceilDiv(pairs * kTeamItems, kTeamCounters) * kTeamCounters +
             share.team * int64_t(kTeam) * kBlockFloats + threadIdx.x * 4),
        rank(share.rank) {}

  template <int N> DEV void leave(const float (&values)[N][4], int first) const {
#pragma unroll
    for (int n = 0; n < N; ++n)
      ptx::storeGlobal16(place(rank, first + n), true, values[n][0], values[n][1], values[n][2], values[n][3]);
  }

  // All consumers together, once everything is left. True for the last block of the team.
  DEV bool isLast() const {
    ptx::fenceGlobal();
    ptx::syncNamed(kTeamBarrier, kConsumerThreads);
    if (threadIdx.x == 0)
      ptx::storeShared4(kTeamWord, ptx::addGlobal(arrived, 1));
    ptx::syncNamed(kTeamBarrier, kConsumerThreads);
    const bool last = ptx::loadShared4(kTeamWord) == kTeam - 1;
    ptx::fenceGlobal();
    return last;
  }

  template <int N> DEV void collect(float (&values)[N][4], int first) const {
#pragma unroll
    for (int n = 0; n < N; ++n)
      ptx::loadGlobal16(place(0, first + n), values[n]);
#pragma unroll 1
    for (int other = 1; other < kTeam; ++other) { // loads of all pieces are on their way together
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
  static constexpr int64_t kBlockFloats = int64_t(Pieces) * kConsumerThreads * 4;

  DEV float *place(int32_t of, int piece) const { return sums + of * kBlockFloats + piece * (kConsumerThreads * 4); }

  uint32_t *arrived;
  float *sums;
  int32_t rank;
};

} // namespace heddle
