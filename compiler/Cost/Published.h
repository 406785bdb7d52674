//===- Published.h - runs that others reported ------------------*- C++ -*-===//
// Owns the files of examples/cost/published, which the program carries: the planner is held against them.
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/Skeletons/Shared/EmbeddedSources.h"

namespace heddle {

/// By name: "megatron-1t.json".
const std::vector<EmbeddedFile> &publishedRuns();

} // namespace heddle
