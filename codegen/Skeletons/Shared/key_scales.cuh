// What elements of k and v are multiplied by where these alone are scaled: a number for each (batch or sequence, kv head) in
// their order, null: 1. Where they are not, it takes no parameters.
#pragma once

namespace heddle {

template <class Traits, class = void> struct ScaledKeys {
  static constexpr bool kAre = false;
};
template <class Traits> struct ScaledKeys<Traits, decltype(void(Traits::kKeyBytes))> {
  static constexpr bool kAre = Traits::kKeyBytes < Traits::kElementBytes;
};

template <class Traits, bool AreScaled = ScaledKeys<Traits>::kAre> struct KeyScales {
  DEV float ofKeys(int32_t) const { return 1.f; }
  DEV float ofValues(int32_t) const { return 1.f; }
};
template <class Traits> struct KeyScales<Traits, true> {
  const float *descaleK, *descaleV;

  DEV float ofKeys(int32_t pair) const { return descaleK ? descaleK[pair] : 1.f; }
  DEV float ofValues(int32_t pair) const { return descaleV ? descaleV[pair] : 1.f; }
};

} // namespace heddle
