// The launches around the backward kernel, a row at a time: heddle_backward_preprocess writes what row_statistics.cuh
// says, delta being the sum over the value dimension of out * d_out less the gradient of lse; heddle_convert_dq turns
// the sums of dq_accumulation.cuh into d_q, or adds them. Of gradient(detached) heddle_backward_preprocess leaves the
// gradient of lse in the place of delta, for heddle_branch_deltas.
// The gradient of a sink needs rows only: heddle_backward_preprocess adds -P of the sink times delta, which the product
// of a key without a value does not change. KernelTraits::kSinkGradient: 0 not wanted, 1 one for all heads, 2 one for
// each.
// Launch: heddle_backward_preprocess as row_dot.cuh with kPreprocessRows rows and kRowWarps warps a block, of as many
// rows as the tiles of a head have; heddle_convert_dq with ceil(batch * seqlen_q * heads * ceil(kHeadDim / 16) /
// kConvertDqThreads) blocks.
#pragma once

#include "Backward/argument_gradients.cuh"
#include "Backward/dq_accumulation.cuh"
#include "Backward/gradient_rows.cuh"
#include "Backward/row_pieces.cuh"
#include "Backward/row_statistics.cuh"
#include "Shared/pattern_operands.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

constexpr int kPreprocessRows = KernelTraits::kPreprocessRows, kRowWarps = KernelTraits::kRowWarps;
constexpr int kConvertDqThreads = 32 * kRowWarps;

template <bool HasSinkGradient> struct SinkParams {};
template <> struct SinkParams<true> : PatternOperands {
  float *sinkGradient;
  int32_t seqlenK, qOrigin, kOrigin;
  int32_t param[Pattern::kParamCount > 0 ? Pattern::kParamCount : 1];
};

struct PreprocessParams : SinkParams<(KernelTraits::kSinkGradient > 0)> {
  const void *out, *dOut;
  const float *givenLse;
  const float *dLse; // null: none is given
  float *lse, *delta;
  int64_t outStride[3], dOutStride[3]; // batch, row, head; in elements
  int32_t batch, heads, seqlenQ;
  int32_t tileRows; // as many as tiles of a head have, by the rate that has most
};

// Sums that are added in order are not cleared before.
template <bool HasOrder> struct OrderParams {
  DEV bool hasSums(int32_t, int32_t, int32_t) const { return true; }
};
template <> struct OrderParams<true> {
  const uint32_t *order;
  DEV bool hasSums(int32_t headOfAll, int32_t row, int32_t seqlenQ) const {
    return order[orderWord(headOfAll, seqlenQ, classTile(row, kOrderRate))] & kOrderHasSums;
  }
};

struct ConvertDqParams : OrderParams<(KernelTraits::kOrderRate > 0)> {
  const float *sums;
  void *queryGradient;
  int64_t stride[3];
  int32_t batch, heads, seqlenQ;
  float scaleLog2;
};

// One group of 16 columns of one row.
struct SumGroup {
  static constexpr int kOfRow = (KernelTraits::kHeadDim + kSumGroupColumns - 1) / kSumGroupColumns;
  static constexpr int kOfSplit = kSumColumns / kSumGroupColumns;
  int32_t batch, row, head, group;

  DEV explicit SumGroup(const ConvertDqParams &p) {
    const int64_t number = static_cast<int64_t>(blockIdx.x) * kConvertDqThreads + threadIdx.x;
    group = static_cast<int32_t>(number % kOfRow);
    const int64_t rest = number / kOfRow;
    head = static_cast<int32_t>(rest % p.heads);
    row = static_cast<int32_t>(rest / p.heads % p.seqlenQ);
    batch = static_cast<int32_t>(rest / p.heads / p.seqlenQ);
  }
  DEV const float *from(const ConvertDqParams &p) const {
    const int32_t split = group / kOfSplit;
    return p.sums + sumPlace(firstSumRow(batch, p.heads, head, split, p.seqlenQ) + row) +
           (group - split * kOfSplit) * kSumGroupFloats;
  }
  DEV char *to(const ConvertDqParams &p) const {
    return static_cast<char *>(p.queryGradient) +
           (batch * p.stride[0] + row * p.stride[1] + head * p.stride[2] + group * kSumGroupColumns) *
               kGradientBytes<kAddsToQueries>;
  }
  DEV bool hasSecondHalf() const { return KernelTraits::kHeadDim % kSumGroupColumns == 0 || group + 1 < kOfRow; }
};

struct RowStatistics {
  float lse, delta;
};

// 16 columns, or the first eight of them, as pieces of sums hold them, times the scale.
DEV void addToRow(float *to, const float (&pieces)[kSumPiecesOfRow][kSumPieceFloats], bool hasSecondHalf) {
#pragma unroll
  for (int column = 0; column < kSumGroupColumns; column += 4) {
    const int half = column / 8, piece = column % 8 / 2;
    if (half == 1 && !hasSecondHalf)
      return;
    float sum[4];
    ptx::loadGlobal16(to + column, sum);
    ptx::storeGlobal16(to + column, true, sum[0] + pieces[piece][2 * half], sum[1] + pieces[piece][2 * half + 1],
                       sum[2] + pieces[piece + 1][2 * half], sum[3] + pieces[piece + 1][2 * half + 1]);
  }
}

// Columns as addToRow has them.
DEV void storeFloatRow(float *to, const float (&pieces)[kSumPiecesOfRow][kSumPieceFloats], bool hasSecondHalf) {
#pragma unroll
  for (int column = 0; column < kSumGroupColumns; column += 4) {
    const int half = column / 8, piece = column % 8 / 2;
    ptx::storeGlobal16(to + column, half == 0 || hasSecondHalf, pieces[piece][2 * half], pieces[piece][2 * half + 1],
                       pieces[piece + 1][2 * half], pieces[piece + 1][2 * half + 1]);
  }
}

template <class E = Element>
DEV void storeRow(char *to, const float (&pieces)[kSumPiecesOfRow][kSumPieceFloats], bool hasSecondHalf) {
  uint32_t low[kSumPiecesOfRow], high[kSumPiecesOfRow];
#pragma unroll
  for (int piece = 0; piece < kSumPiecesOfRow; ++piece) {
    low[piece] = pack<E>(pieces[piece][0], pieces[piece][1]);
    high[piece] = pack<E>(pieces[piece][2], pieces[piece][3]);
  }
  ptx::storeGlobal16(to, true, low[0], low[1], low[2], low[3]);
  ptx::storeGlobal16(to + kPieceBytes, hasSecondHalf, high[0], high[1], high[2], high[3]);
}

// The power of two at or below |x|: half of the distance between the numbers around x is 2^-24 of it.
DEV float powerBelow(float x) { return __uint_as_float(__float_as_uint(x) & 0x7f800000u); }

// In log2 units, and lower by what a forward pass may have rounded it, once in log2 units and once in natural ones, and
// what it is rounded here: of floats, whose digits that would cost, only where weights are cut. A row that keeps nothing has weights of zero: its lse is infinite here.
DEV float lseOfWeights(float natural) {
  constexpr float kHalfSpacing = 0x1p-24f, kRestOfLog2OfE = 1.925963033500956e-8f;
  const float lse = natural * kLog2OfE;
  const float bound = kHalfSpacing * (2.1f * powerBelow(lse) + 1.1f * kLog2OfE * powerBelow(natural));
  const float roundings = kElementBytes == 4 && fabsf(lse) < kLeastLseThatCuts / 2 ? 0.f : bound;
  return fabsf(natural) == INFINITY ? INFINITY : fmaf(natural, kLog2OfE, natural * kRestOfLog2OfE - roundings);
}

DEV RowStatistics statisticsOf(const PreprocessParams &p, int64_t row, float delta) {
  const float dLse = p.dLse ? p.dLse[row] : 0.f;
  return {lseOfWeights(p.givenLse[row]), Pattern::kIsDetached ? dLse : delta - dLse};
}

// The part of the sink's gradient that is of one head's rows.
template <bool IsWanted = (KernelTraits::kSinkGradient > 0)> struct SinkSum {
  DEV SinkSum(const PreprocessParams &, int32_t, int32_t) {}
  DEV void add(const RowStatistics &) {}
  DEV void leave(const PreprocessParams &, int32_t) const {}
};
template <> struct SinkSum<true> {
  float sink, sum;
  template <class Params>
  DEV SinkSum(const Params &p, int32_t batch, int32_t head)
      : sink(Pattern::sink(makeContext(p, batch, head)) * kLog2OfE), sum(0.f) {}
  DEV void add(const RowStatistics &row) {
    const float delta = Pattern::kIsDetached ? -row.delta : row.delta;
    sum -= weightOf(sink - row.lse) * delta;
  }
  template <class Params> DEV void leave(const Params &p, int32_t head) const {
    const float whole = sumOfLanes<31>(sum);
    ptx::addGlobal4(p.sinkGradient + (KernelTraits::kSinkGradient > 1 ? head : 0), threadIdx.x % 32 == 0, whole);
  }
};

// The row goes to its place in the tiles of every rate.
template <int Slot = 0>
DEV void writeStatistics(const PreprocessParams &p, int32_t head, int32_t row, const RowStatistics &statistics) {
  constexpr int32_t kRate = KernelTraits::kQueryRates[Slot];
  const int32_t number = row / kRate, tile = number / kStatisticsRows;
  if (tile < tilesOfClass(p.seqlenQ, kRate)) {
    const int64_t place = statisticsPlace(p.batch * p.heads, Slot, head, p.seqlenQ, {kRate, row % kRate, tile});
    p.lse[place + number % kStatisticsRows] = statistics.lse;
    p.delta[place + number % kStatisticsRows] = statistics.delta;
  }
  if constexpr (Slot + 1 < KernelTraits::kQueryRateCount)
    writeStatistics<Slot + 1>(p, head, row, statistics);
}

} // namespace heddle

extern "C" __global__ void __launch_bounds__(32 * heddle::kRowWarps)
    heddle_backward_preprocess(const __grid_constant__ heddle::PreprocessParams p) {
  using namespace heddle;
  using Rows = RowsOfLane<kPreprocessRows, kRowWarps>;
  const Rows rows(p, p.tileRows);
  const int32_t head = rows.batch * p.heads + rows.head;
  SinkSum<> sinkSum(p, rows.batch, rows.head);
#pragma unroll
  for (int step = 0; step < Rows::kSteps; ++step) {
    float sum = 0;
    if constexpr (!Pattern::kIsDetached) {
#pragma unroll
      for (int piece = 0; piece < kPiecesOfLane; ++piece) {
        Piece out, dOut;
        loadPiece(p.out, rows.offset(p.outStride, step), piece, out);
        loadPiece(p.dOut, rows.offset(p.dOutStride, step), piece, dOut);
        sum += dotOf(out, dOut);
      }
      sum = sumOfRow(sum);
    }
    const int32_t row = rows.row(step);
    if (threadIdx.x % kLanesOfRow == 0 && row < p.tileRows) {
      const RowStatistics statistics = row < rows.end
                                           ? statisticsOf(p, static_cast<int64_t>(head) * p.seqlenQ + row, sum)
                                           : RowStatistics{INFINITY, 0.f};
      writeStatistics(p, head, row, statistics);
      sinkSum.add(statistics);
    }
  }
  sinkSum.leave(p, rows.head);
}

extern "C" __global__ void __launch_bounds__(heddle::kConvertDqThreads)
    heddle_convert_dq(const __grid_constant__ heddle::ConvertDqParams p) {
  using namespace heddle;
  const SumGroup group(p);
  if (group.batch >= p.batch)
    return;
  const float scale = p.scaleLog2 * kLogOf2;
  const float *from = group.from(p);
  const bool hasSums = p.hasSums(group.batch * p.heads + group.head, group.row, p.seqlenQ);
  float pieces[kSumPiecesOfRow][kSumPieceFloats];
#pragma unroll
  for (int piece = 0; piece < kSumPiecesOfRow; ++piece) {
    ptx::loadConstant16(from + piece * kSumPieceFloats, pieces[piece]);
#pragma unroll
    for (float &value : pieces[piece])
      value = hasSums ? value * scale : 0.f;
  }
  if constexpr (kAddsToQueries)
    addToRow(reinterpret_cast<float *>(group.to(p)), pieces, group.hasSecondHalf());
  else if constexpr (kElementBytes == 4)
    storeFloatRow(reinterpret_cast<float *>(group.to(p)), pieces, group.hasSecondHalf());
  else
    storeRow(group.to(p), pieces, group.hasSecondHalf());
}
