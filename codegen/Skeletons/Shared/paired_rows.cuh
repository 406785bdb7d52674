// Rows of floats as the pairs of fp16 that tiles hold (float_pairs.cuh): big numbers, each from a step on, behind them the
// small ones, and the power of two of the row. A launch writes them to the workspace, [batch, head, row, big | small].
#pragma once

#include "Ptx/memory.cuh"
#include "Shared/float_pairs.cuh"
#include "Shared/quads.cuh"
#include "Shared/sm90_layout.cuh"

namespace heddle {

struct PairedTensor {
  const float *from;
  char *to;
};

// A row of a tensor; `number` among those of all heads.
struct PairedRow {
  int64_t number;
  int32_t batch, row, head;
  bool isPresent;
};

// Lanes, each with four columns, and of pairs Parts: 1 leaves the small numbers out.
template <int Lanes, int Parts = 2> class RowPairs {
public:
  DEV static bool isFirst() { return lane() == 0; }

  // Returns what the row's pairs are to be multiplied by. All lanes of a warp call.
  template <int Dim, int Step>
  DEV static float make(const PairedTensor &tensor, const int64_t (&stride)[3], const PairedRow &row) {
    constexpr int kSmall = sm90::pairedDim(Dim, Step) / 2, kFp16Bytes = 2;
    const int32_t column = lane() * 4;
    float values[4] = {};
    if (row.isPresent && column < Dim)
      ptx::loadGlobal16(tensor.from + row.batch * stride[0] + row.row * stride[1] + row.head * stride[2] + column,
                        values);
    const PairScale scale(largestOf(values));
    uint32_t big[2], small[2];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair)
      splitPairs(values[2 * pair] * scale.ofRow, values[2 * pair + 1] * scale.ofRow, big[pair], small[pair]);
    char *to = tensor.to + (row.number * (Parts * kSmall) + column) * kFp16Bytes;
    const bool isWanted = row.isPresent && column < kSmall;
    ptx::storeGlobal8(to, isWanted, big[0], big[1]);
    if constexpr (Parts > 1)
      ptx::storeGlobal8(to + kSmall * kFp16Bytes, isWanted, small[0], small[1]);
    return scale.ofPairs;
  }

private:
  DEV static int32_t lane() { return threadIdx.x % Lanes; }

  // Of the finite elements of the row.
  DEV static float largestOf(const float (&values)[4]) {
    float largest = 0.f;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      largest = fabsf(values[i]) < INFINITY ? fmaxf(largest, fabsf(values[i])) : largest;
#pragma unroll
    for (int distance = Lanes / 2; distance > 0; distance /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, distance));
    return largest;
  }
};

} // namespace heddle
