// Elements of q, k, v: 16 bits, bfloat16 or half, moved in pieces of 16 bytes.
#pragma once

namespace heddle {

constexpr int kElementBytes = 2;
constexpr int kPieceBytes = 16;
constexpr int kPieceElements = kPieceBytes / kElementBytes;

DEV uint32_t pack(float low, float high) {
  if constexpr (KernelTraits::kIsBf16)
    return ptx::packBf16(low, high);
  else
    return ptx::packFp16(low, high);
}

} // namespace heddle
