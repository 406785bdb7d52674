//===- Board.h - what launcher and ranks see together ------------------------===//
// Owns memory that all processes of a test share: numbers of each rank, the time, and bytes of tensors. What a rank that was
// killed wrote stays.
#ifndef HEDDLE_TESTS_RANKS_BOARD_H
#define HEDDLE_TESTS_RANKS_BOARD_H

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::ranks {

constexpr int kMostRanks = 8;

struct RankNumbers {
  std::atomic<int64_t> points, polls, sends; // Points.h
};

struct Board {
  RankNumbers ranks[kMostRanks];
  std::atomic<int64_t> now{1'000'000'000}; // nanoseconds, of a clock that stands
};

// The one of this process and its children.
Board &board();

// Zeroed, as long as the process lives.
uint8_t *sharedBytes(size_t bytes);

} // namespace heddle::ranks

#endif
