//===- MemoryTrialSink.h - trials kept in memory -------------------------------===//
#pragma once

#include "tuner/Space/Trial.h"

#include <algorithm>

namespace heddle::tuner {

// Keeps trials in memory, in the order of arrival.
class MemoryTrialSink : public TrialSink {
public:
  Result<std::vector<PointTrial>> known(const SearchSpace &space) override;
  Status record(const SearchSpace &space, const PointTrial &trial) override;

  const std::vector<PointTrial> &trials() const { return kept; }

private:
  std::vector<PointTrial> kept;
};

inline Result<std::vector<PointTrial>> MemoryTrialSink::known(const SearchSpace &space) {
  std::vector<PointTrial> inSpace;
  for (const PointTrial &trial : kept) {
    Result<Point> point = space.parse(trial.config);
    if (!point)
      continue;
    inSpace.push_back(trial);
    inSpace.back().point = *point;
  }
  return inSpace;
}

inline Status MemoryTrialSink::record(const SearchSpace &, const PointTrial &trial) {
  auto same = std::find_if(kept.begin(), kept.end(), [&](const PointTrial &old) { return old.config == trial.config; });
  if (same == kept.end())
    kept.push_back(trial);
  else
    *same = trial;
  return Status();
}

} // namespace heddle::tuner
