// What weights and their derivatives need of each row, in the order in which query tiles take it, so that one copy
// brings a tile's: arrays of lse in log2 units and of delta. In an array all rows come once for each set, which is a
// distinct rate of queries, or of deltas of gradient(detached) a branch; in a set by head, tile of kBlockM rows and
// residue class.
// Behind the last row of a class lse is infinite, so that weights are zero. Everywhere else it is not above what it
// would be without rounding: at scores of 10^5 fp32 has steps of 2^-7, a weight would be off by as much, and by any
// factor at higher ones. So a key that has all the weight gets 2^(s - lse) of 1 or more, and weights are cut at 1.
// Traits: kBlockM, kQueryRates, kQueryRateCount.
#pragma once

#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"
#include "Shared/pattern_context.cuh"
#include "Shared/quads.cuh"

namespace heddle {

// The weight of a score by its distance from lse.
DEV float weightOf(float distance) { return ptx::smallerOf(ptx::exp2Approx(distance), 1.f); }

// Roundings of a smaller lse, and of scores up to it, make no weight pass 1 by more than its own rounding takes away.
constexpr float kLeastLseThatCuts = 256.f;

// Whether weights of a tile may pass 1, given its lse in shared memory. All lanes of the warp take part.
template <class K> DEV bool mayPassOne(uint32_t lse) {
  constexpr int kLanes =
      K::kBlockM < 32 ? K::kBlockM : 32; // with rows of their own; of a smaller tile several look at one
  bool mayPass = false;
#pragma unroll
  for (int row = 0; row < K::kBlockM; row += kLanes)
    mayPass |= fabsf(__int_as_float(ptx::loadShared4(lse + (row + threadIdx.x % kLanes) * 4))) > kLeastLseThatCuts;
  return __any_sync(kWholeWarp, mayPass);
}

template <class K> DEV int32_t tilesOfClass(int32_t rows, int32_t rate) {
  return ceilDiv(ceilDiv(rows, rate), K::kBlockM);
}

// The tiles of all classes of the rate that has most.
template <class K, int Slot = 0> DEV int32_t tilesOfHead(int32_t rows) {
  constexpr int32_t kRate = K::kQueryRates[Slot];
  const int32_t tiles = kRate * tilesOfClass<K>(rows, kRate);
  if constexpr (Slot + 1 == K::kQueryRateCount)
    return tiles;
  else
    return max(tiles, tilesOfHead<K, Slot + 1>(rows));
}

// A tile of a class: row i of it is row residue + rate * (number * kBlockM + i) of the head.
struct ClassTile {
  int32_t rate, residue, number;
};

// The tile that begins with a row.
template <class K> DEV ClassTile classTile(int32_t firstRow, int32_t rate) {
  const int32_t number = firstRow / rate;
  return ClassTile{rate, firstRow - number * rate, number / K::kBlockM};
}

// Number of a tile in an array of `heads` heads of all batches.
template <class K>
DEV int32_t statisticsTile(int32_t heads, int32_t set, int32_t head, int32_t rows, const ClassTile &tile) {
  const int32_t first = (set * heads + head) * tilesOfHead<K>(rows);
  return first + tile.number * tile.rate + tile.residue;
}

// Where the first row of a tile lies, in floats.
template <class K>
DEV int64_t statisticsPlace(int32_t heads, int32_t set, int32_t head, int32_t rows, const ClassTile &tile) {
  return static_cast<int64_t>(statisticsTile<K>(heads, set, head, rows, tile)) * K::kBlockM;
}

// What a row of a head has in the tiles of every rate.
template <class K, int Slot = 0, class Write>
DEV void forEachPlace(int32_t heads, int32_t head, int32_t rows, int32_t row, const Write &write) {
  constexpr int32_t kRate = K::kQueryRates[Slot];
  const int32_t number = row / kRate, tile = number / K::kBlockM;
  if (tile < tilesOfClass<K>(rows, kRate))
    write(statisticsPlace<K>(heads, Slot, head, rows, {kRate, row % kRate, tile}) + number % K::kBlockM);
  if constexpr (Slot + 1 < K::kQueryRateCount)
    forEachPlace<K, Slot + 1>(heads, head, rows, row, write);
}

} // namespace heddle
