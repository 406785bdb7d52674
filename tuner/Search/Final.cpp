#include "tuner/Search/Final.h"
#include "tuner/Search/PreparePool.h"

#include <algorithm>
#include <limits>

namespace heddle::tuner {

namespace {

// As in the search, where the GPU waits for compilers: the best medians of two searches on an H200 agree within 0.3%,
// those of finals that warmed it up for a second first were up to 4.7% apart.
constexpr double kBusyShare = 0.2;

class FinalRun {
public:
  FinalRun(const FinalConditions &conditions, std::vector<Entrant> entrants)
      : conditions(conditions), entrants(std::move(entrants)) {}

  FinalResult run() {
    const bool isComplete = prepareMissing();
    dropFailed();
    const double start = conditions.clock->now();
    if (isComplete && result.deviceStatus.isOk() && verifyAgain())
      timeAll();
    result.measureSeconds = conditions.clock->now() - start;
    return std::move(result);
  }

private:
  void fail(Entrant &entrant, const Failure &failure) {
    entrant.trial.outcome = failure.outcome;
    entrant.trial.message = "in the final: " + failure.message;
    entrant.trial.medianUs = entrant.trial.minUs = entrant.trial.spread = 0;
    entrant.trial.samples = 0;
    const bool touchesDevice =
        entrant.candidate && (failure.outcome == Outcome::launchFailed || failure.outcome == Outcome::timedOut);
    if (touchesDevice)
      if (Status status = conditions.evaluator->recover(); !status.isOk())
        result.deviceStatus =
            Status(status.code(), "tuning: after '" + entrant.trial.config + "' in the final: " + status.message());
    result.failed.push_back(entrant.trial);
  }

  void dropFailed() {
    entrants.erase(
        std::remove_if(entrants.begin(), entrants.end(), [](const Entrant &e) { return !e.trial.isUsable(); }),
        entrants.end());
  }

  // False if interrupted.
  bool prepareMissing() {
    PreparePool pool(conditions.evaluator, conditions.clock, conditions.options.workers,
                     conditions.options.prepareLimitSeconds);
    for (Entrant &entrant : entrants)
      if (!entrant.candidate) {
        pool.submit(entrant.trial.point);
        unverified.push_back(entrant.trial.point);
      }
    while (pool.pending() > 0) {
      std::optional<PreparedPoint> prepared = pool.next(conditions.isInterrupted);
      if (!prepared)
        return false;
      result.compileSeconds += prepared->seconds;
      auto entrant = std::find_if(entrants.begin(), entrants.end(),
                                  [&](const Entrant &candidate) { return candidate.trial.point == prepared->point; });
      if (prepared->preparation.failure)
        fail(*entrant, *prepared->preparation.failure);
      else
        entrant->candidate = std::move(prepared->preparation.candidate);
    }
    return true;
  }

  // What was prepared here is a new binary of an old trial. False if interrupted.
  bool verifyAgain() {
    for (Entrant &entrant : entrants) {
      if (std::find(unverified.begin(), unverified.end(), entrant.trial.point) == unverified.end())
        continue;
      if (conditions.isInterrupted() || !result.deviceStatus.isOk())
        return false;
      const Verification verification = guardedVerify(*conditions.evaluator, *entrant.candidate);
      if (verification.failure)
        fail(entrant, *verification.failure);
    }
    dropFailed();
    return result.deviceStatus.isOk();
  }

  void timeAll() {
    TimingOptions timing = conditions.options.timing;
    timing.targetSpread = 0;
    timing.busyShare = kBusyShare;
    std::vector<Candidate *> candidates;
    for (const Entrant &entrant : entrants)
      candidates.push_back(entrant.candidate.get());
    const std::vector<Timing> timings =
        timeInterleaved(*conditions.evaluator, candidates,
                        {timing, std::numeric_limits<double>::infinity(), *conditions.clock, conditions.isInterrupted});
    bool isInterrupted = false;
    for (size_t i = 0; i < entrants.size(); ++i) {
      Entrant &entrant = entrants[i];
      isInterrupted |= timings[i].isInterrupted;
      if (isFailure(timings[i].outcome)) {
        fail(entrant, {timings[i].outcome, timings[i].message});
        continue;
      }
      entrant.trial.outcome = timings[i].outcome;
      entrant.trial.message = timings[i].message;
      entrant.trial.medianUs = timings[i].statistics.medianUs;
      entrant.trial.minUs = timings[i].statistics.minUs;
      entrant.trial.spread = timings[i].statistics.spread;
      entrant.trial.samples = timings[i].samples;
      entrant.trial.smClockMhz = timings[i].smClockMhz;
      entrant.trial.powerWatts = timings[i].powerWatts;
    }
    if (isInterrupted)
      return;
    dropFailed();
    std::sort(entrants.begin(), entrants.end(),
              [](const Entrant &a, const Entrant &b) { return isBetter(a.trial, b.trial); });
    result.ranking = std::move(entrants);
  }

  const FinalConditions &conditions;
  std::vector<Entrant> entrants;
  std::vector<Point> unverified;
  FinalResult result;
};

} // namespace

FinalResult timeFinal(const FinalConditions &conditions, std::vector<Entrant> entrants) {
  return FinalRun(conditions, std::move(entrants)).run();
}

} // namespace heddle::tuner
