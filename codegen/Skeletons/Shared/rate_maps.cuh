// Which of an operand's tensor maps serves which rows: they come by distinct rate, and for each rate first the map of
// the rows that all residues have, then that of the residues below seqlen mod rate, which have one row more (rate 1
// everywhere: one map).
#pragma once

#include "Shared/query_rates.cuh"

namespace heddle {

// Traits: kKeyRates[kKeyRateCount].
template <class Traits> struct KeyRates {
  static constexpr int kCount = Traits::kKeyRateCount;
  template <int Slot> static constexpr int32_t kAt = Traits::kKeyRates[Slot];
};

// Which of an operand's maps serves the rows of one residue class.
template <class Traits> DEV int32_t mapOfClass(int32_t slot, int32_t rate, int32_t residue, int32_t rows) {
  if constexpr (Traits::kMapsPerRate == 1)
    return slot;
  else
    return slot * Traits::kMapsPerRate + (residue < rows % rate);
}

} // namespace heddle
