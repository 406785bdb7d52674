// The portable cascade skeleton: portable_decode.cuh for sequences that share their first keys, which are read once for
// neighbours that share them. Three launches: what sequences share is found out (cascade_plan.cuh), units of groups and of
// sequences are dealt out and computed as those of decode, and rows of groups are joined from both (cascade_states.cuh).
//
// Traits: those of portable_decode.cuh, with kShares 1. Launches: heddle_cascade_plan, one block of 32 * kWarps threads,
// 256 B of dynamic shared memory and 16 for each thread; heddle_kernel as there; heddle_cascade_join, a warp for each row of a
// head that a group may have.
#pragma once

#include "Decode/cascade_plan.cuh"
#include "Decode/cascade_states.cuh"
#include "Decode/portable_decode.cuh"

namespace heddle {

template <class Traits, class P> struct PortableCascade : PortableDecode<Traits, P> {
  using Plan = CascadePlan<typename PortableCascade::K>;
  using Join = CascadeJoin<typename PortableCascade::K>;
};

} // namespace heddle
