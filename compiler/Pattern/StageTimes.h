// Owns the wall-clock times of a compilation by stage, in the order in which the stages ran.
#pragma once

#include <chrono>
#include <string>
#include <type_traits>
#include <vector>

namespace heddle {

struct StageTime {
  std::string stage;
  double ms = 0;
};
using StageTimes = std::vector<StageTime>;

/// Runs `work`, appends its time under `stage` and returns what it returned. Nothing is appended if it throws.
template <class F> auto timeStage(StageTimes &times, const char *stage, F &&work) {
  const auto start = std::chrono::steady_clock::now();
  const auto stop = [&] {
    times.push_back(
        {stage, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()});
  };
  if constexpr (std::is_void_v<decltype(work())>) {
    work();
    stop();
  } else {
    auto result = work();
    stop();
    return result;
  }
}

} // namespace heddle
