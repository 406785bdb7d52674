// Owns files in which processes left their drifts (heddle_stats.h): the JSON of heddle.stats(), or lines of JSON, each of
// one heddle_drift.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::report {

/// heddle_drift, by its names.
struct SlowKernel {
  std::string file; ///< that says so
  std::string kernel, pattern, device, bus, problem;
  double expectedUs = 0, medianUs = 0, spreadUs = 0, factor = 0;
  int64_t samples = 0, sinceUnix = 0;
};

/// In the order of the file; of two lines of one kernel on one GPU for one problem the later. notFound: no such file;
/// invalidArgument: names the file, the line and the key that is wrong.
Result<std::vector<SlowKernel>> readSlowKernels(const std::string &path);

} // namespace heddle::report
