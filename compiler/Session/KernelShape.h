//===- KernelShape.h - what is fixed beside the pattern -------*- C++ -*-===//
// Owns the head dims, types and architecture that a kernel is compiled for, and what its default may know of calls.
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/Target/FindArch.h"
#include "runtime/Core/DType.h"

#include <string>
#include <vector>

namespace heddle {

/// `arch` is never null.
struct KernelShape {
  const GpuArch *arch = &baselineGpuArch();
  DType dtype = kDefaultDType;
  bool outFloat32 = false;
  int64_t headDim = 64;
  int64_t valueDim = 64;
  int64_t queries = 0;          ///< of the calls that a default is chosen for; 0: any number
  std::string kind = "forward"; ///< KindSpec::name
  /// arguments of the pattern whose gradients a backward kernel writes too, ascending
  std::vector<int64_t> gradientsOf = {};

  /// As GpuArch spells it.
  std::string archName() const { return heddle::archName(*arch); }
};

} // namespace heddle
