// Owns the arguments and answers of a JitPattern, for code that passes them on.
#pragma once

#include <array>
#include <cstdint>

namespace heddle {

// The leading arguments of the generated functions. Laid out as one run of 32-bit words, then pointers, which is
// how the compiled code reads it; a JitPattern has at most kMaxParams run-time sizes and kMaxOperands tensors.
struct JitContext {
  static constexpr int kMaxParams = 32, kMaxOperands = 8;
  int32_t batch = 0, head = 0, heads = 1, seqlenQ = 0, seqlenK = 0, qOrigin = 0, kOrigin = 0;
  std::array<int32_t, kMaxParams> params = {};
  std::array<const void *, kMaxOperands> operands = {}; // in the order of PatternInfo::operands
};

// A tile of rows in one branch of a head's variant: positions of its first and last existing row. Column tiles have
// `block` columns.
struct JitTile {
  int32_t variant, branch, first, last, block;
};

// Numbers of key tiles, or, transposed, of query tiles. No more tiles: begin = end = reach = kNoTile.
struct JitKeyRange {
  static constexpr int32_t kNoTile = 0x7fffffff;
  int32_t begin, end, fullBegin, fullEnd, reach;
};

// A line of keep values: value i is that of (q + qStep * i, k + kStep * i) with one of the steps 0.
struct JitKeepLine {
  int32_t branch, q, k, step, count;
};

} // namespace heddle
