// Owns the bound of a tile of keys that kernels and memory over ranks share: a kernel that looks at a key which some row keeps
// looks at no other one that is further away. Windows of plans (dialect/Geometry/GroupBlanks.h) hold numbers as far as that, so
// a skeleton with larger tiles must not be.
#pragma once

#include <cstdint>

namespace heddle {

inline constexpr int64_t kMostKeysOfTile = 1024;

} // namespace heddle
