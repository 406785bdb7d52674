// Owns how samples become a median: warm-up, interleaving, when enough is enough, when it is hopeless.
// Candidates are compared by samples taken in turn within one run, because the clock of a GPU under
// load drifts by more than the differences that matter.
#pragma once

#include "tuner/Measure/Clock.h"
#include "tuner/Measure/Evaluator.h"

#include <functional>
#include <vector>

namespace heddle::tuner {

constexpr double kLongestRest = 0.01; // seconds

struct TimingOptions {
  int warmups = 2;      // launches before the first sample of a candidate
  double busyShare = 1; // of the time, at most: the GPU rests after each launch, up to kLongestRest, and stays
                        // below the power at which its clock drops by more than the differences that matter
  int minSamples = 5;   // a median of fewer is not trusted
  int maxSamples = 25;
  double targetSpread = 0.01;  // enough samples once interquartile range / median is at most this
  int hopelessAfter = 2;       // samples before a candidate may be given up
  double hopelessMargin = 1.2; // given up when its fastest sample exceeds the best median by this
  double limitSeconds = 10;    // of a candidate's samples and warm-up; three samples must do then
};

// Refused: numbers of samples that contradict each other, margins below 1, limits that are not positive.
Status checkTimingOptions(const TimingOptions &options);

// What samples in microseconds say; all 0 for none.
struct Statistics {
  double medianUs = 0; // the mean of the middle two for an even number
  double minUs = 0;
  double spread = 0; // interquartile range over median, by linear interpolation
};
Statistics statisticsOf(std::vector<double> samplesUs);

struct Timing {
  Outcome outcome = Outcome::stopped; // measured, stopped or the outcome of a failure
  std::string message;                // empty if measured
  Statistics statistics;
  int samples = 0;
  int64_t smClockMhz = 0;     // at the last sample; 0 unknown
  double powerWatts = 0;      // likewise
  double seconds = 0;         // this candidate's share of the run
  bool isInterrupted = false; // stopped from outside: says nothing about the candidate
};

// What is known, and asked, while candidates are timed. bestUs = infinity if nothing is known.
struct TimingRun {
  const TimingOptions &options;
  double bestUs;
  const Clock &clock;
  std::function<bool()>
      isInterrupted; // asked before every launch; once true, what has fewer than minSamples is stopped
};

// Times the candidates side by side: in every round each that is still active gives one sample, the
// first place rotating. A candidate leaves when it has enough samples, fails, passes the limit, or is
// hopeless against min(bestUs, best median of the run so far).
// The answer has the order of the candidates. The evaluator is not recovered here.
std::vector<Timing> timeInterleaved(Evaluator &evaluator, const std::vector<Candidate *> &candidates,
                                    const TimingRun &run);

} // namespace heddle::tuner
