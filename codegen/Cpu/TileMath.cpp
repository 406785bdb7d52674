// One template per loop over the vector type. The three entry sets differ only in their target
// attribute, so that the library needs no processor flags and runs anywhere.
#include "codegen/Cpu/TileMath.h"
#include <cmath>

#if defined(__x86_64__)
#define HEDDLE_X86 1
#else
#define HEDDLE_X86 0
#endif

#define HEDDLE_INLINE inline __attribute__((always_inline))

namespace heddle {
namespace {

// A vector of `bytes` as floats and as integers of the same width.
template <int bytes> struct Lanes {
  typedef float Floats __attribute__((vector_size(bytes), may_alias));
  typedef int32_t Ints __attribute__((vector_size(bytes), may_alias));
  static constexpr int count = bytes / 4;
};

// c[rows][vectors] += a * b for a block that fits the registers.
template <class L, int rows, int vectors> HEDDLE_INLINE void addBlock(const TileProduct &p, int row, int lane) {
  using Floats = typename L::Floats;
  const float *a = p.a + row * p.aRow;
  float *c = p.c + int64_t(row) * p.lanes + lane;
  Floats sum[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = *reinterpret_cast<const Floats *>(c + int64_t(r) * p.lanes + v * L::count);
  for (int i = 0; i < p.depth; ++i) {
    const float *b = p.b + int64_t(i) * p.lanes + lane;
    Floats factor[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      factor[v] = *reinterpret_cast<const Floats *>(b + v * L::count);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      float scalar = a[r * p.aRow + i * p.aDepth];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        sum[r][v] += scalar * factor[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      *reinterpret_cast<Floats *>(c + int64_t(r) * p.lanes + v * L::count) = sum[r][v];
}

template <class L, int rows, int vectors> HEDDLE_INLINE void addProductLoop(const TileProduct &p) {
  for (int lane = 0; lane < p.lanes; lane += vectors * L::count) {
    int row = 0;
    for (; row + rows <= p.rows; row += rows)
      addBlock<L, rows, vectors>(p, row, lane);
    for (; row < p.rows; ++row)
      addBlock<L, 1, vectors>(p, row, lane);
  }
}

// 2^x for x <= 0, relative error below 3e-7; 0 for x < -126, NaN for NaN. Splits x into an integer,
// which becomes an exponent, and a rest in [-1/2, 1/2], whose power is the Taylor polynomial of
// degree 7.
template <class L> HEDDLE_INLINE typename L::Floats exp2OfNegative(const typename L::Floats &x) {
  using Floats = typename L::Floats;
  using Ints = typename L::Ints;
  constexpr float toInteger = 0x1.8p23f; // a sum with it has its units in the last place
  Floats clamped = x < -126.0f ? Floats{} - 126.0f : x;
  Floats shifted = clamped + toInteger;
  Floats rest = clamped - (shifted - toInteger);
  Floats power = rest * 1.5252734e-5f + 1.5403530e-4f;
  power = power * rest + 1.3333558e-3f;
  power = power * rest + 9.6181291e-3f;
  power = power * rest + 5.5504109e-2f;
  power = power * rest + 2.4022651e-1f;
  power = power * rest + 6.9314718e-1f;
  power = power * rest + 1.0f;
  Floats scaled = power * (Floats)(((Ints)shifted + 127) << 23);
  return x < -126.0f ? Floats{} : scaled;
}

template <class L> HEDDLE_INLINE void softmaxStepLoop(const SoftmaxStep &s) {
  using Floats = typename L::Floats;
  for (int lane = 0; lane < s.lanes; lane += L::count) {
    Floats &rowMax = *reinterpret_cast<Floats *>(s.rowMax + lane);
    Floats &rowSum = *reinterpret_cast<Floats *>(s.rowSum + lane);
    Floats newMax = rowMax;
    for (int key = 0; key < s.keys; ++key) {
      Floats score = *reinterpret_cast<const Floats *>(s.scores + int64_t(key) * s.lanes + lane);
      newMax = score > newMax ? score : newMax;
    }
    Floats reference = newMax == -INFINITY ? Floats{} : newMax;
    Floats rescale = exp2OfNegative<L>(rowMax - reference);
    Floats sum = {};
    for (int key = 0; key < s.keys; ++key) {
      Floats &score = *reinterpret_cast<Floats *>(s.scores + int64_t(key) * s.lanes + lane);
      score = exp2OfNegative<L>(score - reference);
      sum += score;
    }
    rowMax = newMax;
    rowSum = rowSum * rescale + sum;
    *reinterpret_cast<Floats *>(s.rescale + lane) = rescale;
  }
}

template <class L> HEDDLE_INLINE void gradientStepLoop(const GradientStep &s) {
  using Floats = typename L::Floats;
  for (int column = 0; column < s.columns; ++column)
    for (int lane = 0; lane < s.lanes; lane += L::count) {
      const int64_t place = int64_t(column) * s.lanes + lane;
      auto ofRow = [&](const float *numbers) -> Floats {
        return s.areOfColumns ? Floats{} + numbers[column] : *reinterpret_cast<const Floats *>(numbers + lane);
      };
      Floats &score = *reinterpret_cast<Floats *>(s.scores + place);
      Floats &product = *reinterpret_cast<Floats *>(s.products + place);
      const Floats lse = ofRow(s.lse), rounding = (lse < 0.0f ? -lse : lse) * kRoundingOfLse;
      const Floats distance = score == -INFINITY ? score : score - lse; // also where lse is NaN
      const Floats weight = exp2OfNegative<L>(distance > -rounding ? Floats{} : distance);
      const Floats slope = s.slopes ? *reinterpret_cast<const Floats *>(s.slopes + place) : Floats{} + 1.0f;
      score = weight;
      product = weight == 0.0f ? Floats{} : weight * (product - ofRow(s.delta)) * slope;
    }
}

template <class L> HEDDLE_INLINE void scaleLanesLoop(float *tile, int rows, int lanes, const float *factor) {
  using Floats = typename L::Floats;
  for (int row = 0; row < rows; ++row, tile += lanes)
    for (int lane = 0; lane < lanes; lane += L::count)
      *reinterpret_cast<Floats *>(tile + lane) *= *reinterpret_cast<const Floats *>(factor + lane);
}

HEDDLE_INLINE void maskLanesLoop(float *row, int lanes, const uint8_t *keep) {
  for (int lane = 0; lane < lanes; ++lane)
    row[lane] = keep[lane] ? row[lane] : -INFINITY;
}

// The entry set `name` for vectors of `bytes`, with blocks of rows x vectors in registers.
#define HEDDLE_TILE_MATH(name, bytes, rows, vectors, target)                                                           \
  target void addProduct_##name(const TileProduct &p) { addProductLoop<Lanes<bytes>, rows, vectors>(p); }              \
  target void softmaxStep_##name(const SoftmaxStep &s) { softmaxStepLoop<Lanes<bytes>>(s); }                           \
  target void gradientStep_##name(const GradientStep &s) { gradientStepLoop<Lanes<bytes>>(s); }                        \
  target void scaleLanes_##name(float *tile, int rowCount, int lanes, const float *factor) {                           \
    scaleLanesLoop<Lanes<bytes>>(tile, rowCount, lanes, factor);                                                       \
  }                                                                                                                    \
  target void maskLanes_##name(float *row, int lanes, const uint8_t *keep) { maskLanesLoop(row, lanes, keep); }        \
  constexpr TileMath math_##name = {                                                                                   \
      #name, addProduct_##name, softmaxStep_##name, gradientStep_##name, scaleLanes_##name, maskLanes_##name};

#if HEDDLE_X86
HEDDLE_TILE_MATH(avx512, 64, 8, 2, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma"))))
HEDDLE_TILE_MATH(avx2, 32, 6, 2, __attribute__((target("avx2,fma"))))
#endif
HEDDLE_TILE_MATH(baseline, 16, 4, 2, )

struct Choice {
  TileMath variants[3];
  int count = 0;

  Choice() {
#if HEDDLE_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
      variants[count++] = math_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      variants[count++] = math_avx2;
#endif
    variants[count++] = math_baseline;
  }
};

const Choice &choice() {
  static const Choice chosen;
  return chosen;
}

} // namespace

const TileMath &tileMath() { return choice().variants[0]; }

const TileMath *allTileMath(int &count) {
  count = choice().count;
  return choice().variants;
}

} // namespace heddle
