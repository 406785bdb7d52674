// Owns the compilation of a plan's kernels, all processors at work, into an open store: what `heddle pack` ships.
#pragma once

#include "compiler/Plan/WorkPlan.h"
#include "runtime/Store/Store.h"

#include <functional>

namespace heddle {

struct PackOptions {
  int workers = 1; ///< threads that compile, at least one
  /// Called from any thread, one call at a time: kernels done, of all, the last of them. May be empty.
  std::function<void(size_t done, size_t total, const PackItem &last)> progress = {};
};

/// A kernel as it was filed; its code stays in the store.
struct PackedKernel {
  PackItem item;
  KernelRecord record; ///< cubin and ptx empty
  int64_t cubinBytes = 0, ptxBytes = 0;
};

/// Compiles the default kernel of every item and files it, with the names of the patterns, in the order of
/// WorkPlan::packItems. The first failure ends it and says which item; kernels may then be in the store already.
/// notFound: an unknown architecture; else as PatternFile::load and compileVariant.
Result<std::vector<PackedKernel>> packInto(Store &store, const WorkPlan &plan, const PackOptions &options);

} // namespace heddle
