//===- KernelShape.h - what is fixed beside the pattern -------*- C++ -*-===//
// Owns the head dims, types and architecture that a kernel is compiled for, and what its default may know of calls.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_SESSION_KERNELSHAPE_H
#define HEDDLE_COMPILER_SESSION_KERNELSHAPE_H

#include "runtime/Core/DType.h"
#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct GpuArch;
const GpuArch &baselineGpuArch();

// As findGpuArch and gpuArchNames (codegen/Target/FindArch.h): for the programs, whose files take seconds each to build
// and need not be built again when that header changes.
Result<const GpuArch *> archNamed(std::string_view name);
std::vector<std::string> archNames();

/// `arch` is never null.
struct KernelShape {
  const GpuArch *arch = &baselineGpuArch();
  DType dtype = DType::bf16;
  bool outFloat32 = false;
  int64_t headDim = 64;
  int64_t valueDim = 64;
  int64_t queries = 0;          ///< of the calls that a default is chosen for; 0: any number
  std::string kind = "forward"; ///< KindSpec::name

  /// As GpuArch spells it.
  std::string archName() const;
};

} // namespace heddle

#endif
