// The launch before exact products of warpgroups: rows of q, k and v as pairs of fp16 (float_pairs.cuh), which tensor maps
// of the workspace name, [batch, head, row, big | small], and what these are to be multiplied by: a float for each row of q,
// and kKeyFactorBytes for each key, of k and of v.
// Launch: heddle_pair_rows with batch * (heads + kv_heads) * ceil(max(seqlen_q, seqlen_k) / kPairRows) blocks.
#pragma once

#include "Forward/float_pairs.cuh"
#include "Ptx/memory.cuh"
#include "Shared/quads.cuh"
#include "Shared/sm90_layout.cuh"

namespace heddle {

struct PairedTensor {
  const float *from;
  char *to;
};

struct PairRowsParams {
  PairedTensor q, k, v;
  float *queryFactors, *keyFactors;
  int64_t qStride[3], kStride[3], vStride[3]; // batch, row, head; in elements
  int32_t heads, kvHeads, seqlenQ, seqlenK;
};

// Traits: kPairLanes, of a row, each with four of its columns; kPairRows, of a block.
template <class K> class PairRows {
public:
  using Params = PairRowsParams;
  static constexpr int kThreads = K::kPairRows * K::kPairLanes, kMinBlocks = 1;

  DEV static void run(const Params &p) {
    const int32_t blocksOfHead = (max(p.seqlenQ, p.seqlenK) + K::kPairRows - 1) / K::kPairRows;
    const int32_t pair = blockIdx.x / blocksOfHead, batch = pair / (p.heads + p.kvHeads);
    const int32_t head = pair - batch * (p.heads + p.kvHeads), kvHead = head - p.heads; // of k and v behind those of q
    const int32_t row = (blockIdx.x - pair * blocksOfHead) * K::kPairRows + threadIdx.x / K::kPairLanes;
    if (kvHead < 0) {
      const int64_t number = (static_cast<int64_t>(batch) * p.heads + head) * p.seqlenQ + row;
      const float factor =
          pairRow<K::kHeadDim, sm90::kPairStep>(p.q, p.qStride, number, batch, row, head, row < p.seqlenQ);
      store(p.queryFactors + number, isFirst() && row < p.seqlenQ, factor);
    } else {
      const int64_t number = (static_cast<int64_t>(batch) * p.kvHeads + kvHead) * p.seqlenK + row;
      const bool isPresent = row < p.seqlenK;
      const float ofKey = pairRow<K::kHeadDim, sm90::kPairStep>(p.k, p.kStride, number, batch, row, kvHead, isPresent),
                  ofValue =
                      pairRow<K::kValueDim, sm90::kPairColumn>(p.v, p.vStride, number, batch, row, kvHead, isPresent);
      ptx::storeGlobal16(p.keyFactors + number * (sm90::kKeyFactorBytes / 4), isFirst() && isPresent, ofKey, ofValue,
                         0.f, 0.f);
    }
  }

private:
  DEV static int32_t lane() { return threadIdx.x % K::kPairLanes; }
  DEV static bool isFirst() { return lane() == 0; }
  DEV static void store(float *to, bool isPresent, float value) {
    ptx::storeGlobal4(to, isPresent, __float_as_uint(value));
  }

  // Returns what the row's pairs are to be multiplied by. All lanes of a warp call.
  template <int Dim, int Step>
  DEV static float pairRow(const PairedTensor &tensor, const int64_t (&stride)[3], int64_t number, int32_t batch,
                           int32_t row, int32_t head, bool isPresent) {
    constexpr int kRowDim = sm90::pairedDim(Dim, Step), kSmall = kRowDim / 2, kFp16Bytes = 2;
    const int32_t column = lane() * 4;
    float values[4] = {};
    if (isPresent && column < Dim)
      ptx::loadGlobal16(tensor.from + batch * stride[0] + row * stride[1] + head * stride[2] + column, values);
    const PairScale scale(largestOf(values));
    uint32_t big[2], small[2];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair)
      splitPairs(values[2 * pair] * scale.ofRow, values[2 * pair + 1] * scale.ofRow, big[pair], small[pair]);
    char *to = tensor.to + (number * kRowDim + column) * kFp16Bytes;
    const bool isWanted = isPresent && column < kSmall;
    ptx::storeGlobal8(to, isWanted, big[0], big[1]);
    ptx::storeGlobal8(to + kSmall * kFp16Bytes, isWanted, small[0], small[1]);
    return scale.ofPairs;
  }

  // Of the finite elements of the row.
  DEV static float largestOf(const float (&values)[4]) {
    float largest = 0.f;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      largest = fabsf(values[i]) < INFINITY ? fmaxf(largest, fabsf(values[i])) : largest;
#pragma unroll
    for (int distance = K::kPairLanes / 2; distance > 0; distance /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, distance));
    return largest;
  }
};

} // namespace heddle
