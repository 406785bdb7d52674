// Lists of distinct rates. Traits: kQueryRates[kQueryRateCount].
#pragma once

namespace heddle {

template <class Traits> struct QueryRates {
  static constexpr int kCount = Traits::kQueryRateCount;
  template <int Slot> static constexpr int32_t kAt = Traits::kQueryRates[Slot];
};

// The place of a rate in a list.
template <class Rates, int Slot = 0> DEV int32_t rateSlot(int32_t rate) {
  if constexpr (Slot + 1 == Rates::kCount) {
    return Slot;
  } else {
    constexpr int32_t kRate = Rates::template kAt<Slot>;
    return rate == kRate ? Slot : rateSlot<Rates, Slot + 1>(rate);
  }
}

} // namespace heddle
