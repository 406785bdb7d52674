//===- Published.h - runs that others reported ------------------*- C++ -*-===//
// Owns the files of examples/cost/published, which the program carries: the planner is held against them.
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/Skeletons/Shared/EmbeddedSources.h"

namespace heddle {

/// By name: "palm-540b.json", a plan as `heddle cost` takes it; or, of several runs, what they share, and in "runs" what each
/// has of its own, over it (RFC 7386).
const std::vector<EmbeddedFile> &publishedRuns();

} // namespace heddle
