#include "compiler/Tools/BenchLaunch.h"

#include <algorithm>

namespace heddle::cli {

static double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Result<ChosenKernel> kernelFor(const BenchSetup &setup, const Kind &kind) {
  HEDDLE_ASSIGN(const GpuArch *arch, archOf(setup.device));
  HEDDLE_ASSIGN(StoreStack stores, setup.database.openForLookup());
  const Workload &workload = setup.workload;
  KernelShape shape{workload, arch, workload.shape.seqlenQ};
  shape.kind = kind;
  return chooseKernel({setup.file, workload.shape, shape, kind == workload.kind ? setup.config : ""}, stores,
                      setup.device);
}

Result<std::vector<double>> timeInTurn(const BenchSetup &setup, const std::vector<Launch> &launches) {
  HEDDLE_ASSIGN(LaunchTimer timer, LaunchTimer::create(setup.device));
  constexpr int kWarmups = 3;
  std::vector<std::vector<double>> times(launches.size());
  for (int64_t i = -kWarmups; i < setup.repetitions; ++i)
    for (size_t each = 0; each < launches.size(); ++each) {
      HEDDLE_ASSIGN(const double us, timer.time(launches[each]));
      if (i >= 0)
        times[each].push_back(us);
    }
  std::vector<double> medians;
  for (std::vector<double> &of : times)
    medians.push_back(median(std::move(of)));
  return medians;
}

Result<LoadedLaunch> loadFor(DeviceProblem &problem, const BenchSetup &setup, const KernelRecord &record) {
  HEDDLE_ASSIGN(Kernel kernel, Kernel::load(setup.device, record));
  HEDDLE_ASSIGN(AttentionArgs args, problem.argumentsFor(kernel));
  HEDDLE_ASSIGN(PreparedLaunch launch, kernel.prepare(args));
  return LoadedLaunch{std::move(kernel), std::move(launch)};
}

Status checkSkeleton(const BenchSetup &setup, const ConfigSummary &config) {
  if (setup.skeleton.empty() || config.skeleton == setup.skeleton)
    return {};
  return Status::unsupported("the fastest kernel that " + setup.database.path() + " knows is of " + config.skeleton +
                             ", not of " + setup.skeleton + "; give a database of its own with --db");
}

} // namespace heddle::cli
