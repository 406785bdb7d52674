// Owns the test of one kernel's times for one problem, and who is told. Watches are never freed: launches hold them.
#pragma once

#include "runtime/Core/Counters.h"
#include "runtime/Core/Drift.h"
#include "runtime/Core/KernelRecord.h"
#include "runtime/Include/heddle_stats.h"

#include <vector>

namespace heddle {

struct DriftListener {
  heddle_drift_found found;
  void *user;
};

// Thread safe, without a lock.
class DriftWatch {
public:
  // The front one for the problem is that of the last time that was stored. What more than 64 of a kernel would be is not
  // watched, nor are problems with tensors that masks read, as what these hold is not known of a call, nor times below
  // 100 us.
  static void add(KernelRow &row, const ExactProblem &problem, double expectedUs);

  const ExactProblem &problem() const { return exact; }
  // Of the pattern, by their numbers.
  const std::vector<int64_t> &arguments() const { return values; }
  const DriftWatch *next() const { return behind; }
  DriftWatch *next() { return behind; }

  // A time of a launch. Left out while another thread adds one.
  void sample(double us, int64_t unixSeconds);
  bool isSlow() const { return slow.load(std::memory_order_acquire); }
  // What was found last; strings live as long as the process. False: another thread is adding to it.
  bool describe(heddle_drift &drift);

private:
  DriftWatch(KernelRow &row, const ExactProblem &problem, double expectedUs);
  void fill(heddle_drift &drift) const;

  KernelRow &row;
  const ExactProblem exact;
  const std::string text;
  std::vector<int64_t> values;
  DriftWatch *behind = nullptr;
  std::atomic_flag isHeld = ATOMIC_FLAG_INIT; // guards test
  DriftTest test;
  std::atomic<bool> slow{false};
};

// The watch that is slow now, number `index` of them; false: there are not so many.
bool slowKernel(const Counters &counters, int index, heddle_drift &drift);

} // namespace heddle
