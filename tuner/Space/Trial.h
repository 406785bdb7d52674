// Owns the tuner's view of a trial: a point, how its attempt ended, and the numbers. Only `measured`
// can win. The stored form is heddle::Trial (runtime/Core/KernelRecord.h); toRecord and fromRecord
// are the only places where the two meet, and outcomeName is the spelling in the database.
#pragma once

#include "runtime/Core/KernelRecord.h"
#include "runtime/Core/Status.h"
#include "tuner/Space/SearchSpace.h"

#include <string>
#include <vector>

namespace heddle::tuner {

// How the attempt at one point ended.
enum class Outcome {
  measured,      // correct, timed to the end
  stopped,       // correct, timing given up because it could not win; medianUs is of what was taken
  compileFailed, // no binary
  spilled,       // compiled, but registers are spilled to memory
  wrong,         // ran, result outside the tolerance
  launchFailed,  // could not be loaded or launched, or failed while running
  timedOut,      // one of the stages passed its time limit
};
constexpr size_t kOutcomeCount = 7;

// "measured", "stopped", "compile_failed", "spilled", "wrong", "launch_failed", "timed_out".
const char *outcomeName(Outcome outcome);
Result<Outcome> parseOutcome(std::string_view name);
// True for everything but measured and stopped.
bool isFailure(Outcome outcome);

struct PointTrial : TrialNumbers {
  Point point;
  std::string config; // SearchSpace::text of the point
  Outcome outcome = Outcome::compileFailed;
  double spread = 0; // interquartile range over median
  int64_t samples = 0;
  double measureSeconds = 0; // verification, warm-up and samples

  bool isUsable() const { return outcome == Outcome::measured; }
};

// Strict weak order of usable trials: smaller median, then the text of the point. Deterministic
// whatever the order of measurement. A trial that is not usable comes after every usable one.
bool isBetter(const PointTrial &a, const PointTrial &b);

// The stored form under `key`. The median is kept of measured trials only; createdUnix is left to the
// store.
heddle::Trial toRecord(const SearchSpace &space, const PointTrial &trial, const WinnerKey &key);
// The inverse as far as the record goes (spread, samples and measureSeconds are not stored).
// Refused: a configuration outside `space`, an unknown outcome, a measured record without a time.
Result<PointTrial> fromRecord(const SearchSpace &space, const heddle::Trial &record);

// Where trials go as soon as they are complete, and where a session that resumes finds them.
// Called from one thread only, the one that runs the session.
class TrialSink {
public:
  virtual ~TrialSink() = default;
  // The trials of earlier sessions on the same problem. Points outside `space` are left out.
  virtual Result<std::vector<PointTrial>> known(const SearchSpace &space) = 0;
  // Keeps the trial, durably as far as the sink is durable, before it returns. A second trial of
  // one point replaces the first.
  virtual Status record(const SearchSpace &space, const PointTrial &trial) = 0;
};

} // namespace heddle::tuner
