//===- Publish.h - kernels into the store -----------------------*- C++ -*-===//
// Owns how a compiled kernel that nobody tuned is filed: as the default for its architecture, and its pattern's name.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_DRIVER_PUBLISH_H
#define HEDDLE_COMPILER_DRIVER_PUBLISH_H

#include "compiler/Driver/CompileSession.h"
#include "runtime/Store/Store.h"

namespace heddle {

/// Files the kernel as the untuned default of every GPU that runs it; a tuned winner is never replaced.
Status publishDefault(Store &store, const KernelRecord &record);

/// Leads from `name` to the pattern.
Status publishName(Store &store, const PreparedPattern &prepared, const std::string &name);

} // namespace heddle

#endif
