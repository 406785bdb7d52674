// Enumerates the key tiles of one query tile for all consumers at once. Every consumer owns 64 rows and needs its own
// tiles; lane w of the planning warp looks for the ranges of consumer w. While no range ends, the lanes judge a tile
// each, several at a time: a consumer skips or does not mask by its own rows, and a tile that none needs does not
// appear. In a split of 64 rows (kSplitTiles) all lanes look for the same ranges, and the consumers take the tiles in
// turn. Lists are walked otherwise (sm90_listed_tiles.cuh).
#pragma once

#include "Forward/sm90_split_kv.cuh"
#include "Shared/quads.cuh"

namespace heddle {

// block_n keys for all consumers.
struct ConsumerTile {
  int32_t number; // of the key tile in its class; negative: there is no tile
  int32_t flags;  // flag::kMasked, flag::kNeeded and flag::kBranch
  int32_t place;  // residue of the keys and tensor map of their class
  int32_t firstKey;

  DEV bool exists() const { return number >= 0; }
  // The tile of another lane; all lanes call together.
  DEV ConsumerTile ofLane(int32_t lane) const {
    return ConsumerTile{__shfl_sync(kWholeWarp, number, lane), __shfl_sync(kWholeWarp, flags, lane),
                        __shfl_sync(kWholeWarp, place, lane), __shfl_sync(kWholeWarp, firstKey, lane)};
  }
  DEV static int32_t residueOf(int32_t place) { return place >> kMapBits; }
  DEV static int32_t mapOf(int32_t place) { return place & ((1 << kMapBits) - 1); }

  static constexpr int kMapBits = 8;
};

// The lane that writes what all lanes of the planning warp read.
DEV bool isWriter() { return ptx::rereadLane() == 31; }

// What a walk over the tiles of the item in kPlannerItem asks the pattern, and where it stands. All lanes of the warp call
// everything here together. What need not be in registers while a range is looked for is kept in kWalkPlace.
template <class K> class TileQuestions {
  using Params = ParamsOf<K>;
  static_assert(K::kMapCount <= 1 << ConsumerTile::kMapBits, "the number of a tensor map fits");

protected:
  using Pattern = typename K::Pattern;
  using KeyRange = typename Pattern::Range;
  static constexpr int32_t kBatch = kPlanSlots; // tiles at a time
  static_assert(kBatch < 32, "the writing lane has no tile of its own");

  DEV explicit TileQuestions(const Params &p) : p(p) {}

  DEV static ConsumerTile noTile() { return ConsumerTile{-1, 0, 0, 0}; }
  DEV static KeyRange noRange() { return KeyRange{kNoTile, kNoTile, 0, 0, kNoTile}; }

  DEV static int32_t firstAllowed() {
    return K::kHasSplits ? ptx::loadShared4(K::kSplitLimits + HEDDLE_OFFSET(TileLimits, first)) : 0;
  }
  DEV static int32_t endOfAllowed() {
    return K::kHasSplits ? ptx::loadShared4(K::kSplitLimits + HEDDLE_OFFSET(TileLimits, end)) : kNoTile;
  }

  // The consumers share the tiles of the same rows: not so in an item in one piece, whose record is zero.
  DEV static bool isShared() {
    return K::kSplitsLong && ptx::loadShared4(K::kNotedUnit + HEDDLE_OFFSET(NotedUnit, record)) != 0;
  }

  // Of the class of keys.
  DEV int32_t tileCount() const {
    const int32_t keys = Pattern::keyRate(variant(), branch()) * K::kBlockN;
    return (p.seqlenK + keys - 1) / keys;
  }

  DEV static int32_t branch() { return ptx::loadShared4(K::kWalkPlace + HEDDLE_OFFSET(WalkPlace, branch)); }

  DEV void enter(int32_t number) const {
    const int32_t place = number < Pattern::kBranchCount ? placeIn(number) : 0;
    __syncwarp(); // all lanes are done with the branch before
    if (isWriter())
      storeRecord(K::kWalkPlace, WalkPlace{number, place});
    __syncwarp();
  }

  // The next range of a consumer from a tile on; none of one without rows. Where a pattern asks for all lanes together, lanes
  // of such consumers ask for the rows of the item.
  DEV KeyRange nextRange(int32_t consumer, int32_t from) const {
    const WorkItem<K> item = readItem<K>(K::kPlannerItem);
    int32_t first = item.firstRow + (isShared() ? 0 : consumer * kConsumerRows * item.queryRate);
    const bool hasRows = consumer < K::kConsumers && first < item.endRow(p);
    if constexpr (Pattern::kAsksTogether) {
      first = hasRows ? first : item.firstRow;
    } else if (!hasRows) {
      return noRange();
    }
    const int32_t following = min(kConsumerRows - 1, (item.endRow(p) - 1 - first) / item.queryRate);
    const int32_t position = p.qOrigin + first;
    const KeyRange next = Pattern::nextRange(freshContext(item), variant(), branch(), position,
                                             position + following * item.queryRate, K::kBlockN, from);
    return Pattern::kAsksTogether && !hasRows ? noRange() : next;
  }

  struct NumberedTile {
    int32_t number, branch, place, firstKey;
    bool isWhole; // all its keys exist
  };
  DEV NumberedTile numbered(int32_t number) const {
    const auto at = loadRecord<WalkPlace>(K::kWalkPlace);
    const int32_t rate = Pattern::keyRate(variant(), at.branch);
    const int32_t firstKey = ConsumerTile::residueOf(at.place) + rate * number * K::kBlockN;
    return NumberedTile{number, at.branch, at.place, firstKey, firstKey + rate * (K::kBlockN - 1) < p.seqlenK};
  }

  // With a bit for each consumer that needs the tile, and for each that need not mask it; none, if nobody needs it.
  DEV static ConsumerTile judged(const NumberedTile &tile, int32_t needed, int32_t full) {
    if (isShared())
      needed &= 1 << tile.number % K::kConsumers;
    const int32_t masked = needed & ~full;
    return ConsumerTile{needed != 0 ? tile.number : -1,
                        needed << flag::kNeeded | masked << flag::kMasked | tile.branch << flag::kBranch, tile.place,
                        tile.firstKey};
  }

  const Params &p;

private:
  DEV static int32_t variant() {
    return Pattern::kVariantCount == 1 ? 0 : ptx::loadShared4(K::kPlannerItem + HEDDLE_OFFSET(ItemHeader, variant));
  }

  DEV Context<K> freshContext(const WorkItem<K> &item) const {
    Context<K> context = makeContext(p, item.batch, item.head);
    keepOutOfLoops<Pattern>(context);
    return context;
  }

  DEV int32_t placeIn(int32_t branch) const {
    const WorkItem<K> item = readItem<K>(K::kPlannerItem);
    const int32_t rate = Pattern::keyRate(variant(), branch);
    const int32_t residue = Pattern::keyResidue(freshContext(item), variant(), branch, p.qOrigin + item.firstRow);
    return residue << ConsumerTile::kMapBits | mapOfClass<K>(rateSlot<KeyRates<K>>(rate), rate, residue, p.seqlenK);
  }
};

// Walks the tiles of the item in kPlannerItem.
template <class K, bool AreListed = ptx::CellMemory<K>::kExists> class ConsumerTileWalk : TileQuestions<K> {
  using Base = TileQuestions<K>;
  using typename Base::KeyRange;
  using typename Base::Pattern;

public:
  DEV explicit ConsumerTileWalk(const ParamsOf<K> &p) : Base(p) { enterBranch(0); }

  // The longest stretch of tiles of a consumer from the first tile of the item; after the first call of next().
  DEV TileStretch longestStretch() const {
    const int32_t mine = stretchOfLane(), count = __reduce_max_sync(kWholeWarp, mine);
    return TileStretch{__reduce_min_sync(kWholeWarp, mine == count ? range.begin : kNoTile), count};
  }

  // That of the consumer of this lane.
  DEV int32_t stretchOfLane() const { return range.reach - range.begin; }

  // The first tile again, after kSplitLimits may have changed; none lies before the branch in which the walk stands.
  DEV void restart() { from = Base::firstAllowed(); }

  // The next tiles in the order of the branches and of the keys, one for a lane, ascending, at least one; lanes without
  // one get none. After the last tile, none for all and for ever.
  DEV ConsumerTile next() {
    for (; Base::branch() < Pattern::kBranchCount; enterBranch(Base::branch() + 1)) {
      // All lanes together, also those amid a range: none then holds its range while others look for theirs.
      if (__any_sync(kWholeWarp, range.end <= from))
        findRanges();
      const int32_t end = Base::endOfAllowed();
      const int32_t first = max(from, __reduce_min_sync(kWholeWarp, range.begin));
      if (first >= end)
        continue;
      from = min(min(__reduce_min_sync(kWholeWarp, range.end), end), first + Base::kBatch);
      const int32_t number = first + ptx::rereadLane();
      return number < from ? judge(number) : Base::noTile();
    }
    return Base::noTile();
  }

private:
  // Which consumers need the tile and which must mask it; none, if nobody needs it.
  DEV ConsumerTile judge(int32_t number) const {
    const auto tile = Base::numbered(number);
    int32_t needed = 0, full = 0;
#pragma unroll
    for (int consumer = 0; consumer < K::kConsumers; ++consumer) {
      const auto range = loadRecord<TileRange>(K::rangeOf(consumer));
      needed |= (number >= range.at[TileRange::kBegin] && number < range.at[TileRange::kEnd]) << consumer;
      full |= (tile.isWhole && (K::kTilesAreWhole == 1 ||
                                (number >= range.at[TileRange::kFullBegin] && number < range.at[TileRange::kFullEnd])))
              << consumer;
    }
    return Base::judged(tile, needed, full);
  }

  // The next range of every consumer, in the registers of its lane and for all lanes in kRanges.
  DEV void findRanges() {
    range = Base::nextRange(ptx::rereadLane(), from);
    const int32_t lane = ptx::rereadLane();
    __syncwarp(); // all lanes are done with the ranges before
    if (lane < K::kConsumers)
      storeRecord(K::rangeOf(lane), TileRange{{range.begin, range.end, range.fullBegin, range.fullEnd}});
    __syncwarp();
  }

  DEV void enterBranch(int32_t number) {
    from = Base::firstAllowed();
    range = KeyRange{0, 0, 0, 0, 0};
    Base::enter(number);
  }

  int32_t from;
  KeyRange range;
};

} // namespace heddle
