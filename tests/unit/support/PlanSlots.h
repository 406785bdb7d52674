// A launch plan against the parameter block as the host compiler lays it out.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_PLANSLOTS_H
#define HEDDLE_TESTS_UNIT_SUPPORT_PLANSLOTS_H

#include "runtime/Core/LaunchPlan.h"

#include <cstddef>
#include <doctest/doctest.h>
#include <map>
#include <string>

namespace heddle::test {

/// Of pointers, numbers and the scale, by what fills them; tensor maps are left out.
inline std::map<std::string, int64_t> slotOffsets(const KernelLaunch &launch) {
  std::map<std::string, int64_t> offsets;
  for (const SlotSpec &slot : launch.slots) {
    if (slot.kind == SlotSpec::Kind::tensorMap)
      continue;
    const bool isPointer = slot.kind == SlotSpec::Kind::ptr, isScale = slot.kind == SlotSpec::Kind::f32;
    offsets[isPointer ? slot.pointer.str() : isScale ? "scale_log2" : slot.expr.str()] = slot.offset;
  }
  return offsets;
}

inline std::map<std::string, int64_t> slotOffsets(const LaunchPlan &plan) { return slotOffsets(plan.launches.front()); }

/// Fields of `Params`, which holds them under the usual names, that the parameter block of every forward kernel has.
template <class Params> std::map<std::string, size_t> commonOffsets() {
  return {
      {"out", offsetof(Params, out)},
      {"lse", offsetof(Params, lse)},
      {"carry_out", offsetof(Params, carryOut)},
      {"carry_lse", offsetof(Params, carryLse)},
      {"out_stride_batch", offsetof(Params, outStride)},
      {"batch", offsetof(Params, batch)},
      {"heads", offsetof(Params, heads)},
      {"kv_heads", offsetof(Params, kvHeads)},
      {"seqlen_q", offsetof(Params, seqlenQ)},
      {"seqlen_k", offsetof(Params, seqlenK)},
      {"q_origin", offsetof(Params, qOrigin)},
      {"k_origin", offsetof(Params, kOrigin)},
      {"scale_log2", offsetof(Params, scaleLog2)},
      {"param0", offsetof(Params, param)},
      {"param1", offsetof(Params, param) + 4},
  };
}

inline void checkOffsets(std::map<std::string, int64_t> offsets, const std::map<std::string, size_t> &expected) {
  for (const auto &field : expected) {
    CAPTURE(field.first);
    REQUIRE(offsets.count(field.first) == 1);
    CHECK(offsets[field.first] == int64_t(field.second));
  }
}

} // namespace heddle::test

#endif
