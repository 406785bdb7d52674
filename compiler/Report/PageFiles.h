//===- PageFiles.h - the parts of a page inside the program -----*- C++ -*-===//
// The files of Page/ and the chart library as the distribution ships it, embedded at build time
// (cmake/HeddleEmbed.cmake).
//===----------------------------------------------------------------------===//
#pragma once

#include "codegen/Skeletons/Shared/EmbeddedSources.h"

namespace heddle {

const std::vector<EmbeddedFile> &reportPageFiles();
const std::vector<EmbeddedFile> &reportChartFiles();

} // namespace heddle
