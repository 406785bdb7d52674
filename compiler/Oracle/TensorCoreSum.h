//===- TensorCoreSum.h - sums of products of e4m3 ---------------*- C++ -*-===//
// Owns how tensor cores of Hopper sum products of e4m3: not in fp32. Scores of thousands are off by units because of it, in
// every kernel and library that lets them multiply such rows.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_ORACLE_TENSORCORESUM_H
#define HEDDLE_COMPILER_ORACLE_TENSORCORESUM_H

#include <cstdint>

namespace heddle::oracle {

struct TensorCoreSum {
  double sum = 0;
  double unit = 0; ///< the largest of which less than one was cut of a product or a sum
};

/// Of a_c b_c over `channels` elements of e4m3, 32 at a time: of each product and of the sum so far what lies more than
/// 13 bits below the first bit of the largest of them is cut.
TensorCoreSum tensorCoreSum(const float *a, const float *b, int64_t channels);

} // namespace heddle::oracle

#endif
