// The launches around the backward kernel, a row at a time: heddle_backward_preprocess writes what row_statistics.cuh
// says, delta being the sum over the value dimension of out * d_out less the gradient of lse; heddle_convert_dq turns
// the sums of dq_accumulation.cuh into d_q, or adds them. Of gradient(detached) heddle_backward_preprocess leaves the
// gradient of lse in the place of delta, for heddle_branch_deltas.
// The gradient of a sink needs rows only: heddle_backward_preprocess adds -P of the sink times delta, which the product
// of a key without a value does not change. Traits: kSinkGradient, 0 not wanted, 1 one for all heads, 2 one for
// each.
// Launch: heddle_backward_preprocess as row_dot.cuh with kPreprocessRows rows and kRowWarps warps a block, of as many
// rows as the tiles of a head have; heddle_convert_dq with ceil(batch * seqlen_q * heads * ceil(kHeadDim / 16) /
// (32 * kRowWarps)) blocks.
#pragma once

#include "Backward/argument_gradients.cuh"
#include "Backward/dq_accumulation.cuh"
#include "Backward/gradient_rows.cuh"
#include "Backward/row_pieces.cuh"
#include "Backward/row_statistics.cuh"
#include "Shared/pattern_context.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

template <class P, bool HasSinkGradient> struct SinkParams {};
template <class P> struct SinkParams<P, true> : OperandsOf<P> {
  float *sinkGradient;
  int32_t seqlenK, qOrigin, kOrigin;
  int32_t param[kArgumentWords<P>];
};

template <class K> struct PreprocessParams : SinkParams<typename K::Pattern, (K::kSinkGradient > 0)> {
  const void *out, *dOut;
  const float *givenLse;
  const float *dLse; // null: none is given
  float *lse, *delta;
  int64_t outStride[3], dOutStride[3]; // batch, row, head; in elements
  int32_t batch, heads, seqlenQ;
  int32_t tileRows; // as many as tiles of a head have, by the rate that has most
};

// Sums that are added in order are not cleared before.
template <class K, bool HasOrder> struct OrderParams {
  DEV bool hasSums(int32_t, int32_t, int32_t) const { return true; }
};
template <class K> struct OrderParams<K, true> {
  const uint32_t *order;
  DEV bool hasSums(int32_t headOfAll, int32_t row, int32_t seqlenQ) const {
    return order[orderWord<K>(headOfAll, seqlenQ, classTile<K>(row, kOrderRate<K>))] & kOrderHasSums;
  }
};

template <class K> struct ConvertDqParams : OrderParams<K, (K::kOrderRate > 0)> {
  const float *sums;
  void *queryGradient;
  int64_t stride[3];
  int32_t batch, heads, seqlenQ;
  float scaleLog2;
};

// One group of 16 columns of one row.
template <class K> struct SumGroup {
  using Params = ConvertDqParams<K>;
  static constexpr int kOfRow = (K::kHeadDim + kSumGroupColumns - 1) / kSumGroupColumns;
  static constexpr int kOfSplit = K::kSumColumns / kSumGroupColumns;
  int32_t batch, row, head, group;

  DEV explicit SumGroup(const Params &p) {
    const int64_t number = static_cast<int64_t>(blockIdx.x) * (32 * K::kRowWarps) + threadIdx.x;
    group = static_cast<int32_t>(number % kOfRow);
    const int64_t rest = number / kOfRow;
    head = static_cast<int32_t>(rest % p.heads);
    row = static_cast<int32_t>(rest / p.heads % p.seqlenQ);
    batch = static_cast<int32_t>(rest / p.heads / p.seqlenQ);
  }
  DEV const float *from(const Params &p) const {
    const int32_t split = group / kOfSplit;
    return p.sums + sumPlace<K>(firstSumRow<K>(batch, p.heads, head, split, p.seqlenQ) + row) +
           (group - split * kOfSplit) * kSumGroupFloats;
  }
  DEV char *to(const Params &p) const {
    return static_cast<char *>(p.queryGradient) +
           (batch * p.stride[0] + row * p.stride[1] + head * p.stride[2] + group * kSumGroupColumns) *
               kGradientBytes<K, K::kAddsToQueries>;
  }
  DEV bool hasSecondHalf() const { return K::kHeadDim % kSumGroupColumns == 0 || group + 1 < kOfRow; }
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

template <class E>
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
template <class K> DEV float lseOfWeights(float natural) {
  constexpr float kHalfSpacing = 0x1p-24f, kRestOfLog2OfE = 1.925963033500956e-8f;
  const float lse = natural * kLog2OfE;
  const float bound = kHalfSpacing * (2.1f * powerBelow(lse) + 1.1f * kLog2OfE * powerBelow(natural));
  const float roundings = kAreFloats<K> && fabsf(lse) < kLeastLseThatCuts / 2 ? 0.f : bound;
  return fabsf(natural) == INFINITY ? INFINITY : fmaf(natural, kLog2OfE, natural * kRestOfLog2OfE - roundings);
}

template <class K> DEV RowStatistics statisticsOf(const PreprocessParams<K> &p, int64_t row, float delta) {
  const float dLse = p.dLse ? p.dLse[row] : 0.f;
  return {lseOfWeights<K>(p.givenLse[row]), K::Pattern::kIsDetached ? dLse : delta - dLse};
}

// The part of the sink's gradient that is of one head's rows.
template <class K, bool IsWanted = (K::kSinkGradient > 0)> struct SinkSum {
  using Params = PreprocessParams<K>;
  DEV SinkSum(const Params &, int32_t, int32_t) {}
  DEV void add(const RowStatistics &) {}
  DEV void leave(const Params &, int32_t) const {}
};
template <class K> struct SinkSum<K, true> {
  using Params = PreprocessParams<K>;
  using Pattern = typename K::Pattern;
  float sink, sum;
  DEV SinkSum(const Params &p, int32_t batch, int32_t head)
      : sink(Pattern::sink(makeContext(p, batch, head)) * kLog2OfE), sum(0.f) {}
  DEV void add(const RowStatistics &row) {
    const float delta = Pattern::kIsDetached ? -row.delta : row.delta;
    sum -= weightOf(sink - row.lse) * delta;
  }
  DEV void leave(const Params &p, int32_t head) const {
    const float whole = sumOfLanes<31>(sum);
    ptx::addGlobal4(p.sinkGradient + (K::kSinkGradient > 1 ? head : 0), threadIdx.x % 32 == 0, whole);
  }
};

template <class K> struct BackwardPreprocess {
  using Params = PreprocessParams<K>;
  static constexpr int kThreads = 32 * K::kRowWarps, kMinBlocks = 0;

  DEV static void run(const Params &p) {
    using Rows = RowsOfLane<K, K::kPreprocessRows, K::kRowWarps>;
    const Rows rows(p, p.tileRows);
    const int32_t head = rows.batch * p.heads + rows.head;
    SinkSum<K> sinkSum(p, rows.batch, rows.head);
#pragma unroll
    for (int step = 0; step < Rows::kSteps; ++step) {
      float sum = 0;
      if constexpr (!K::Pattern::kIsDetached) {
#pragma unroll
        for (int piece = 0; piece < Rows::kPiecesOfLane; ++piece) {
          Piece out, dOut;
          Rows::load(p.out, rows.offset(p.outStride, step), piece, out);
          Rows::load(p.dOut, rows.offset(p.dOutStride, step), piece, dOut);
          sum += Rows::dotOf(out, dOut);
        }
        sum = Rows::sumOfRow(sum);
      }
      const int32_t row = rows.row(step);
      if (Rows::isFirstOfRow() && row < p.tileRows) {
        const RowStatistics statistics = row < rows.end
                                             ? statisticsOf(p, static_cast<int64_t>(head) * p.seqlenQ + row, sum)
                                             : RowStatistics{INFINITY, 0.f};
        forEachPlace<K>(p.batch * p.heads, head, p.seqlenQ, row, [&](int64_t place) {
          p.lse[place] = statistics.lse;
          p.delta[place] = statistics.delta;
        });
        sinkSum.add(statistics);
      }
    }
    sinkSum.leave(p, rows.head);
  }
};

template <class K> struct ConvertDq {
  using Params = ConvertDqParams<K>;
  static constexpr int kThreads = 32 * K::kRowWarps, kMinBlocks = 0;

  DEV static void run(const Params &p) {
    const SumGroup<K> group(p);
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
    if constexpr (K::kAddsToQueries)
      addToRow(reinterpret_cast<float *>(group.to(p)), pieces, group.hasSecondHalf());
    else if constexpr (kAreFloats<K>)
      storeFloatRow(reinterpret_cast<float *>(group.to(p)), pieces, group.hasSecondHalf());
    else
      storeRow<typename K::Element>(group.to(p), pieces, group.hasSecondHalf());
  }
};

} // namespace heddle
