//===- TuningSession.h - from a space and a budget to a winner --------------===//
// Owns the loop: the strategy proposes, a pool prepares ahead, one thread verifies and times, every trial
// goes to the sink at once, and the fastest correct point wins. Numbered promises, each named by a test
// in tests/unit/tuning_{session,threads,final}_test.cpp:
//  [1] Only a point that was verified and measured to the end wins; ties go to the smaller text.
//  [2] A trial is recorded before the next point is measured. A point that the sink knows is neither
//      prepared nor measured by the search, in this session or any later one.
//  [3] A failure of one point is a trial with a reason and does not end the session.
//  [4] No launch begins after the budget, which does not count the wait for an evaluator to get ready; what is being prepared then is dropped without a trial.
//  [5] Cancellation keeps everything recorded so far, and names the best of it.
//  [6] The same strategy, seed and trials give the same winner, however often the work was interrupted,
//      as long as times repeat and the session ran to the end without a final.
#ifndef HEDDLE_TUNER_SEARCH_TUNINGSESSION_H
#define HEDDLE_TUNER_SEARCH_TUNINGSESSION_H

#include "tuner/Measure/Timing.h"
#include "tuner/Search/Trial.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace heddle::tuner {

// What a progress display can show. Called on the session's thread, after every trial.
struct Progress {
  size_t done = 0;   // trials of this session plus known ones that were met
  size_t total = 0;  // feasible points
  size_t failed = 0; // of done, those without a time
  double bestUs = 0; // best median so far, 0 for none
  std::string bestConfig;
  double elapsedSeconds = 0;
  double budgetSeconds = 0;
  bool isFinal = false; // the finalists are being timed side by side
};

struct TuningOptions {
  double budgetSeconds = 0; // must be set
  int workers = 2;          // threads that prepare; 0 prepares on the session's thread
  int ahead = 4;            // points in preparation or waiting, beyond the one being measured
  double prepareLimitSeconds = 60;
  int maxAbandoned = 8; // preparations that never return before the session gives up
  TimingOptions timing;
  int finalists = 5;                         // timed side by side at the end; 0 or 1 for no final
  double finalShare = 0.15;                  // of the budget, kept for the final
  const std::atomic<bool> *cancel = nullptr; // may be set from a signal handler
  std::function<void(const Progress &)> progress;
};

// What a session works on. Space, sink and cancel flag must outlive the call; evaluator and clock are
// shared, since a preparation that hangs may outlive it.
struct TuningTask {
  const SearchSpace *space = nullptr;
  std::shared_ptr<Evaluator> evaluator;
  TrialSink *sink = nullptr;
  std::string strategy = "halving";           // specification for createStrategy
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

#endif
