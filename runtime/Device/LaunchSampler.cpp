#include "runtime/Device/LaunchSampler.h"

#include "runtime/Core/DriftWatch.h"
#include "runtime/Device/LoadedKernel.h"

#include <cmath>
#include <ctime>
#include <utility>

namespace heddle {
namespace {

bool isCaptured(const Driver &driver, cuda::Stream stream) {
  int capture = cuda::kCaptureStatusNone;
  return driver.streamIsCapturing &&
         (driver.streamIsCapturing(stream, &capture) != cuda::kSuccess || capture != cuda::kCaptureStatusNone);
}

bool isTaken(std::atomic<int> &phase, int from, int to) {
  return phase.compare_exchange_strong(from, to, std::memory_order_acquire, std::memory_order_relaxed);
}

bool isCallOf(const DriftWatch &watch, const LoadedKernel &kernel, const CallInputs &call) {
  const ExactProblem &problem = watch.problem();
  const LaunchSymbols &symbols = call.symbols;
  const std::pair<LaunchSymbol, int64_t> sizes[] = {
      {LaunchSymbol::batch, problem.batch},     {LaunchSymbol::heads, problem.heads},
      {LaunchSymbol::kvHeads, problem.kvHeads}, {LaunchSymbol::seqlenQ, problem.seqlenQ},
      {LaunchSymbol::seqlenK, problem.seqlenK}, {LaunchSymbol::kOrigin, problem.kOrigin}};
  for (const auto &[symbol, wanted] : sizes)
    if (symbols[symbol] != wanted)
      return false;
  if (kernel.needs.serves.qOrigin == QOriginRule::given && call.args.q_origin != problem.qOrigin)
    return false;
  const std::vector<int64_t> &wanted = watch.arguments();
  for (size_t i = 0; i < size_t(kernel.needs.paramCount) && i < size_t(kMaxArguments); ++i)
    if ((kernel.needs.sizeMask >> i & 1) && (i >= wanted.size() || call.runtimeSizes[i] != wanted[i]))
      return false;
  return true;
}

// Two events hold up the GPU for so long (H200), and one timed launch in kCheapEvery or fewer takes at most this share of it.
constexpr double kEventSeconds = 3.6e-6, kEventShare = 0.005;
constexpr uint32_t kCheapEvery = 64;

// Of its turns, one in so many is timed: more than one where launches are so short that events would take more.
int64_t turnsBetween(const KernelRow &row, uint32_t every) {
  const double seconds = row.recentSample.get();
  if (every < kCheapEvery || seconds <= 0)
    return 1;
  return int64_t(std::ceil(kEventSeconds / (kEventShare * every * seconds)));
}

DriftWatch *watchOf(const LoadedKernel &kernel, const CallInputs &call) {
  DriftWatch *watch = kernel.row->watches.load(std::memory_order_acquire);
  while (watch && !isCallOf(*watch, kernel, call))
    watch = watch->next();
  return watch;
}

} // namespace

LaunchSampler::Sample *LaunchSampler::begin(const LoadedKernel &kernel, cuda::Stream stream, const CallInputs &call) {
  const DeviceState &state = *kernel.device.state();
  KernelRow &row = *kernel.row;
  const uint32_t every = Counters::get().sampleEvery.load(std::memory_order_relaxed);
  const Driver &driver = *state.driver;
  const int64_t launch = row.turns.next();
  if (every == 0 || launch % every != 0 || launch / every % turnsBetween(row, every) != 0 || isCaptured(driver, stream))
    return nullptr;
  collect(state);
  const RelaxedCapture relaxed(driver);
  for (Sample &sample : samples) {
    if (!isTaken(sample.phase, isFree, isHeld))
      continue;
    sample.row = &row;
    sample.watch = watchOf(kernel, call);
    bool isGood = true;
    for (cuda::Event &event : sample.events)
      isGood = isGood && (event || driver.eventCreate(&event, cuda::kEventDefault) == cuda::kSuccess);
    if (isGood && driver.eventRecord(sample.events[0], stream) == cuda::kSuccess)
      return &sample;
    sample.phase.store(isFree, std::memory_order_release);
    break;
  }
  Counters::get().lostSamples.add();
  return nullptr;
}

void LaunchSampler::end(const DeviceState &state, cuda::Stream stream, Sample &sample, bool isLaunched) {
  const bool isGood = isLaunched && state.driver->eventRecord(sample.events[1], stream) == cuda::kSuccess;
  sample.phase.store(isGood ? isUnderWay : isFree, std::memory_order_release);
}

void LaunchSampler::collect(const DeviceState &state) {
  const Driver &driver = *state.driver;
  const RelaxedCapture relaxed(driver);
  for (Sample &sample : samples) {
    if (!isTaken(sample.phase, isUnderWay, isHeld))
      continue;
    const cuda::Code code = driver.eventQuery(sample.events[1]);
    float milliseconds = 0;
    if (code == cuda::kSuccess &&
        driver.eventElapsedTime(&milliseconds, sample.events[0], sample.events[1]) == cuda::kSuccess) {
      const double seconds = double(milliseconds) * 1e-3;
      sample.row->samples.add(seconds), sample.row->recentSample.add(seconds);
      if (sample.watch)
        sample.watch->sample(double(milliseconds) * 1e3, std::time(nullptr));
    }
    sample.phase.store(code == cuda::kErrorNotReady ? isUnderWay : isFree, std::memory_order_release);
  }
}

void LaunchSampler::close(const DeviceState &state) {
  for (Sample &sample : samples)
    for (cuda::Event event : sample.events)
      if (event) {
        ContextScope scope(state);
        state.driver->eventDestroy(event);
      }
}

} // namespace heddle
