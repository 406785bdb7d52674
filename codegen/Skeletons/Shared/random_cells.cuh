// The lists of attn.random: cell q names pi_t(q), t < min(count, extent), with permutations pi_t of [0, extent) that
// follow from (seed, head, t). docs/language.md states them bit by bit, dialect/Geometry/RandomCells is the host's text
// of the same; change all of them together, or none. Needs the warp's wrappers (Ptx/warp.cuh) before it.
#pragma once

#include "Shared/cell_bits.cuh"

namespace heddle {

class KeyedPermutations {
public:
  // head: 0 for permutations that all heads share, else 1 + the head. extent >= 1.
  DEV KeyedPermutations(int32_t seed, int32_t head, int32_t extent)
      : key(mixed(static_cast<uint32_t>(seed) + kStep * static_cast<uint32_t>(head))), extent(extent),
        bits(max(32 - __clz(extent - 1), 2)) {}

  // The image of a cell in [0, extent) under permutation number `index`.
  DEV int32_t image(int32_t cell, int32_t index) const {
    const uint32_t permutation = mixed(key + kStep * static_cast<uint32_t>(index));
    do
      cell = encrypted(cell, permutation);
    while (cell >= extent);
    return cell;
  }

protected:
  static constexpr uint32_t kStep = 0x9e3779b9, kFirst = 0x6a09e667, kSecond = 0xbb67ae85;
  static constexpr int kRounds = 6;

  DEV static uint32_t mixed(uint32_t word) {
    word = (word ^ word >> 16) * kFirst;
    word = (word ^ word >> 15) * kSecond;
    return word ^ word >> 16;
  }

  DEV static uint32_t round(uint32_t half, uint32_t key) {
    const uint32_t word = (half ^ key) * kFirst;
    return (word ^ word >> 15) * kSecond >> 16;
  }

  DEV int32_t encrypted(int32_t cell, uint32_t permutation) const {
    asm volatile("" : "+r"(permutation)); // else the keys of all rounds are kept in registers
    const int32_t lowBits = (bits + 1) / 2;
    const uint32_t lowMask = (1u << lowBits) - 1, highMask = (1u << bits / 2) - 1;
    uint32_t low = static_cast<uint32_t>(cell) & lowMask, high = static_cast<uint32_t>(cell) >> lowBits;
#pragma unroll
    for (int number = 0; number < kRounds; number += 2) {
      low ^= round(high, permutation + number * kStep) & lowMask;
      high ^= round(low, permutation + (number + 1) * kStep) & highMask;
    }
    return static_cast<int32_t>(high << lowBits | low);
  }

  uint32_t key;
  int32_t extent, bits;
};

// What generated functions call (dialect/IR/ListCalls.h); the names are theirs.

DEV int32_t random_cells_length(int32_t count, int32_t, int32_t, int32_t extent, int32_t row) {
  return row >= 0 && row < extent ? min(count, extent) : 0;
}

DEV int32_t random_cells_entry(int32_t, int32_t seed, int32_t head, int32_t extent, int32_t row, int32_t index) {
  return KeyedPermutations(seed, head, extent).image(row, index);
}

DEV bool random_cells_has(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row, int32_t cell) {
  const KeyedPermutations permutations(seed, head, extent);
  const int32_t length = random_cells_length(count, seed, head, extent, row);
  bool isListed = false;
#pragma unroll 1
  for (int32_t index = 0; index < length; ++index)
    isListed |= permutations.image(row, index) == cell;
  return isListed;
}

// The list of one row. Count, seed and head are the same in all lanes.
struct RandomList {
  int32_t count, seed, head, extent, row;

  DEV ListKey key() const { return ListKey{row, {extent, count, seed, head, 0}}; }
  DEV int32_t length() const { return random_cells_length(count, seed, head, extent, row); }
  DEV int32_t cell(int32_t index) const { return KeyedPermutations(seed, head, extent).image(row, index); }
  DEV RandomList ofLane(int32_t lane) const {
    return RandomList{count, seed, head, ptx::valueOfLane(extent, lane), ptx::valueOfLane(row, lane)};
  }
};

// What a warp notes of lists: generated functions say nothing of it, so it is that of the source.
using NotedCells = CellBits<KernelTraits>;

// Each lane in its share of the permutations.
template <class List> DEV int32_t searchRandomCells(const List &list, int32_t from) {
  const int32_t length = list.length();
  int32_t nearest = kNoListedCell;
#pragma unroll 1
  for (int32_t first = 0; first < length; first += ptx::kWarpLanes) {
    const int32_t index = first + ptx::laneOfWarp(), cell = list.cell(index);
    nearest = index < length && cell >= from ? min(nearest, cell) : nearest;
  }
  return ptx::smallestOfWarp(nearest);
}

// The next cell of each lane's list at or after its `from`.
template <class List> DEV int32_t nextRandomCell(const List &mine, int32_t from) {
  if constexpr (NotedCells::kHasMemory)
    return NotedCells::next(mine, from);
  return answerInTurn(mine, from, [](const List &list, int32_t first) { return searchRandomCells(list, first); });
}

DEV int32_t random_cells_next(int32_t count, int32_t seed, int32_t head, int32_t extent, int32_t row, int32_t from) {
  return nextRandomCell(RandomList{count, seed, head, extent, row}, from);
}

} // namespace heddle
