// Owns one tile of them, as [count][dim], and keeps numbers that are not finite from lanes that do not keep their row:
// those have the weight 0 for it, and 0 times infinity is no number.
#pragma once

#include "codegen/Cpu/LaneBuffer.h"
#include "codegen/Cpu/TileMath.h"

namespace heddle {

class TileColumns {
public:
  TileColumns(int32_t most, int32_t dim) : dim(dim) { values.resize(int64_t(most) * dim); }

  float *row(int32_t n) { return values.data() + int64_t(n) * dim; }
  /// c[n][lane] = sum over the dim of rows[n] * b[dim][lane], n < count.
  void multiply(const TileMath &math, const float *b, float *c, int32_t count, int32_t lanes);
  /// c[dim][lane] += sum over n < count of rows[n] * weights[n][lane]; a weight of 0 adds nothing.
  void addWeighted(const TileMath &math, const float *weights, float *c, int32_t count, int32_t lanes);

private:
  void setAside(int32_t count);

  LaneBuffer values;
  int32_t dim;
  std::vector<int32_t> rowsAside; // those with numbers that are not finite, which are zeros in `values` meanwhile
  std::vector<float> aside;       // [rowsAside][dim], zeros for the finite ones
};

} // namespace heddle
