// Owns the last step of a session: the finalists are timed in turn within one run, so that the drift of
// the device between their trials does not decide. Kept apart because it follows other rules than the
// search: points may be prepared and measured again here, and only here.
#pragma once

#include "tuner/Search/TuningOptions.h"

namespace heddle::tuner {

// A usable trial and what was prepared of it; null if it comes from an earlier session.
struct Entrant {
  PointTrial trial;
  std::shared_ptr<Candidate> candidate;
};

struct FinalConditions {
  std::shared_ptr<Evaluator> evaluator;
  std::shared_ptr<const Clock> clock;
  const TuningOptions &options;
  std::function<bool()> isInterrupted;
};

struct FinalResult {
  std::vector<Entrant> ranking;   // best first, with the times of this run; empty if it was interrupted
  std::vector<PointTrial> failed; // entrants that failed now, with the reason
  Status deviceStatus;            // why the device did not recover from one of them
  double compileSeconds = 0;
  double measureSeconds = 0;
};

// Prepares and verifies entrants without a candidate, then times all of them together. An entrant whose
// preparation is interrupted takes part in nothing, which ends the final without a ranking.
FinalResult timeFinal(const FinalConditions &conditions, std::vector<Entrant> entrants);

} // namespace heddle::tuner
