// The distinct rates of queries, which KernelTraits lists: kQueryRates[kQueryRateCount].
#pragma once

namespace heddle {

// The place of a rate in the list of distinct ones.
template <int Slot = 0> DEV int32_t queryRateSlot(int32_t rate) {
  if constexpr (Slot + 1 == KernelTraits::kQueryRateCount) {
    return Slot;
  } else {
    constexpr int32_t kRate = KernelTraits::kQueryRates[Slot];
    return rate == kRate ? Slot : queryRateSlot<Slot + 1>(rate);
  }
}

} // namespace heddle
