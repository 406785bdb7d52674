// How rows enter and leave the softmax of one warp: the carry that initialises the accumulators, and the
// stores of out and lse. Every existing row is written once; a row without a kept key gives 0 and -inf.
#pragma once

#include "Forward/online_softmax.cuh"
#include "Forward/work_items.cuh"
#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

// The rows of one lane: row (i, half) has row index first + rate * (i * 16 + half * 8).
template <class K> struct LaneRows {
  using Params = ParamsOf<K>;
  int32_t batch, head, first, rate, end;

  DEV LaneRows(const Params &p, const WorkItem<K> &item)
      : batch(item.batch), head(item.head), rate(item.queryRate), end(item.endRow(p)) {
    first = item.firstRow + rate * laneRowNumber<K>();
  }
  DEV int32_t index(int i, int half) const { return first + rate * (i * 16 + half * 8); }
  DEV int64_t lseOffset(const Params &p, int32_t row) const {
    return (static_cast<int64_t>(batch) * p.heads + head) * p.lseRows(p.seqlenQ) + row;
  }
  DEV int64_t carryLseOffset(const Params &p, int32_t row) const {
    return (static_cast<int64_t>(batch) * p.heads + head) * p.carryRows(p.seqlenQ) + row;
  }
  DEV int64_t carryOffset(const Params &p, int32_t row) const {
    return ((static_cast<int64_t>(batch) * p.carryRows(p.seqlenQ) + row) * p.heads + head) * K::kValueDim;
  }
};

// The row maximum starts this far below the carried lse, so that weights of new keys keep their precision
// in half, which bfloat16 does not need; the next key above it raises it as usual. Log2 units.
template <class K> constexpr float kCarryHeadroom = K::kLargestExponent >= 127 ? 0.f : 8.f;

// What an earlier call has for a row of this lane. Without branches around the loads: lanes stay together.
template <class K> class CarriedRow {
public:
  // `descale`: what products of values are multiplied by.
  DEV CarriedRow(const ParamsOf<K> &p, const LaneRows<K> &lane, int i, int half, float descale) {
    const int32_t row = min(lane.index(i, half), lane.end - 1);
    const float lse = p.carryLse[lane.carryLseOffset(p, row)], weight = exp2f(kCarryHeadroom<K>);
    hasKeys = lse != -INFINITY;
    rowMax = hasKeys ? lse * kLog2OfE - kCarryHeadroom<K> : kNoRowMax;
    sum = hasKeys ? weight : 0.f;
    factor = weight / descale;
    out = p.carryOut + lane.carryOffset(p, row);
  }
  // The softmax of that row.
  DEV void begin(RowState<K> &rows, int i, int half) const {
    rows.rowMax[i][half] = rowMax;
    rows.sum[i][half] = threadIdx.x % 4 == 0 ? sum : 0.f;
  }
  // Relative to rowMax, those of a tile of columns.
  DEV void load(int tile, float (&columns)[2]) const {
    K::Values::Columns::load(out, tile, hasKeys, columns);
    columns[0] *= factor, columns[1] *= factor;
  }

  float rowMax, sum; // of the row

private:
  float factor;
  const float *out;
  bool hasKeys;
};

// rows must be clear, or hold a sink, which is then forgotten: the carry has it already.
template <class K>
DEV void continueFromCarry(RowState<K> &rows, const ParamsOf<K> &p, const LaneRows<K> &lane, float descale = 1.f) {
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const CarriedRow<K> carried(p, lane, i, half, descale);
      carried.begin(rows, i, half);
#pragma unroll
      for (int n = 0; n < K::kValueTiles; ++n) {
        float columns[2];
        carried.load(n, columns);
        rows.out[i][n][2 * half] = columns[0];
        rows.out[i][n][2 * half + 1] = columns[1];
      }
    }
}

// A key of this score without a value, -inf: none. rows must be clear.
template <class K> DEV void startFromSink(RowState<K> &rows, float sink) {
  const bool isKey = sink != -INFINITY;
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows.rowMax[i][half] = isKey ? sink * kLog2OfE - kCarryHeadroom<K> : kNoRowMax;
      rows.sum[i][half] = isKey && threadIdx.x % 4 == 0 ? exp2f(kCarryHeadroom<K>) : 0.f;
    }
}

// out / sum. Results in fp32 are divided, so that a mean of ones is 1; a product with the reciprocal may be the number before it.
template <class K> DEV float meanOf(float out, float sum, float inverse, float descale) {
  if (!K::kOutFloat32)
    return out * (inverse * descale);
  const float nearly = out * inverse, rest = fmaf(-nearly, sum, out);
  return (fabsf(nearly) < INFINITY ? fmaf(rest, inverse, nearly) : nearly) *
         descale; // of infinite ones the rest is NaN
}

template <class K>
DEV void storeRow(const ParamsOf<K> &p, const LaneRows<K> &lane, const RowState<K> &rows, int i, int half,
                  float descale) {
  const RowSum sum = rowSum(rows, i, half);
  const float inverse = sum.ofProducts == 0.f ? 0.f : ptx::reciprocalApprox(sum.ofProducts);
  float values[K::kValueTiles][2];
#pragma unroll
  for (int n = 0; n < K::kValueTiles; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e)
      values[n][e] = meanOf<K>(rows.out[i][n][2 * half + e], sum.ofProducts, inverse, descale);
  int32_t row = lane.index(i, half);
  bool isPresent = row < lane.end;
  constexpr int kOutBytes = K::kOutFloat32 || K::kElementBytes == 4 ? 4 : 2;
  char *to = static_cast<char *>(p.out) +
             (lane.batch * p.outStride[0] + row * p.outStride[1] + lane.head * p.outStride[2]) * kOutBytes;
  K::Values::Columns::store(to, isPresent, values);
  float lse = (rows.rowMax[i][half] + ptx::log2Approx(sum.ofWeights)) * kLogOf2;
  ptx::storeGlobal4(p.lse + lane.lseOffset(p, row), isPresent & (threadIdx.x % 4 == 0), __float_as_uint(lse));
}

// `descale`: as of CarriedRow.
template <class K>
DEV void storeRows(const ParamsOf<K> &p, const LaneRows<K> &lane, const RowState<K> &rows, float descale = 1.f) {
#pragma unroll
  for (int i = 0; i < K::kRowTiles; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      storeRow(p, lane, rows, i, half, descale);
}

} // namespace heddle
