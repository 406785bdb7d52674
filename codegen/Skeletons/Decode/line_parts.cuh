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
  int32_t parts, partWork; // of each unit: how many, and the work of one

  template <class OfLane> DEV static LineParts ofLane(const LineParts &own, const OfLane &of) {
    return {of(own.parts), of(own.partWork)};
  }

  // `units`: of the sequence. What a unit counts is raised to whole parts.
  DEV void cut(int32_t units, bool areTall, int32_t &unitWork) {
    constexpr uint32_t kTeam = decode::kFanIn, kLeast = K::kPieceTiles;
    const uint32_t step = areTall ? decode::tallWork(K::kWarps) : 1, all = unitWork;
    const uint32_t grid = ptx::rereadGridSize(), blocks = max(grid / max(units, 1), 1u);
    uint32_t work = max(shareOf(all, blocks), kLeast);
    if (blocks < kTeam) // parts that a batch can be dealt out by
      work = min(work, max(shareOf(all, kTeam), decode::kLongPart * step));
    partWork = shareOf(work, step) * step;
    parts = shareOf(all, partWork);
    unitWork = parts * partWork;
  }

  DEV int32_t step() const { return partWork; }
  // The longest of the lines of a warp, all of whose lanes call.
  DEV int32_t stepOfWarp() const { return __reduce_max_sync(kWholeWarp, partWork); }

private:
  DEV static uint32_t shareOf(uint32_t all, uint32_t count) { return (all + count - 1) / count; }
};

template <class K> struct LineParts<K, false> {
  template <class OfLane> DEV static LineParts ofLane(const LineParts &, const OfLane &) { return {}; }
  DEV void cut(int32_t, bool, int32_t &) {}
  DEV static constexpr int32_t step() { return 1; }
  DEV static constexpr int32_t stepOfWarp() { return 1; }
};

} // namespace heddle
