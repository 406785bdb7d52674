#include "tuner/Space/Trial.h"

#include <array>

namespace heddle::tuner {

namespace {

constexpr std::array<const char *, kOutcomeCount> kOutcomeNames = {
    "measured", "stopped", "compile_failed", "spilled", "wrong", "launch_failed", "timed_out"};

} // namespace

const char *outcomeName(Outcome outcome) { return kOutcomeNames[size_t(outcome)]; }

Result<Outcome> parseOutcome(std::string_view name) {
  for (size_t i = 0; i < kOutcomeCount; ++i)
    if (name == kOutcomeNames[i])
      return Outcome(i);
  return Status::corrupt("trial: unknown outcome '" + std::string(name) + "'");
}

bool isFailure(Outcome outcome) { return outcome != Outcome::measured && outcome != Outcome::stopped; }

bool isBetter(const PointTrial &a, const PointTrial &b) {
  if (a.isUsable() != b.isUsable())
    return a.isUsable();
  if (a.medianUs != b.medianUs)
    return a.medianUs < b.medianUs;
  return a.config < b.config;
}

heddle::Trial toRecord(const SearchSpace &space, const PointTrial &trial, const WinnerKey &key) {
  heddle::Trial record;
  static_cast<WinnerKey &>(record) = key;
  static_cast<TrialNumbers &>(record) = trial;
  record.configDigest = space.digest(trial.point);
  record.config = space.text(trial.point);
  record.outcome = outcomeName(trial.outcome);
  record.medianUs = trial.isUsable() ? trial.medianUs : 0;
  return record;
}

Result<PointTrial> fromRecord(const SearchSpace &space, const heddle::Trial &record) {
  PointTrial trial;
  HEDDLE_ASSIGN(trial.point, space.parse(record.config));
  HEDDLE_ASSIGN(trial.outcome, parseOutcome(record.outcome));
  if (trial.isUsable() && !(record.medianUs > 0))
    return Status::corrupt("trial '" + record.config + "': measured, but without a time");
  trial.config = space.text(trial.point);
  static_cast<TrialNumbers &>(trial) = record;
  return trial;
}

} // namespace heddle::tuner
