// Owns what NVIDIA's management library, opened at run time, says of the circumstances of a measurement. It is noted
// beside times, never used to correct them.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>

namespace heddle {

/// 0: unknown.
struct Conditions {
  int64_t smClockMhz = 0;
  double powerWatts = 0; ///< of the whole card, over about the last second
};

/// Used by one thread.
class ConditionMeter {
public:
  /// `pciBusId`: DeviceInfo's. unavailable: no library, or none that knows the GPU. A container may lack it.
  static Result<ConditionMeter> open(const std::string &pciBusId, const std::string &library = "libnvidia-ml.so.1");

  /// Asks the library at most every 20 ms, since an answer takes up to a millisecond.
  Conditions read();

private:
  using ReadNumber = int (*)(void *device, unsigned *value);
  using ReadClock = int (*)(void *device, int kind, unsigned *mhz);

  ConditionMeter(void *device, ReadClock clock, ReadNumber power) : device(device), clock(clock), power(power) {}

  void *device;
  ReadClock clock;
  ReadNumber power;
  Conditions last;
  int64_t askedAtNs = -1;
};

} // namespace heddle
