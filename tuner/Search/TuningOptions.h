// Owns what a session is told of time, threads and finalists, and what it tells of its progress.
#pragma once

#include "tuner/Measure/Timing.h"

#include <atomic>
#include <functional>
#include <string>

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

} // namespace heddle::tuner
