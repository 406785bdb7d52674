//===- SessionSources.h - device files of sessions --------------*- C++ -*-===//
// The files themselves, embedded at build time: what a session compiles beside the kernels of patterns.
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/Skeletons/Shared/EmbeddedSources.h"

namespace heddle {

/// read_kernel.cuh.
const std::vector<EmbeddedFile> &sessionSources();

} // namespace heddle
