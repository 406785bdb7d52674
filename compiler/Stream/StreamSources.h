//===- StreamSources.h - device sources of streamed calls -------*- C++ -*-===//
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/Skeletons/Shared/EmbeddedSources.h"

namespace heddle {

/// random_kernel.cuh and what it includes.
const std::vector<EmbeddedFile> &streamSources();

} // namespace heddle
