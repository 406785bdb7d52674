// Owns the choice of a workload's kernel and the times of launches in turn.
#pragma once

#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Session/ChooseKernel.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Tools/Options.h"

#include <functional>

namespace heddle::cli {

struct Workload : CallShape {
  ProblemShape shape = {};
};

struct BenchSetup {
  const PatternFile &file;
  Workload workload;
  Device device;
  DatabaseOptions database;
  std::string config;   ///< changes to the default: compiled now, whatever the database has; or empty
  std::string skeleton; ///< what the kernel must be of; or empty
  int64_t verifiedRows, repetitions;
};

/// Of calls of the kind: that of the workload, forward for what such calls read, or one to compare with.
Result<ChosenKernel> kernelFor(const BenchSetup &setup, const Kind &kind);

using Launch = std::function<Status()>;

/// Medians of launches in turn, so that all see the same clock, in microseconds; the L2 is flushed before each.
Result<std::vector<double>> timeInTurn(const BenchSetup &setup, const std::vector<Launch> &launches);

/// Loaded for the tensors of a problem.
struct LoadedLaunch {
  Kernel kernel;
  PreparedLaunch launch;
};
Result<LoadedLaunch> loadFor(DeviceProblem &problem, const BenchSetup &setup, const KernelRecord &record);

/// What of the kernel of a skeleton that was asked for is another one.
Status checkSkeleton(const BenchSetup &setup, const ConfigSummary &config);

} // namespace heddle::cli
