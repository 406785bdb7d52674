// Owns the call and the architecture that a kernel is compiled for, and what its default may know of calls.
#pragma once

#include "codegen/Target/FindArch.h"
#include "runtime/Core/CallShape.h"

#include <string>

namespace heddle {

/// `arch` is never null.
struct KernelShape : CallShape {
  const GpuArch *arch = &baselineGpuArch();
  int64_t queryRows = 0; ///< of a head (QueryRows.h), in the calls that a default is chosen for; 0: any number

  /// As GpuArch spells it.
  std::string archName() const { return heddle::archName(*arch); }
};

} // namespace heddle
