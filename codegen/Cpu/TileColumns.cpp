#include "codegen/Cpu/TileColumns.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heddle {

static bool areFinite(const float *values, int32_t count) {
  uint32_t largest = 0; // bits of magnitudes, which are ordered as these are; infinities and NaN behind all
  for (int32_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    largest = std::max(largest, bits & 0x7fffffffu);
  }
  return largest < 0x7f800000u;
}

void TileColumns::multiply(const TileMath &math, const float *b, float *c, int32_t count, int32_t lanes) {
  std::fill_n(c, int64_t(count) * lanes, 0.0f);
  math.addProduct({values.data(), dim, 1, b, c, count, dim, lanes});
}

void TileColumns::setAside(int32_t count) {
  rowsAside.clear();
  aside.clear();
  for (int32_t n = 0; n < count; ++n) {
    if (areFinite(row(n), dim))
      continue;
    rowsAside.push_back(n);
    for (float *value = row(n), *end = value + dim; value != end; ++value) {
      const bool isFinite = std::isfinite(*value);
      aside.push_back(isFinite ? 0.0f : *value);
      *value = isFinite ? *value : 0.0f;
    }
  }
}

void TileColumns::addWeighted(const TileMath &math, const float *weights, float *c, int32_t count, int32_t lanes) {
  setAside(count);
  math.addProduct({values.data(), 1, dim, weights, c, dim, count, lanes});
  for (size_t i = 0; i < rowsAside.size(); ++i) {
    const float *weight = weights + int64_t(rowsAside[i]) * lanes, *value = aside.data() + int64_t(i) * dim;
    for (int32_t lane = 0; lane < lanes; ++lane)
      for (int32_t d = 0; weight[lane] != 0 && d < dim; ++d)
        c[int64_t(d) * lanes + lane] += weight[lane] * value[d];
  }
}

} // namespace heddle
