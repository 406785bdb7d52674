// The launch before exact products of warpgroups: rows of q, k and v as pairs of fp16 (paired_rows.cuh), which tensor maps
// of the workspace name, and what these are to be multiplied by: a float for each row of q, and kKeyFactorBytes for each
// key, of k and of v.
// Launch: heddle_pair_rows with batch * (heads + kv_heads) * ceil(max(seqlen_q, seqlen_k) / kPairRows) blocks.
#pragma once

#include "Shared/paired_rows.cuh"

namespace heddle {

struct PairRowsParams {
  PairedTensor q, k, v;
  float *queryFactors, *keyFactors;
  int64_t qStride[3], kStride[3], vStride[3]; // batch, row, head; in elements
  int32_t heads, kvHeads, seqlenQ, seqlenK;
};

// Traits: kPairLanes, of a row, each with four of its columns; kPairRows, of a block.
template <class K> class PairRows {
  using Pairs = RowPairs<K::kPairLanes>;

public:
  using Params = PairRowsParams;
  static constexpr int kThreads = K::kPairRows * K::kPairLanes, kMinBlocks = 1;

  DEV static void run(const Params &p) {
    const int32_t blocksOfHead = (max(p.seqlenQ, p.seqlenK) + K::kPairRows - 1) / K::kPairRows;
    const int32_t pair = blockIdx.x / blocksOfHead, batch = pair / (p.heads + p.kvHeads);
    const int32_t head = pair - batch * (p.heads + p.kvHeads), kvHead = head - p.heads; // of k and v behind those of q
    const int32_t row = (blockIdx.x - pair * blocksOfHead) * K::kPairRows + threadIdx.x / K::kPairLanes;
    if (kvHead < 0) {
      const PairedRow query{(static_cast<int64_t>(batch) * p.heads + head) * p.seqlenQ + row, batch, row, head,
                            row < p.seqlenQ};
      const float factor = Pairs::template make<K::kHeadDim, sm90::kPairStep>(p.q, p.qStride, query);
      ptx::storeGlobal4(p.queryFactors + query.number, Pairs::isFirst() && query.isPresent, __float_as_uint(factor));
    } else {
      const PairedRow key{(static_cast<int64_t>(batch) * p.kvHeads + kvHead) * p.seqlenK + row, batch, row, kvHead,
                          row < p.seqlenK};
      const float ofKey = Pairs::template make<K::kHeadDim, sm90::kPairStep>(p.k, p.kStride, key),
                  ofValue = Pairs::template make<K::kValueDim, sm90::kPairColumn>(p.v, p.vStride, key);
      ptx::storeGlobal16(p.keyFactors + key.number * (sm90::kKeyFactorBytes / 4), Pairs::isFirst() && key.isPresent,
                         ofKey, ofValue, 0.f, 0.f);
    }
  }
};

} // namespace heddle
