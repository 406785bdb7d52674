// Where gradients of what scores read of the pattern's arguments go, in parameter blocks behind the pattern's tensors.
// Traits: kGradientCount, and in kGradientOf[] the number of each argument.
#pragma once

namespace heddle {

template <int Count> struct GradientPointers {
  float *gradient[Count];
};
template <> struct GradientPointers<0> {};

} // namespace heddle
