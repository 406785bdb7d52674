// The call over ranks whose times tests know by hand.
#ifndef HEDDLE_TESTS_UNIT_RING_FIXTURE_H
#define HEDDLE_TESTS_UNIT_RING_FIXTURE_H

#include "compiler/Views/RingPlan.h"

#include <doctest/doctest.h>

namespace heddle::test {

/// 4 ranks of 16 tokens, 8 query heads, 4 of k and v, head dim 32: a key of a head is 128 bytes of bf16; 1 GB/s is 1e6
/// bytes in a ms, and at 1e-3 TFLOP/s a ms is 1e6 FLOPs.
inline views::RingRequest requestOf(double tflops, double latencyUs = 0) {
  views::RingRequest request;
  request.sizes = {8, 64, 64, 0, 0, {}};
  request.call.heads = 8;
  request.call.kvHeads = 4;
  request.call.headDim = request.call.valueDim = 32;
  request.call.rates = {1, latencyUs, tflops};
  request.ranks = 4;
  request.layout = "contiguous";
  return request;
}

inline std::unique_ptr<views::RingPlan> planned(const PatternFile &file, const views::RingRequest &request) {
  auto ring = planRing(file, request);
  REQUIRE_MESSAGE(ring.isOk(), ring.status().message());
  return ring.take();
}

} // namespace heddle::test

#endif
