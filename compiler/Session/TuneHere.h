// Owns where `heddle tune` and `heddle sweep run` search. Tests link another place in its stead (tests/recorded), which
// answers from tables of what was measured.
#pragma once

#include "compiler/Session/TuneSession.h"

namespace heddle {

/// One GPU of this machine: its number among those that the driver shows, and its name.
struct SweepGpu {
  int ordinal = 0;
  std::string name;
};

/// Those of the numbers that are given, as Device::open() takes them; of none all. unavailable: no driver, or no such GPU.
Result<std::vector<SweepGpu>> gpusHere(const std::vector<int> &ordinals);

/// tune() on the first GPU.
Result<TuneOutcome> tuneHere(const PatternFile &file, const TuneRequest &request, Store &store);

} // namespace heddle
