// Owns the arithmetic on one tile. Tiles are stored with the queries along the contiguous axis
// (scores[key][query], output[dim][query]), so that no step needs a sum across a vector. Each loop is
// compiled for AVX-512, AVX2 and the baseline, and the processor chooses once.
#pragma once

#include <cstdint>

namespace heddle {

// The contiguous axis of every tile has a multiple of this many floats and starts at a multiple of
// 64 bytes.
inline constexpr int kTileLanes = 32;

// c[row][lane] += sum over i < depth of a[row * aRow + i * aDepth] * b[i][lane]; b and c have
// `lanes` floats a row, lanes a multiple of kTileLanes.
struct TileProduct {
  const float *a;
  int64_t aRow, aDepth;
  const float *b;
  float *c;
  int rows, depth, lanes;
};

// One step of the online softmax in base 2 over scores[keys][lanes], which become probabilities
// relative to the new row_max. `rescale` receives the factor for what was accumulated before.
// A row_max of -inf means that nothing was kept so far; the factor is then 0.
struct SoftmaxStep {
  float *scores;
  int keys, lanes;
  float *rowMax, *rowSum, *rescale;
};

// What lse in base 2 may be off for each unit of it: twice what a forward pass and the change of base round. A key whose
// score comes that close to lse has all the weight of its row, 1, however large the scores; others are as they come.
inline constexpr float kRoundingOfLse = 4 * 0x1p-24f;
inline float roundingOfLse(float lse) { return (lse < 0 ? -lse : lse) * kRoundingOfLse; }

// A tile of a backward pass: scores[columns][lanes] in base 2 become weights exp2(score - lse), at most 1, and
// products[columns][lanes] become weight * (product - delta) * slope, 0 where the weight is 0. An lse of +inf makes
// weights 0. lse and delta are of lanes, or of columns.
struct GradientStep {
  float *scores, *products;
  const float *slopes; // [columns][lanes]; null: all 1
  int columns, lanes;
  const float *lse, *delta;
  bool areOfColumns;
};

struct TileMath {
  const char *name; // "avx512", "avx2" or "baseline"
  void (*addProduct)(const TileProduct &product);
  void (*softmaxStep)(const SoftmaxStep &step);
  void (*gradientStep)(const GradientStep &step);
  // tile[row][lane] *= factor[lane]
  void (*scaleLanes)(float *tile, int rows, int lanes, const float *factor);
  // row[lane] = -inf where keep[lane] is 0
  void (*maskLanes)(float *row, int lanes, const uint8_t *keep);
};

// The fastest variant that this processor runs.
const TileMath &tileMath();
// Every variant that this processor runs, fastest first; for tests. `count` receives their number.
const TileMath *allTileMath(int &count);

} // namespace heddle
