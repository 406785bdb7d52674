#include "runtime/Core/DriftWatch.h"

#include <cstdlib>
#include <mutex>

namespace heddle {
namespace {

constexpr int kMostWatches = 64;    // of a kernel
constexpr double kShortestUs = 100; // beside which a few microseconds of events are no slowdown of 5%

// Held by this thread, or by another one.
class TryLock {
public:
  explicit TryLock(std::atomic_flag &flag) : flag(flag), isMine(!flag.test_and_set(std::memory_order_acquire)) {}
  ~TryLock() {
    if (isMine)
      flag.clear(std::memory_order_release);
  }
  TryLock(const TryLock &) = delete;
  TryLock &operator=(const TryLock &) = delete;
  explicit operator bool() const { return isMine; }

private:
  std::atomic_flag &flag;
  const bool isMine;
};

} // namespace

DriftWatch::DriftWatch(KernelRow &row, const ExactProblem &problem, double expectedUs)
    : row(row), exact(problem), text(problem.str()), test(expectedUs) {
  char *end = nullptr;
  for (const char *place = exact.arguments.c_str(); *place; place = end) {
    values.push_back(std::strtoll(place, &end, 10));
    if (end == place)
      break;
  }
}

void DriftWatch::add(KernelRow &row, const ExactProblem &problem, double expectedUs) {
  static std::mutex mutex;
  if (expectedUs < kShortestUs || problem.arguments.find(':') != std::string::npos)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  DriftWatch *first = row.watches.load(std::memory_order_acquire);
  int count = 0;
  for (const DriftWatch *watch = first; watch; watch = watch->behind, ++count)
    if (watch->text == problem.str()) {
      if (watch->test.expected() == expectedUs)
        return;
      break;
    }
  if (count == kMostWatches)
    return;
  auto *watch = new DriftWatch(row, problem, expectedUs);
  watch->behind = first;
  row.watches.store(watch, std::memory_order_release);
}

void DriftWatch::fill(heddle_drift &drift) const {
  const Drift &found = test.found();
  drift = {sizeof(drift),      int32_t(found.samples), row.kernel.c_str(), row.pattern.c_str(),
           row.device.c_str(), row.bus.c_str(),        text.c_str(),       found.expectedUs,
           found.medianUs,     found.spreadUs,         found.factor(),     found.sinceUnix};
}

void DriftWatch::sample(double us, int64_t unixSeconds) {
  heddle_drift drift;
  {
    const TryLock lock(isHeld);
    if (!lock)
      return;
    const bool isNew = test.add(us, unixSeconds);
    slow.store(test.isSlow(), std::memory_order_release);
    if (!isNew)
      return;
    fill(drift);
  }
  row.drifts.add();
  if (const DriftListener *listener = Counters::get().listener.load(std::memory_order_acquire))
    if (listener->found)
      listener->found(listener->user, &drift);
}

bool DriftWatch::describe(heddle_drift &drift) {
  const TryLock lock(isHeld);
  if (lock)
    fill(drift);
  return bool(lock);
}

bool slowKernel(const Counters &counters, int index, heddle_drift &drift) {
  for (int i = 0; i < counters.rowCount(); ++i)
    for (DriftWatch *watch = counters.row(i).watches.load(std::memory_order_acquire); watch; watch = watch->next())
      if (watch->isSlow() && index-- == 0)
        return watch->describe(drift);
  return false;
}

} // namespace heddle
