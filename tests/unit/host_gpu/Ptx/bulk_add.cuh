// On the host: an addition of four floats.
#pragma once

namespace heddle {
namespace ptx {

inline void addGlobal16(float *to, bool isPresent, float a, float b, float c, float d) {
  const float values[] = {a, b, c, d};
  for (int i = 0; i < 4 && isPresent; ++i)
    to[i] += values[i];
}

} // namespace ptx
} // namespace heddle
