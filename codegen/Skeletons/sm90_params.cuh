// The parameter block of the sm90 forward kernel: its layout is described to the runtime by the slots of the launch
// plan, change both together. Tensor maps come by operand (q, k, v), by distinct rate of that operand, and for each
// rate first the map of the rows that all residues have, then that of the residues below seqlen mod rate, which have
// one row more (rate 1 everywhere: one map). Dimensions: dim, row number in its class, residue, head, batch.
#pragma once

#include "pattern_operands.cuh"
#include "row_range.cuh"

namespace heddle {

constexpr int kQueryMaps = 0;
constexpr int kKeyMaps = kQueryMaps + KernelTraits::kQueryRateCount * KernelTraits::kMapsPerRate;
constexpr int kValueMaps = kKeyMaps + KernelTraits::kKeyRateCount * KernelTraits::kMapsPerRate;
constexpr int kMapCount = kValueMaps + KernelTraits::kKeyRateCount * KernelTraits::kMapsPerRate;

struct KernelParams : PatternOperands, PassRows {
  TensorMap maps[kMapCount];
  void *out;
  float *lse;
  const float *carryOut;
  const float *carryLse;
  uint32_t *workspace;  // what blocks tell each other: sm90_split_kv.cuh
  int64_t outStride[3]; // batch, row, head; in elements
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t items;  // batch * heads * items per head
  int32_t raster; // (batch, head) pairs whose query tiles run side by side
  int32_t param[Pattern::kParamCount > 0 ? Pattern::kParamCount : 1];
};

DEV int32_t rasterPairs(const KernelParams &p) { return p.raster; }

// The place of a rate in the list of distinct ones.
template <int Slot = 0> DEV int32_t queryRateSlot(int32_t rate) {
  if constexpr (Slot + 1 == KernelTraits::kQueryRateCount) {
    return Slot;
  } else {
    constexpr int32_t kRate = KernelTraits::kQueryRates[Slot];
    return rate == kRate ? Slot : queryRateSlot<Slot + 1>(rate);
  }
}

template <int Slot = 0> DEV int32_t keyRateSlot(int32_t rate) {
  if constexpr (Slot + 1 == KernelTraits::kKeyRateCount) {
    return Slot;
  } else {
    constexpr int32_t kRate = KernelTraits::kKeyRates[Slot];
    return rate == kRate ? Slot : keyRateSlot<Slot + 1>(rate);
  }
}

// Which of an operand's maps serves the rows of one residue class.
DEV int32_t mapOfClass(int32_t slot, int32_t rate, int32_t residue, int32_t rows) {
  if constexpr (KernelTraits::kMapsPerRate == 1)
    return slot;
  else
    return slot * KernelTraits::kMapsPerRate + (residue < rows % rate);
}

} // namespace heddle
