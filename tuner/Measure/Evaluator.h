// A point goes through three stages: prepare (compile), verify (is the result right), sample (how long
// does one launch take). The evaluator knows kernels and devices; the tuner only sees the stages.
#pragma once

#include "tuner/Space/Trial.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace heddle::tuner {

// Why a stage did not succeed. Never `measured` or `stopped`.
struct Failure {
  Outcome outcome = Outcome::compileFailed;
  std::string message;
};

// What prepare made of a point. It holds whatever verify and sample need to load the kernel, so it
// survives recover(). Created on any thread, used and destroyed on the measuring thread, or on a
// preparing thread if nobody waits for it any more.
class Candidate {
public:
  virtual ~Candidate() = default;
};

struct Preparation {
  std::optional<Failure> failure;
  std::shared_ptr<Candidate> candidate; // set unless there is a failure
  int64_t registers = 0;
  int64_t spillBytes = 0;
};

struct Verification {
  std::optional<Failure> failure;
  double maxError = 0;
};

struct Sample {
  std::optional<Failure> failure;
  double us = 0;
  int64_t smClockMhz = 0; // at about this time; 0 unknown
  double powerWatts = 0;  // likewise
};

// prepare is called from several threads at once; all other members are called from the one thread
// that runs the session. An exception that leaves a stage counts as that stage's failure.
class Evaluator {
public:
  virtual ~Evaluator() = default;
  // Compiles the point. `stop` becomes true when the result is no longer wanted (time limit, end
  // of the session): return early with any failure. A call that ignores it keeps its thread, and the
  // evaluator, alive until it returns.
  virtual Preparation prepare(const Point &point, const std::atomic<bool> &stop) = 0;
  // Called before every verify, while points are being prepared already: waits until candidates can be
  // measured, the first time. A failure ends the session.
  virtual Status ready() { return Status(); }
  // Runs the candidate once and compares its result with a reference.
  virtual Verification verify(Candidate &candidate) = 0;
  // One timed launch of a verified candidate, in microseconds of device time. Whatever makes samples
  // comparable (flushing the L2 cache, resetting a counter) happens inside, before the timed part.
  // A launch that does not end is the evaluator's to detect: Outcome::timedOut.
  virtual Sample sample(Candidate &candidate) = 0;
  // Called for the winner at last: whether it left alone what is not its to write. A failure takes the win away.
  virtual Verification confirm(Candidate &) { return {}; }
  // Called after verify or sample failed to launch or timed out: puts the device into a state in which
  // other candidates run. A failure ends the session, before it blames the next points.
  virtual Status recover() { return Status(); }
};

// The stages with exceptions turned into failures.
Preparation guardedPrepare(Evaluator &evaluator, const Point &point, const std::atomic<bool> &stop);
Verification guardedVerify(Evaluator &evaluator, Candidate &candidate);
Sample guardedSample(Evaluator &evaluator, Candidate &candidate);
Verification guardedConfirm(Evaluator &evaluator, Candidate &candidate);

} // namespace heddle::tuner
