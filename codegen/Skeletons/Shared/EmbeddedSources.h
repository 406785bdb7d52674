// The device files of this folder, embedded at build time (cmake/HeddleEmbed.cmake) and handed to
// NVRTC in memory, so that a built program needs no source tree.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace heddle {

/// One file: its path relative to the folder, as `#include` spells it, and its exact bytes.
struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};

/// Every device file (*.cuh) below codegen/Skeletons, in ascending order of names. The texts live as long
/// as the program.
const std::vector<EmbeddedFile> &skeletonSources();

} // namespace heddle
