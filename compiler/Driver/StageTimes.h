//===- StageTimes.h - how long each stage took ------------------*- C++ -*-===//
// Owns the wall-clock times of a compilation by stage, in the order in which the stages ran.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_DRIVER_STAGETIMES_H
#define HEDDLE_COMPILER_DRIVER_STAGETIMES_H

#include <chrono>
#include <string>
#include <vector>

namespace heddle {

struct StageTime {
  std::string stage;
  double ms = 0;
};
using StageTimes = std::vector<StageTime>;

/// Runs `work`, appends its time under `stage` and returns what it returned.
template <class F> auto timeStage(StageTimes &times, const char *stage, F &&work) {
  struct Stop {
    StageTimes &times;
    const char *stage;
    std::chrono::steady_clock::time_point start;
    ~Stop() {
      times.push_back({stage, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()});
    }
  } stop{times, stage, std::chrono::steady_clock::now()};
  return work();
}

} // namespace heddle

#endif
