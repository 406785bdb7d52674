// Owns the loop: the strategy proposes, a pool prepares ahead, one thread verifies and times, every trial
// goes to the sink at once, and the fastest correct point wins. Numbered promises, each named by a test
// in tests/unit/tuning_{session,threads,final}_test.cpp:
//  [1] Only a point that was verified and measured to the end wins; ties go to the smaller text.
//  [2] A trial is recorded before the next point is measured. A point that the sink knows is neither
//      prepared nor measured by the search, in this session or any later one.
//  [3] A failure of one point is a trial with a reason and does not end the session.
//  [4] No launch begins after the budget, which does not count the wait for an evaluator to get ready; what is being
//  prepared then is dropped without a trial. [5] Cancellation keeps everything recorded so far, and names the best of
//  it. [6] The same strategy, seed and trials give the same winner, however often the work was interrupted,
//      as long as times repeat and the session ran to the end without a final.
#pragma once

#include "tuner/Search/TuningOptions.h"
#include "tuner/Space/Trial.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace heddle::tuner {

// What a session works on. Space, sink and cancel flag must outlive the call; evaluator and clock are
// shared, since a preparation that hangs may outlive it.
struct TuningTask {
  const SearchSpace *space = nullptr;
  std::shared_ptr<Evaluator> evaluator;
  TrialSink *sink = nullptr;
  std::string strategy = "exhaustive";        // specification for orderPoints
  std::vector<std::string> first;             // texts of points that are tried before any of the strategy's, in this
                                              // order; what is no feasible point is left out
  std::function<double(const Point &)> prior; // estimated cost without running anything; may be null
  std::string incumbent;              // text of the winner published earlier, empty for none: stays the winner if
                                      // this session measures nothing, and takes part in the final
  std::shared_ptr<const Clock> clock; // null for the clock of the machine
};

enum class EndReason { exhausted, budget, cancelled };
// "exhausted", "budget", "cancelled".
const char *endReasonName(EndReason reason);

struct TuningResult {
  std::optional<PointTrial> winner;     // with the median of the final if there was one
  std::shared_ptr<Candidate> candidate; // of the winner; null if the winner was not prepared here
  EndReason end = EndReason::exhausted;
  size_t feasible = 0;
  uint64_t examined = 0;                        // points before the constraints
  size_t known = 0;                             // usable or not, from the sink
  size_t measuredNow = 0;                       // trials recorded by this session
  std::array<size_t, kOutcomeCount> outcomes{}; // of known and new trials, by Outcome
  std::vector<PointTrial> finalists;            // timings of the final, best first; empty without a final
  double compileSeconds = 0;                    // summed over threads
  double measureSeconds = 0;
  double elapsedSeconds = 0;
  std::optional<double> firstUsableSeconds; // until the first usable trial of this session
};

// Runs a session to its end on the calling thread. Failures: invalid options (a budget of 0 or less,
// negative counts), a space without feasible points (the message says which constraint refused how
// many), an unknown strategy, a sink that does not answer or record, a device that does not recover, too
// many preparations that hang. A session in which every point fails is not a failure: no winner.
Result<TuningResult> runTuningSession(const TuningTask &task, const TuningOptions &options);

} // namespace heddle::tuner
