// The parts that units fall into, in kernels whose bits of a query depend on its sequence alone (kIsInvariant): by places of
// key tiles only, so that neither the batch, nor the length, nor the other queries of a call move their ends. Parts are short at
// first, so that a short sequence alone has all blocks at work, and longer from octave to octave, so that they stay few.
#pragma once

#include "Decode/decode_layout.cuh"
#include "Ptx/scalar.cuh"
#include "Shared/pattern_context.cuh"
#include "Shared/quads.cuh"

namespace heddle {

// Numbers of parts, and of tiles in the walk of a unit.
template <class K> struct PartPlaces {
  static constexpr int kTiles = K::kBlockN < decode::kPartKeys ? decode::kPartKeys / K::kBlockN : 1; // of a first part
  static constexpr int kFirst = decode::kFirstParts, kOfOctave = decode::kPartsOfOctave;
  static constexpr int kFirstBits = 7, kGrowthBits = 2; // what parts of the first octave have of first ones
  static_assert(kFirst == 1 << kFirstBits && kFirst / kOfOctave == 1 << kGrowthBits, "octaves are cut by shifts");

  DEV static int32_t partOf(int32_t tile) {
    const uint32_t place = static_cast<uint32_t>(tile) / kTiles;
    if (place < kFirst)
      return place;
    const int32_t octave = 31 - __clz(static_cast<int>(place)) - kFirstBits;
    return kFirst + octave * kOfOctave + ((place - (kFirst << octave)) >> (octave + kGrowthBits));
  }
  DEV static int32_t firstTile(int32_t part) {
    if (part < kFirst)
      return part * kTiles;
    const uint32_t behind = part - kFirst, octave = behind / kOfOctave, place = behind % kOfOctave;
    return ((kFirst << octave) + (place << (octave + kGrowthBits))) * kTiles;
  }
};

template <class K, bool IsInvariant = K::kIsInvariant> struct LineParts {
  int32_t visited, lastWork; // of each unit: its tiles, and the work of the last part, were it whole

  template <class OfLane> DEV static LineParts ofLane(const LineParts &own, const OfLane &of) {
    return {of(own.visited), of(own.lastWork)};
  }

  DEV void cut(bool areTall, int32_t unitWork) {
    using Places = PartPlaces<K>;
    constexpr uint32_t kTallWork = decode::tallWork(K::kWarps);
    const int32_t work = areTall ? kTallWork : 1;
    visited = static_cast<uint32_t>(unitWork) / work;
    const int32_t last = Places::partOf(visited - 1);
    lastWork = (Places::firstTile(last + 1) - Places::firstTile(last)) * work;
  }

  DEV int32_t step() const { return lastWork; }
  // The longest of the lines of a warp, all of whose lanes call.
  DEV int32_t stepOfWarp() const { return __reduce_max_sync(kWholeWarp, lastWork); }
};

template <class K> struct LineParts<K, false> {
  template <class OfLane> DEV static LineParts ofLane(const LineParts &, const OfLane &) { return {}; }
  DEV void cut(bool, int32_t) {}
  DEV static constexpr int32_t step() { return 1; }
  DEV static constexpr int32_t stepOfWarp() { return 1; }
};

} // namespace heddle
