// Which keys of a tile the columns of its scores are: where lanes find theirs, and which bit of a word of kept columns
// stands for which score. A lane holds columns 8 n + 2 c and the next of score tile n, c = lane % 4.
#pragma once

#include "Shared/lane_columns.cuh"

namespace heddle {

// Columns are keys in their order.
struct KeysInOrder {
  using Bits = LaneColumns;
  static constexpr int kLaneKeys = 2; // of neighbouring lanes, from first to first
  // Number of a key behind the lane's first one, which is `first`: element e of score tile n.
  DEV static int32_t keyAt(int32_t first, int n, int e) { return first + n * 8 + e; }
  static constexpr int tileOfBit(int bit) { return bit / 2; }
  static constexpr int elementOfBit(int bit) { return bit % 2; }
  DEV static int bitOf(int n, int e) { return n * 2 + e; }
  // Score tiles of a run of keys as long as RunTiles tiles.
  template <int RunTiles> static constexpr int tileOfRun(int run, int i) { return run * RunTiles + i; }
  template <int RunTiles> static constexpr int runOf(int n) { return n / RunTiles; }
};

// The even keys of the tile are in the first half of the columns, the odd ones in the second: of 16 keys a lane then has
// 4 c to 4 c + 3, which are what an operand of bytes wants of them. Bit 4 w + i stands for the lane's key 16 w + i.
template <int Tiles> struct EvenKeysFirst {
  static constexpr int kHalf = Tiles / 2, kLaneKeys = 4;
  struct Bits {
    DEV static uint32_t below(uint32_t limit) { return ptx::lowestBits((limit >> 4) * 4 + min(limit & 15u, 4u)); }
  };
  DEV static int32_t keyAt(int32_t first, int n, int e) { return first + n % kHalf * 16 + 2 * e + n / kHalf; }
  static constexpr int tileOfBit(int bit) { return bit / 4 + bit % 2 * kHalf; }
  static constexpr int elementOfBit(int bit) { return bit / 2 % 2; }
  DEV static int bitOf(int n, int e) { return n % kHalf * 4 + 2 * e + n / kHalf; }
  template <int RunTiles> static constexpr int tileOfRun(int run, int i) {
    static_assert(RunTiles % 2 == 0, "runs are of whole 16 keys");
    return run * (RunTiles / 2) + i % (RunTiles / 2) + i / (RunTiles / 2) * kHalf;
  }
  template <int RunTiles> static constexpr int runOf(int n) { return n % kHalf / (RunTiles / 2); }
};

} // namespace heddle
