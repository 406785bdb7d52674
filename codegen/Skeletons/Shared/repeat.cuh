// A loop that no compiler pass has to unroll. What it counts is a constant for the first passes already, so an array that it
// goes through lies in registers before any loop is looked at. Worth its text amid loops that are kept: there, NVRTC compares
// each array with each access of memory.
#pragma once

namespace heddle {

// step(0), step(1) and so on up to step(Count - 1).
template <int Count, class Step> DEV void repeat(const Step &step) {
  if constexpr (Count > 0) {
    repeat<Count - 1>(step);
    step(Count - 1);
  }
}

} // namespace heddle
