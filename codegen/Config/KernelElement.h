//===- KernelElement.h - what kernels need to know of an element -----------------------------===//
//
// One row for each type that q, k and v may have in kernels. The device side of a row is the struct `deviceName` of
// Skeletons/Shared/elements.cuh, which holds its instructions; numbers reach it as constants of KernelTraits.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Core/DType.h"

#include <cstdint>

namespace heddle {

struct KernelElement {
  DType dtype;
  int64_t bytes;
  int64_t mmaStep;         ///< elements along which one mma sums
  DType accumulator;       ///< of an mma
  int64_t largestExponent; ///< 2^n is finite
  const char *deviceName;

  /// Null: no kernel computes with it.
  static const KernelElement *find(DType dtype) {
    static constexpr KernelElement kTypes[] = {
        {DType::bf16, 2, 16, DType::fp32, 127, "Bf16"},
        {DType::fp16, 2, 16, DType::fp32, 15, "Fp16"},
    };
    for (const KernelElement &type : kTypes)
      if (type.dtype == dtype)
        return &type;
    return nullptr;
  }
};

} // namespace heddle
