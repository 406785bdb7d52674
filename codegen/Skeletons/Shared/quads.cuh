// What the four lanes of a quad, which hold a row, find out together. All lanes of a warp call.
#pragma once

namespace heddle {

constexpr unsigned kWholeWarp = 0xffffffffu;

DEV float quadMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(kWholeWarp, x, 1));
  return fmaxf(x, __shfl_xor_sync(kWholeWarp, x, 2));
}

DEV float quadSum(float x) {
  x += __shfl_xor_sync(kWholeWarp, x, 1);
  return x + __shfl_xor_sync(kWholeWarp, x, 2);
}

} // namespace heddle
