#include "tuner/Measure/Timing.h"

#include <algorithm>
#include <cstdio>

namespace heddle::tuner {

namespace {

// What a median needs at least when the time limit cuts it short.
constexpr int kSamplesAtLimit = 3;

double quantile(const std::vector<double> &sorted, double fraction) {
  const double place = fraction * double(sorted.size() - 1);
  const size_t below = size_t(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - double(below)) * (sorted[above] - sorted[below]);
}

std::string formatted(const char *format, double a, double b) {
  char text[160];
  std::snprintf(text, sizeof text, format, a, b);
  return text;
}

// One run of timeInterleaved.
class InterleavedRun {
public:
  InterleavedRun(Evaluator &evaluator, const TimingOptions &options, double bestUs, const Clock &clock)
      : evaluator(evaluator), options(options), bestUs(bestUs), clock(clock) {}

  std::vector<Timing> run(const std::vector<Candidate *> &candidates, const std::function<bool()> &isInterrupted) {
    entries.resize(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i)
      entries[i].candidate = candidates[i];
    const size_t count = entries.size();
    for (size_t round = 0; isAnyActive(); ++round)
      for (size_t i = 0; i < count; ++i)
        if (Entry &entry = entries[(round + i) % count]; entry.isActive) {
          if (isInterrupted())
            interrupt(entry);
          else
            step(entry);
        }
    std::vector<Timing> result;
    for (Entry &entry : entries)
      result.push_back(std::move(entry.timing));
    return result;
  }

private:
  struct Entry {
    Candidate *candidate = nullptr;
    std::vector<double> samplesUs;
    int launches = 0;
    bool isActive = true;
    Timing timing;
  };

  bool isAnyActive() const {
    return std::any_of(entries.begin(), entries.end(), [](const Entry &entry) { return entry.isActive; });
  }

  // One launch: a warm-up or a sample.
  void step(Entry &entry) {
    const double start = clock.now();
    const Sample sample = guardedSample(evaluator, *entry.candidate);
    clock.wait(std::min(kLongestRest, sample.us * 1e-6 * (1 / options.busyShare - 1)));
    entry.timing.seconds += clock.now() - start;
    if (sample.failure) {
      finish(entry, sample.failure->outcome, sample.failure->message);
      return;
    }
    if (++entry.launches <= options.warmups) {
      if (entry.timing.seconds >= options.limitSeconds)
        finishAtLimit(entry);
      return;
    }
    entry.samplesUs.push_back(sample.us);
    entry.timing.smClockMhz = sample.smClockMhz;
    entry.timing.powerWatts = sample.powerWatts;
    entry.timing.statistics = statisticsOf(entry.samplesUs);
    entry.timing.samples = int(entry.samplesUs.size());
    judge(entry);
  }

  void judge(Entry &entry) {
    const Statistics &statistics = entry.timing.statistics;
    const int samples = entry.timing.samples;
    if (samples >= options.minSamples)
      bestUs = std::min(bestUs, statistics.medianUs);
    if (samples >= options.hopelessAfter && statistics.minUs > bestUs * options.hopelessMargin)
      finish(entry, Outcome::stopped,
             formatted("hopeless: fastest sample %.2f us, best median %.2f us", statistics.minUs, bestUs));
    else if (samples >= options.maxSamples ||
             (samples >= options.minSamples && statistics.spread <= options.targetSpread))
      finish(entry, Outcome::measured, "");
    else if (entry.timing.seconds >= options.limitSeconds)
      finishAtLimit(entry);
  }

  void finishAtLimit(Entry &entry) {
    if (entry.timing.samples >= std::min(kSamplesAtLimit, options.minSamples))
      finish(entry, Outcome::measured, "");
    else
      finish(entry, Outcome::timedOut,
             formatted("time limit: %.0f samples in %.2f s", entry.timing.samples, entry.timing.seconds));
  }

  void interrupt(Entry &entry) {
    if (entry.timing.samples >= options.minSamples)
      finish(entry, Outcome::measured, "");
    else
      finish(entry, Outcome::stopped, "interrupted");
    entry.timing.isInterrupted = entry.timing.outcome == Outcome::stopped;
  }

  static void finish(Entry &entry, Outcome outcome, std::string message) {
    entry.timing.outcome = outcome;
    entry.timing.message = std::move(message);
    entry.isActive = false;
  }

  Evaluator &evaluator;
  const TimingOptions &options;
  double bestUs;
  const Clock &clock;
  std::vector<Entry> entries;
};

} // namespace

Status checkTimingOptions(const TimingOptions &options) {
  if (options.warmups < 0 || options.minSamples < 1 || options.maxSamples < options.minSamples ||
      options.hopelessAfter < 1)
    return Status::invalidArgument("timing: expected warmups >= 0, 1 <= min samples <= max samples, "
                                   "hopeless after >= 1 sample");
  if (!(options.hopelessMargin >= 1) || !(options.targetSpread >= 0))
    return Status::invalidArgument("timing: expected a hopeless margin of at least 1 and a target "
                                   "spread of at least 0");
  if (!(options.busyShare > 0 && options.busyShare <= 1))
    return Status::invalidArgument("timing: expected a busy share above 0 and at most 1, got " +
                                   std::to_string(options.busyShare));
  if (!(options.limitSeconds > 0))
    return Status::invalidArgument("timing: expected a time limit of more than 0 s, got " +
                                   std::to_string(options.limitSeconds));
  return Status();
}

Statistics statisticsOf(std::vector<double> samplesUs) {
  Statistics result;
  if (samplesUs.empty())
    return result;
  std::sort(samplesUs.begin(), samplesUs.end());
  result.medianUs = quantile(samplesUs, 0.5);
  result.minUs = samplesUs.front();
  result.spread = (quantile(samplesUs, 0.75) - quantile(samplesUs, 0.25)) / result.medianUs;
  return result;
}

std::vector<Timing> timeInterleaved(Evaluator &evaluator, const std::vector<Candidate *> &candidates,
                                    const TimingRun &run) {
  return InterleavedRun(evaluator, run.options, run.bestUs, run.clock).run(candidates, run.isInterrupted);
}

} // namespace heddle::tuner
