// The parameter block of the Hopper backward kernel: its layout is described to the runtime by the slots of the launch
// plan, change both together. Tensor maps come by operand (k, v, q, d_out) and, of each, as in rate_maps.cuh.
// Dimensions: dim, row number in its class, residue, head, batch. Behind them those of lse and delta: row, tile.
#pragma once

#include "Backward/gradient_pointers.cuh"
#include "Ptx/tensor_copy.cuh"
#include "Shared/elements.cuh"
#include "Shared/pattern_context.cuh"
#include "Shared/rate_maps.cuh"

namespace heddle {

// Where the tensor maps of each operand begin: in the block of a walk over query tiles, and in that of heddle_query_walk,
// where those of q and d_out come first.
template <class Traits> struct BackwardMaps : Traits {
  static constexpr int kMapsOfKeys = Traits::kKeyRateCount * Traits::kMapsPerRate;
  static constexpr int kMapsOfQueries = Traits::kQueryRateCount * Traits::kMapsPerRate;

  struct KeyWalkMaps {
    static constexpr int kKeyMaps = 0, kValueMaps = kKeyMaps + kMapsOfKeys;
    static constexpr int kQueryMaps = kValueMaps + kMapsOfKeys, kOutMaps = kQueryMaps + kMapsOfQueries;
  };
  struct QueryWalkMaps {
    static constexpr int kQueryMaps = 0, kOutMaps = kQueryMaps + kMapsOfQueries;
    static constexpr int kKeyMaps = kOutMaps + kMapsOfQueries, kValueMaps = kKeyMaps + kMapsOfKeys;
  };
  static constexpr int kLseMap = 2 * (kMapsOfKeys + kMapsOfQueries), kDeltaMap = kLseMap + 1;
  static constexpr int kQueryFactorMap = kDeltaMap + 1, kOutFactorMap = kQueryFactorMap + 1; // of raised rows
  static constexpr int kKeyFactorMaps = kOutFactorMap + 1;
  static constexpr int kMapCount = kIsRaised<Traits> ? kKeyFactorMaps + kMapsOfKeys : kDeltaMap + 1;
};

// Of raised rows (raise_rows.cuh).
template <bool AreRaised> struct FactorPointers {};
template <> struct FactorPointers<true> {
  const float *queryFactors, *outFactors, *keyFactors;
};

template <class K>
struct Sm90BackwardParams : OperandsOf<typename K::Pattern>,
                            GradientPointers<K::kGradientCount>,
                            FactorPointers<kIsRaised<K>> {
  TensorMap maps[K::kMapCount];
  void *keyGradient, *valueGradient;
  const float *lse, *delta; // of tiles (row_statistics.cuh)
  float *sums;              // dq_accumulation.cuh; of heddle_branch_deltas the deltas
  void *between;            // what blocks leave for each other: sm90_cta_teams.cuh, sm90_dq_order.cuh
  void *queryGradient;      // of heddle_query_walk alone
  int64_t keyGradientStride[3], valueGradientStride[3]; // batch, row, head; in elements
  int64_t queryGradientStride[3];
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t raster; // (batch, kv head) pairs whose key tiles run side by side
  int32_t param[kArgumentWords<typename K::Pattern>];
};

} // namespace heddle
