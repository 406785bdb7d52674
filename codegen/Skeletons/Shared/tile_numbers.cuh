// Numbers of tiles. Read alike by NVRTC and by the host's compiler.
#pragma once

#include "Shared/integers.cuh"

namespace heddle {

constexpr int32_t kNoTile = 0x7fffffff; // where a range begins behind the last one

} // namespace heddle
