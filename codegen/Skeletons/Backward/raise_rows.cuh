// The launch before the walks of floats: rows of q, d_out, k and v as pairs of fp16, or as their big numbers alone
// (paired_rows.cuh), which tensor maps of the workspace name, each from a column of 128 bytes on; and what these are to be
// multiplied by: of rows of q and of d_out as statistics are (row_statistics.cuh), of keys kKeyFactorBytes for each, of k
// and of v.
// Launch: heddle_raise_rows with batch * (heads + kv_heads) * ceil(max(rows of the tiles of a head, seqlen_k) / kPairRows)
// blocks.
#pragma once

#include "Backward/row_statistics.cuh"
#include "Shared/elements.cuh"
#include "Shared/paired_rows.cuh"

namespace heddle {

struct RaiseRowsParams {
  PairedTensor q, dOut, k, v;
  float *queryFactors, *outFactors, *keyFactors;
  int64_t qStride[3], dOutStride[3], kStride[3], vStride[3]; // batch, row, head; in elements
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK;
  int32_t tileRows; // as many as tiles of a head have, by the rate that has most
};

// Traits: kPairLanes, of a row, each with four of its columns; kPairRows, of a block.
template <class K> class RaiseRows {
  using Pairs = RowPairs<K::kPairLanes, ProductElement<typename K::Element>::kParts>;
  static constexpr int kStep = sm90::kPairColumn;

public:
  using Params = RaiseRowsParams;
  static constexpr int kThreads = K::kPairRows * K::kPairLanes, kMinBlocks = 1;

  DEV static void run(const Params &p) {
    const int32_t blocksOfHead = ceilDiv(max(p.tileRows, p.seqlenK), K::kPairRows), heads = p.heads + p.kvHeads;
    const int32_t pair = blockIdx.x / blocksOfHead, batch = pair / heads;
    const int32_t head = pair - batch * heads; // those of k and v behind those of q
    const int32_t row = (blockIdx.x - pair * blocksOfHead) * K::kPairRows + threadIdx.x / K::kPairLanes;
    if (head < p.heads)
      raiseQuery(p, batch, head, row);
    else
      raiseKey(p, batch, head - p.heads, row);
  }

private:
  // Behind the last row factors are 0.
  DEV static void raiseQuery(const Params &p, int32_t batch, int32_t head, int32_t row) {
    const int32_t headOfAll = batch * p.heads + head;
    const PairedRow query{static_cast<int64_t>(headOfAll) * p.seqlenQ + row, batch, row, head, row < p.seqlenQ};
    const float ofQuery = Pairs::template make<K::kHeadDim, kStep>(p.q, p.qStride, query),
                ofOut = Pairs::template make<K::kValueDim, kStep>(p.dOut, p.dOutStride, query);
    if (Pairs::isFirst() && row < p.tileRows)
      forEachPlace<K>(p.batch * p.heads, headOfAll, p.seqlenQ, row, [&](int64_t place) {
        p.queryFactors[place] = query.isPresent ? ofQuery : 0.f;
        p.outFactors[place] = query.isPresent ? ofOut : 0.f;
      });
  }

  DEV static void raiseKey(const Params &p, int32_t batch, int32_t kvHead, int32_t row) {
    const PairedRow key{(static_cast<int64_t>(batch) * p.kvHeads + kvHead) * p.seqlenK + row, batch, row, kvHead,
                        row < p.seqlenK};
    const float ofKey = Pairs::template make<K::kHeadDim, kStep>(p.k, p.kStride, key),
                ofValue = Pairs::template make<K::kValueDim, kStep>(p.v, p.vStride, key);
    ptx::storeGlobal16(p.keyFactors + key.number * (sm90::kKeyFactorBytes / 4), Pairs::isFirst() && key.isPresent,
                       ofKey, ofValue, 0.f, 0.f);
  }
};

} // namespace heddle
