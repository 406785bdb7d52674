// Enumerates the key tiles of lists, whose ranges are short: asked for one after the other, they take longer than their tiles
// take the consumers. So all lanes of the planning warp ask at once, each for a segment of the keys of one consumer, and note
// what is kept there, a bit for each tile. Tiles are then counted out of the bits.
#pragma once

#include "Forward/sm90_tile_walk.cuh"

namespace heddle {

// A word for each segment and consumer, with bits for tiles, and above them for those that need no mask, unless none does.
struct NotedTiles {
  uint32_t words[32];
  int32_t first;               // tile of the first segment; kNoTile: nothing is noted yet
  int32_t bits;                // of the number of a tile in its segment
  int32_t next[kMaxConsumers]; // where tiles go on behind the last segment
};
static_assert(sizeof(NotedTiles) == kNotedTileBytes, "as much memory as is planned");

template <class K> class ConsumerTileWalk<K, true> : TileQuestions<K> {
  using Base = TileQuestions<K>;
  using typename Base::KeyRange;
  using typename Base::Pattern;

public:
  DEV explicit ConsumerTileWalk(const ParamsOf<K> &p) : Base(p) { enterBranch(0); }

  DEV TileStretch longestStretch() const {
    const int32_t count = __reduce_max_sync(kWholeWarp, stretch.count);
    return TileStretch{__reduce_min_sync(kWholeWarp, stretch.count == count ? stretch.first : kNoTile), count};
  }
  DEV int32_t stretchOfLane() const { return stretch.count; }
  DEV void restart() { from = Base::firstAllowed(); }

  DEV ConsumerTile next() {
    for (; Base::branch() < Pattern::kBranchCount; enterBranch(Base::branch() + 1))
      for (int32_t end = Base::endOfAllowed(); from < end;) {
        if (!isNoted())
          note();
        const int32_t number = noted(), last = __shfl_sync(kWholeWarp, number, Base::kBatch - 1);
        from = last != kNoTile ? last + 1 : nextBehind();
        if (__any_sync(kWholeWarp, number < end))
          return number < end ? judge(number) : Base::noTile();
      }
    return Base::noTile();
  }

private:
  static constexpr uint32_t kNotes = ptx::CellMemory<K>::kAddress + kCellBytes;
  static constexpr int32_t kSegments = 32 / K::kConsumers;
  static constexpr bool kAreWhole = K::kTilesAreWhole == 1;
  static constexpr int32_t kMostBits = kAreWhole ? 5 : 4; // of numbers of tiles in a segment
  static constexpr int32_t kWholeTiles = 16;              // the bit of the first one
  static constexpr uint32_t kTiles = kAreWhole ? 0xffffffff : 0xffff;

  DEV void enterBranch(int32_t number) {
    Base::enter(number);
    goTo(Base::firstAllowed());
  }

  DEV void goTo(int32_t tile) {
    from = tile;
    __syncwarp(); // all lanes are done with the notes before
    if (isWriter()) {
      setNotes(HEDDLE_OFFSET(NotedTiles, first), kNoTile);
      setNotes(HEDDLE_OFFSET(NotedTiles, bits), 0);
    }
    __syncwarp();
  }

  DEV static int32_t notes(uint32_t offset) { return ptx::loadShared4(kNotes + offset); }
  DEV static void setNotes(uint32_t offset, int32_t value) { ptx::storeShared4(kNotes + offset, value); }
  DEV static int32_t firstNoted() { return notes(HEDDLE_OFFSET(NotedTiles, first)); }
  DEV static int32_t bits() { return notes(HEDDLE_OFFSET(NotedTiles, bits)); }
  DEV static uint32_t wordOf(int32_t number) { return static_cast<uint32_t>(notes(number * 4)); }

  DEV static uint32_t nextOf(int32_t consumer) { return HEDDLE_OFFSET(NotedTiles, next) + consumer * 4; }
  DEV static int32_t nextBehind() {
    int32_t next = kNoTile;
#pragma unroll
    for (int consumer = 0; consumer < K::kConsumers; ++consumer)
      next = min(next, notes(nextOf(consumer)));
    return next;
  }

  DEV bool isNoted() const { return static_cast<uint32_t>(from - firstNoted()) < kSegments << bits(); }

  // The segment of this lane begins there; lanes beyond the last one have none.
  DEV static int32_t firstOfLane() {
    const int32_t segment = ptx::rereadLane() / K::kConsumers;
    return segment < kSegments ? firstNoted() + (segment << bits()) : kNoTile;
  }

  // The segments from `from` on. What a lane knows of its own lies in shared memory: registers are scarce in the loop.
  DEV void note() {
    const int32_t lane = ptx::rereadLane(), ofNumbers = bitsFrom();
    __syncwarp();
    setNotes(lane * 4, 0);
    if (isWriter()) {
      setNotes(HEDDLE_OFFSET(NotedTiles, first), from);
      setNotes(HEDDLE_OFFSET(NotedTiles, bits), ofNumbers);
    }
    __syncwarp();
    stretch = TileStretch{kNoTile, 0};
    int32_t at = firstOfLane();
#pragma unroll 1
    while (const uint32_t asking = __ballot_sync(kWholeWarp, isAsking(at))) {
      // Who has no question asks that of another lane: lists are searched for all lanes together. In its own segment it gets
      // an answer once more.
      const int32_t theirs = __shfl_sync(kWholeWarp, at, __ffs(asking) - 1);
      at = isAsking(at) ? at : theirs;
      const KeyRange found = Base::nextRange(ptx::rereadLane() % K::kConsumers, at);
      if (isAsking(at))
        at = noteRange(found, at);
    }
    __syncwarp();
  }

  // Segments as short as they may be to reach the last key, so that no lane has much to ask.
  DEV int32_t bitsFrom() const {
    const int32_t most = max((Base::tileCount() - from - 1) / kSegments, 0);
    return min(32 - __clz(most), kMostBits);
  }

  DEV static bool isAsking(int32_t at) {
    return at != kNoTile && static_cast<uint32_t>(at - firstOfLane()) < 1u << bits();
  }

  // A bit for each of [begin, end), up to 32.
  DEV static uint32_t tilesOf(int32_t begin, int32_t end) {
    return static_cast<uint32_t>((uint64_t(1) << end) - (uint64_t(1) << begin));
  }

  // What the answer says of the lane's segment. Where the lane goes on.
  DEV int32_t noteRange(const KeyRange &range, int32_t at) {
    const int32_t lane = ptx::rereadLane(), first = firstOfLane(), length = 1 << bits();
    if (K::kHasSplits && lane < K::kConsumers && at == first)
      stretch = TileStretch{range.begin, range.reach - range.begin};
    const int32_t begin = min(range.begin - first, length), end = min(range.end - first, length);
    uint32_t word = wordOf(lane) | tilesOf(begin, end);
    if (!kAreWhole) {
      const int32_t wholeBegin = min(max(range.fullBegin - first, begin), end);
      word |= tilesOf(wholeBegin, min(max(range.fullEnd - first, wholeBegin), end)) << kWholeTiles;
    }
    setNotes(lane * 4, static_cast<int32_t>(word));
    const int32_t next = max(range.begin, first + end);
    if (next - first >= length && lane / K::kConsumers == kSegments - 1)
      setNotes(nextOf(lane % K::kConsumers), next);
    return next;
  }

  // The tiles from `from` on, one for a lane, as many as are handed on at a time; kNoTile behind the last one.
  DEV int32_t noted() const {
    const int32_t lane = ptx::rereadLane(), ofNumber = bits(), place = from - firstNoted();
    const uint32_t ofLane = lane < kSegments ? neededOf(lane) & behind(place - (lane << ofNumber)) : 0;
    int32_t number = kNoTile, before = 0;
#pragma unroll 1
    for (uint32_t left = __ballot_sync(kWholeWarp, ofLane != 0); left != 0 && before < Base::kBatch; left &= left - 1) {
      const int32_t segment = __ffs(left) - 1;
      const uint32_t tiles = __shfl_sync(kWholeWarp, ofLane, segment);
      const int32_t rank = lane - before, count = __popc(tiles);
      if (rank >= 0 && rank < count && lane < Base::kBatch)
        number = firstNoted() + (segment << ofNumber) + placeOf(tiles, rank);
      before += count;
    }
    return number;
  }

  // Of all consumers together.
  DEV static uint32_t neededOf(int32_t segment) {
    uint32_t tiles = 0;
#pragma unroll
    for (int consumer = 0; consumer < K::kConsumers; ++consumer)
      tiles |= wordOf(segment * K::kConsumers + consumer);
    return tiles & kTiles;
  }

  // The tiles of a segment behind so many.
  DEV static uint32_t behind(int32_t count) { return count >= 32 ? 0 : 0xffffffff << max(count, 0); }

  // Of the bit that has so many below it.
  DEV static int32_t placeOf(uint32_t bits, int32_t rank) {
#pragma unroll 1
    for (; rank > 0; --rank)
      bits &= bits - 1;
    return __ffs(bits) - 1;
  }

  DEV ConsumerTile judge(int32_t number) const {
    const int32_t place = number - firstNoted(), segment = place >> bits(), bit = place & ((1 << bits()) - 1);
    int32_t needed = 0, whole = 0;
#pragma unroll
    for (int consumer = 0; consumer < K::kConsumers; ++consumer) {
      const uint32_t word = wordOf(segment * K::kConsumers + consumer) >> bit;
      needed |= static_cast<int32_t>(word & 1) << consumer;
      whole |= (kAreWhole || (word >> kWholeTiles & 1) != 0) << consumer;
    }
    const auto tile = Base::numbered(number);
    return Base::judged(tile, needed, tile.isWhole ? whole : 0);
  }

  int32_t from;
  TileStretch stretch; // of the consumer of this lane, from the first tile of the item; kHasSplits
};

} // namespace heddle
