// The kernel of quantize.cuh with kRotates 1: rows of q and k are rotated before all else (quantize_rotation.cuh). Traits and
// launch: those of quantize.cuh. Needs prelude.cuh before it in the source.
#pragma once

#include "Quantize/quantize.cuh"

namespace heddle {

template <class Traits, class P> using QuantizeRotated = Quantize<Traits, P>;

} // namespace heddle
