// Softmax runs in base 2: from natural units to log2 units, and back.
#pragma once

namespace heddle {

constexpr float kLogOf2 = 0.693147180559945309f;
constexpr float kLog2OfE = 1.44269504088896341f;

} // namespace heddle
