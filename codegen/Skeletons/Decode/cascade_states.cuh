// The last launch of a cascade: the two states of each row of a group, of the keys that it shares and of its own, become its
// results. A warp has a row of one head.
#pragma once

#include "Decode/cascade_layout.cuh"
#include "Ptx/memory.cuh"
#include "Ptx/scalar.cuh"
#include "Shared/elements.cuh"
#include "Shared/pattern_context.cuh"
#include "Shared/score_units.cuh"

namespace heddle {

constexpr int kLaneColumns = 4;
template <class K> constexpr int kStateFloats = cascade::stateBytes(K::kValueDim) / 4;

struct RowWeights {
  float shared, own, lse;

  // Of two lse, of which that of shared keys is finite.
  DEV RowWeights(float ofShared, float ofOwn) {
    const float most = fmaxf(ofShared, ofOwn);
    shared = ptx::exp2Approx((ofShared - most) * kLog2OfE);
    own = ptx::exp2Approx((ofOwn - most) * kLog2OfE);
    lse = most + ptx::log2Approx(shared + own) * kLogOf2;
    const float inverse = 1.f / (shared + own);
    shared *= inverse, own *= inverse;
  }
};

// `number`: of the row of a head among those of all groups.
template <class K> DEV void joinStatesOfRow(const ParamsOf<K> &p, int32_t number) {
  const int32_t row = number / p.heads, head = number - row * p.heads, lane = threadIdx.x % 32;
  const int32_t place = p.sharing[cascade::firstRowWord(p.sequences) + row];
  const int32_t batch = p.cuSeqlensQ ? 0 : place / p.seqlenQ, index = place - batch * p.seqlenQ;
  const float *const shared = reinterpret_cast<const float *>(p.sharedStates) +
                              static_cast<int64_t>(number) * cascade::kStatesOfRow * kStateFloats<K>;
  const RowWeights weights(shared[K::kValueDim], shared[kStateFloats<K> + K::kValueDim]);
  if (lane == 0)
    p.lse[(static_cast<int64_t>(batch) * p.heads + head) * p.seqlenQ + index] = weights.lse;
  const int32_t column = lane * kLaneColumns;
  if (column >= K::kValueDim)
    return;
  float of[2][kLaneColumns], value[kLaneColumns];
  ptx::loadGlobal16(shared + column, of[0]);
  ptx::loadGlobal16(shared + kStateFloats<K> + column, of[1]);
#pragma unroll
  for (int i = 0; i < kLaneColumns; ++i)
    value[i] = fmaf(of[0][i], weights.shared, of[1][i] * weights.own);
  const int64_t element = batch * p.outStride[0] + index * p.outStride[1] + head * p.outStride[2] + column;
  if constexpr (K::kOutFloat32)
    ptx::storeGlobal16(static_cast<float *>(p.out) + element, true, value[0], value[1], value[2], value[3]);
  else
    ptx::storeGlobal8(static_cast<char *>(p.out) + element * K::kElementBytes, true,
                      pack<typename K::OutElement>(value[0], value[1]),
                      pack<typename K::OutElement>(value[2], value[3]));
}

template <class K> struct CascadeJoin {
  using Params = ParamsOf<K>;
  static constexpr int kThreads = K::kThreads, kMinBlocks = 0;

  DEV static void run(const Params &p) {
    const int64_t number = static_cast<int64_t>(blockIdx.x) * K::kWarps + threadIdx.x / 32;
    if (number < static_cast<int64_t>(p.sharing[1]) * p.heads)
      joinStatesOfRow<K>(p, static_cast<int32_t>(number));
  }

private:
  static_assert(K::kValueDim <= 32 * kLaneColumns && K::kValueDim % kLaneColumns == 0,
                "the lanes of a warp have all columns of a row");
};

} // namespace heddle
