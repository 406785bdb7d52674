// Split-KV: items that are computed by several blocks. A split of an item takes a stretch of key tiles and leaves the
// state of its rows in the workspace. The warp that arrives last for its 16 rows combines the states in their order,
// whoever computed them, so that results do not depend on the timing.
//   kSplitLast    the items of the last, incomplete round of the grid are cut so that no block stays idle
//   kSplitTiles   items in which 64 rows have a range of at least twice this many tiles fall apart into their row
//                 groups, 64 rows each, and the ranges of these into splits of about so many tiles. The block that
//                 meets the item shares the splits, which every block prefers to items of its own. The consumers of a
//                 block take the key tiles of a split in turn, for the same 64 rows, and leave a state each.
#pragma once

#include "Forward/online_softmax.cuh"
#include "Forward/sm90_params.cuh"
#include "Forward/sm90_shared.cuh"
#include "Forward/split_record.cuh"
#include "Forward/state_weights.cuh"

namespace heddle {

// Why items are cut, if they are.
template <class Traits> struct Splits : Traits {
  static constexpr bool kSplitsLast = Traits::kSplitLast != 0;
  static constexpr bool kSplitsLong = Traits::kSplitTiles > 0;
  static constexpr bool kHasSplits = kSplitsLast || kSplitsLong;
  static constexpr int kStatesOfSplit = kSplitsLong ? Traits::kConsumers : 1; // of each row
};
constexpr int kCombineBarrier = 5; // behind those of turns

// States that are on their way together where a warp adds them: one consumer alone has the registers of four others.
template <class K>
constexpr int kStatesAtOnce =
    K::kConsumers > 1 || K::kValueTiles > 16 ? 1 : 32 / (K::kValueTiles > 8 ? K::kValueTiles : 8);

constexpr int kMaxConsumerWarps = kMaxConsumers * 4;
constexpr uint32_t kVoidEntry = 0xffffffff;
constexpr int32_t kNoUnit = -1;

// Splits of a row group whose longest range has so many tiles.
template <class K> DEV int32_t splitsOf(int32_t tiles) {
  return min(max(tiles / max(K::kSplitTiles, 1), 1), kMaxSplits);
}

// What a block computes next: an item or a split of it.
struct WorkUnit {
  int32_t number; // of the item; negative: there is nothing left
  SplitRecord record;

  DEV bool exists() const { return number >= 0; }
};

// The state that a warp left of its rows in a slot.
template <class K> class SplitState {
public:
  static constexpr int kWarpBytes = stateBytes(K::kOutputTiles * 8);
  // to the next state of the same rows
  static constexpr int kStepBytes = (K::kSplitsLong ? 4 : K::kConsumerWarps) * kWarpBytes;

  DEV SplitState(const ParamsOf<K> &p, int32_t slot, int32_t warp) {
    const int64_t place = static_cast<int64_t>(slot) * K::kConsumerWarps + warp;
    at = reinterpret_cast<char *>(p.workspace + workspace::kStates) + place * kWarpBytes + ptx::rereadLane() * 16;
  }

  // Goes to the next state of the same rows, in the slot that follows or of the next consumer.
  DEV void next() { at += kStepBytes; }

  DEV void store(const RowState<K> &rows, bool isWanted = true) const {
#pragma unroll
    for (int n = 0; n < K::kOutputTiles; ++n)
      storePiece(n, isWanted, rows.out[0][n][0], rows.out[0][n][1], rows.out[0][n][2], rows.out[0][n][3]);
    storePiece(K::kOutputTiles, isWanted, rows.rowMax[0][0], rows.rowMax[0][1], rows.sum[0][0], rows.sum[0][1]);
  }

  // Row maxima and sums of the lane's two rows.
  DEV void loadEnds(float (&ends)[4]) const { ptx::loadGlobal16(at + K::kOutputTiles * kStatePieceBytes, ends); }

  // rows += the state, whose row maxima are at most those of the rows, which are whole numbers.
  DEV void addTo(RowState<K> &rows) const {
    float ends[4], out[K::kOutputTiles][4];
    loadEnds(ends);
#pragma unroll
    for (int n = 0; n < K::kOutputTiles; ++n) // all on their way before the first is used
      ptx::loadGlobal16(at + n * kStatePieceBytes, out[n]);
    float weight[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      weight[half] = weightOfState(ends[half], rows.rowMax[0][half]);
      rows.sum[0][half] = fmaf(ends[2 + half], weight[half], rows.sum[0][half]);
    }
#pragma unroll
    for (int n = 0; n < K::kOutputTiles; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        rows.out[0][n][slot] = fmaf(out[n][slot], weight[slot / 2], rows.out[0][n][slot]);
  }

private:
  DEV void storePiece(int n, bool isWanted, float a, float b, float c, float d) const {
    ptx::storeGlobal16(at + n * kStatePieceBytes, isWanted, a, b, c, d);
  }

  char *at;
};

// The number of a warp among the consumers, and by its 16 rows, where all consumers have the same 64.
DEV int32_t consumerWarp() { return ptx::rereadThreadIndex() / 32; }
template <class K> DEV int32_t rowWarp() { return K::kSplitsLong ? consumerWarp() % 4 : consumerWarp(); }

// This warp's arrival at the splits of its rows. True for the last one, which sees what the others stored.
template <class K> DEV bool arrivesLast(const Sm90ForwardParams<K> &p, SplitRecord record) {
  ptx::fenceGlobal();
  __syncwarp();
  uint32_t *arrivals = p.workspace + workspace::kArrivals + record.slot() * kMaxConsumerWarps + rowWarp<K>();
  const uint32_t before = ptx::addGlobalIf(arrivals, 1, isLastLane());
  const bool isLast = uniform(isLastLane() & (static_cast<int32_t>(before) + 1 == record.splits() * K::kStatesOfSplit));
  ptx::fenceGlobal();
  return isLast;
}

// `count` states, one behind the other, as one. Their row maxima are looked at first, side by side, so that the states
// need not wait for each other afterwards.
template <class K> DEV void combineStates(RowState<K> &rows, const SplitState<K> &first, int32_t count) {
  constexpr int kAtOnce = kStatesAtOnce<K>;
  clearRows(rows);
  SplitState<K> state = first;
#pragma unroll 4
  for (int32_t i = 0; i < count; ++i, state.next()) {
    float ends[4];
    state.loadEnds(ends);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rows.rowMax[0][half] = fmaxf(rows.rowMax[0][half], ends[half]);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half)
    rows.rowMax[0][half] = ceilf(rows.rowMax[0][half]);
  state = first;
#pragma unroll kAtOnce
  for (int32_t i = 0; i < count; ++i, state.next())
    state.addTo(rows);
}

// After the tiles of a split: true if rows now hold all splits of the item's rows. Of splits that are all computed
// here, the first consumer adds what all left to what it has so far, which lies where a consumer before the first would
// leave it.
template <class K> DEV bool combineSplits(const ParamsOf<K> &p, SplitRecord record, RowState<K> &rows) {
  const bool isAlone = K::kSplitsLong && record.isAlone(), isFirst = K::kSplitsLong && uniform(consumerWarp() < 4);
  const int32_t slot = record.slot(), ownSlot = slot + (isAlone ? 1 : record.split());
  SplitState<K>(p, ownSlot, consumerWarp()).store(rows);
  bool joins = isFirst;
  if (isAlone)
    ptx::syncNamed(kCombineBarrier, K::kConsumerThreads);
  else
    joins = arrivesLast(p, record);
  const int32_t before = isAlone & record.split() > 0; // one state more
  const int32_t states = (isAlone ? 1 : record.splits()) * K::kStatesOfSplit + before;
  combineStates(rows, SplitState<K>(p, slot + isAlone, rowWarp<K>() - before * 4), joins ? states : 0);
  if (!isAlone)
    return joins;
  SplitState<K>(p, slot + 1, rowWarp<K>() - 4).store(rows, isFirst);
  ptx::syncNamed(kCombineBarrier, K::kConsumerThreads);
  return isFirst & record.isLast();
}

// Gives the splits of an item to whoever comes for them, this block among them, and keeps the first one; or all splits,
// if there are not slots enough. splits: of the row group of this lane. All lanes of the planning warp call together.
template <class K> DEV SplitRecord shareSplits(const Sm90ForwardParams<K> &p, int32_t number, int32_t splits) {
  const int32_t lane = ptx::rereadLane();
  int32_t before = 0, total = 0;
#pragma unroll
  for (int group = 0; group < K::kConsumers; ++group) {
    const int32_t theirs = __shfl_sync(kWholeWarp, splits, group);
    before += group < lane ? theirs : 0;
    total += theirs;
  }
  const int32_t first =
      __shfl_sync(kWholeWarp, ptx::addGlobalIf(p.workspace + workspace::kReserved, total, lane == 0), 0);
  const bool isAlone = first + total > kSplitSlots;
  const int32_t slot = first + before;
#pragma unroll 1
  for (int32_t split = 0; split < splits; ++split)
    if (slot + split < kSplitSlots)
      ptx::storeCoherent8(p.workspace + workspace::kEntries + 2 * (slot + split),
                          isAlone || slot + split == first ? kVoidEntry : number + 1,
                          SplitRecord::make(slot, lane, splits, split).bits);
  if (lane == 0)
    ptx::addGlobal(p.workspace + workspace::kTaken, isAlone ? max(kSplitSlots - first, 0) : 1);
  __syncwarp();
  const SplitRecord own = SplitRecord::make(isAlone ? kSplitSlots + kOwnSlots * blockIdx.x : first, 0, 1, 0);
  return isAlone ? own.alone().pending() : own.pending();
}

// A split of an item that another block, or this one, shares; no unit if there is none. A chunk of entries at a time,
// one for each lane, beginning where no other block does: blocks are done at about the same time, and what all of them
// want from one word they get one after the other. An entry is missed only if it is written behind the search, and
// whoever shares an item searches afterwards, so none is left over.
template <class K> DEV WorkUnit takeSplit(const Sm90ForwardParams<K> &p) {
  const int32_t lane = ptx::rereadLane();
  uint32_t count[2]; // reserved, taken
  ptx::loadCoherent8(p.workspace + workspace::kReserved, count);
  const int32_t slots = min(static_cast<int32_t>(count[0]), kSplitSlots);
  const int32_t chunks = static_cast<int32_t>(count[1]) < slots ? ceilDiv(slots, 32) : 0;
#pragma unroll 1
  for (int32_t tried = 0; tried < chunks; ++tried) {
    uint32_t *const at = p.workspace + workspace::kEntries + 2 * ((blockIdx.x + tried) % chunks * 32 + lane);
    uint32_t entry[2];
    ptx::loadCoherent8(at, entry);
    const uint32_t before = (1u << blockIdx.x / chunks % 32) - 1; // other lanes first in other blocks
    uint32_t open = __ballot_sync(kWholeWarp, entry[0] != 0 && entry[0] != kVoidEntry);
#pragma unroll 1
    while (open != 0) {
      const int32_t chosen = __ffs(open & ~before ? open & ~before : open) - 1;
      const bool isMine = lane == chosen && ptx::swapGlobal(at, entry[0], kVoidEntry) == entry[0];
      if (isMine)
        ptx::addGlobal(p.workspace + workspace::kTaken, 1);
      if (__any_sync(kWholeWarp, isMine))
        return WorkUnit{__shfl_sync(kWholeWarp, static_cast<int32_t>(entry[0]), chosen) - 1,
                        SplitRecord{__shfl_sync(kWholeWarp, entry[1], chosen)}};
      open &= ~(1u << chosen);
    }
  }
  return WorkUnit{kNoUnit, SplitRecord{0}};
}

} // namespace heddle
