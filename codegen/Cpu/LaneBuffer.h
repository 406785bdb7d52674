#pragma once

#include <cstdint>
#include <vector>

namespace heddle {

// Floats with the alignment of a cache line, as TileMath wants them.
class LaneBuffer {
public:
  void resize(int64_t floats) { lines.resize((floats + 15) / 16); }
  float *data() { return lines.front().values; }

private:
  struct alignas(64) Line {
    float values[16];
  };
  std::vector<Line> lines;
};

} // namespace heddle
