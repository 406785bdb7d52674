// The parts that units fall into, in kernels whose bits of a sequence do not depend on the batch (kIsInvariant): as many as
// there would be blocks for each unit, were the sequence alone. So they follow from the sequence and the grid, and a sequence
// alone is dealt out as by other kernels, where nothing here adds anything.
#pragma once

#include "Decode/decode_layout.cuh"
#include "Ptx/scalar.cuh"
#include "Shared/pattern_context.cuh"
#include "Shared/quads.cuh"

namespace heddle {

template <class K, bool IsInvariant = K::kIsInvariant> struct LineParts {
  int32_t parts, partWork; // of each unit: how many, and the work of one but the last

  template <class OfLane> DEV static LineParts ofLane(const LineParts &own, const OfLane &of) {
    return {of(own.parts), of(own.partWork)};
  }

  // `units`: of the sequence, each of `unitWork`.
  DEV void cut(int32_t units, bool areTall, int32_t unitWork) {
    constexpr uint32_t kTallWork = decode::tallWork(K::kWarps), kPieceTiles = K::kPieceTiles;
    const uint32_t step = areTall ? kTallWork : 1, all = unitWork;
    const uint32_t grid = ptx::rereadGridSize(), blocks = max(grid / max(units, 1), 1u);
    const uint32_t least = max(kPieceTiles * step, min(decode::kShortPart * step, shareOf(all, decode::kManyParts)));
    uint32_t work = max(shareOf(all, blocks), least);
    if (blocks < decode::kFewParts)
      work = min(work, max(shareOf(all, decode::kFewParts), decode::kLongPart * step));
    partWork = areTall ? shareOf(work, kTallWork) * kTallWork : work;
    parts = shareOf(all, partWork);
  }

  // What blocks get of a sequence alone: one part each; 0 where there are more parts than blocks.
  DEV int32_t quotaAlone(int32_t units) const {
    return static_cast<int64_t>(units) * parts <= ptx::rereadGridSize() ? partWork : 0;
  }
  DEV int32_t wholeParts() const { return parts * partWork; }

  DEV int32_t step() const { return partWork; }
  // The longest of the lines of a warp, all of whose lanes call.
  DEV int32_t stepOfWarp() const { return __reduce_max_sync(kWholeWarp, partWork); }

private:
  DEV static uint32_t shareOf(uint32_t all, uint32_t count) { return (all + count - 1) / count; }
};

template <class K> struct LineParts<K, false> {
  template <class OfLane> DEV static LineParts ofLane(const LineParts &, const OfLane &) { return {}; }
  DEV void cut(int32_t, bool, int32_t) {}
  DEV static constexpr int32_t quotaAlone(int32_t) { return 0; }
  DEV static constexpr int32_t wholeParts() { return 0; }
  DEV static constexpr int32_t step() { return 1; }
  DEV static constexpr int32_t stepOfWarp() { return 1; }
};

} // namespace heddle
