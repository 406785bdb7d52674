#include "compiler/Measure/GpuConditions.h"

#include <chrono>
#include <dlfcn.h>

namespace heddle {
namespace {

// These are numbers of nvml.h, part of its binary interface.
constexpr int kSuccess = 0, kClockSm = 1;
constexpr double kMilliwatts = 1000;
constexpr int64_t kPauseNs = 20'000'000;

int64_t nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <class F> F functionOf(void *library, const char *name) { return reinterpret_cast<F>(dlsym(library, name)); }

} // namespace

Result<ConditionMeter> ConditionMeter::open(const std::string &pciBusId, const std::string &library) {
  void *opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL); // stays open: it is the process's
  if (!opened)
    return Status::unavailable("no clock and power: " + library + " cannot be opened");
  const auto init = functionOf<int (*)()>(opened, "nvmlInit_v2");
  const auto find = functionOf<int (*)(const char *, void **)>(opened, "nvmlDeviceGetHandleByPciBusId_v2");
  const auto clock = functionOf<ReadClock>(opened, "nvmlDeviceGetClockInfo");
  const auto power = functionOf<ReadNumber>(opened, "nvmlDeviceGetPowerUsage");
  if (!init || !find || !clock || !power)
    return Status::unavailable("no clock and power: " + library + " lacks a function");
  void *device = nullptr;
  if (int error = init() == kSuccess ? find(pciBusId.c_str(), &device) : -1; error != kSuccess)
    return Status::unavailable("no clock and power: " + library + " does not know the GPU at " + pciBusId);
  return ConditionMeter(device, clock, power);
}

Conditions ConditionMeter::read() {
  const int64_t now = nowNs();
  if (askedAtNs >= 0 && now - askedAtNs < kPauseNs)
    return last;
  askedAtNs = now;
  unsigned mhz = 0, milliwatts = 0;
  last.smClockMhz = clock(device, kClockSm, &mhz) == kSuccess ? int64_t(mhz) : 0;
  last.powerWatts = power(device, &milliwatts) == kSuccess ? milliwatts / kMilliwatts : 0;
  return last;
}

} // namespace heddle
