// One tile of keys as it is loaded and used.
#pragma once

#include "Shared/integers.cuh"

namespace heddle {

// block_n keys: key i of the tile is row firstKey + i * keyRate(branch) of K and V.
struct KeyTile {
  int32_t firstKey; // negative: there is no tile
  int32_t branch;
  int32_t isMasked; // 1: some key is missing or some pair is not kept

  DEV bool exists() const { return firstKey >= 0; }
  // Keys are below this, whatever the lengths.
  static constexpr int32_t kBeyondAllKeys = 0x7fffffff;
  DEV static KeyTile none() { return KeyTile{-1, 0, 0}; }
};

} // namespace heddle
