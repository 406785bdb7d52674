//===- MeasureHere.cpp - candidates on a GPU of this process --------------===//
#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Measure/GpuConditions.h"
#include "compiler/Measure/KernelMeasurer.h"

#include <cmath>
#include <map>

namespace heddle {
namespace {

/// A kernel with the frozen call that launches it.
struct LoadedCandidate {
  Kernel kernel;
  PreparedLaunch launch;
};

/// What every candidate shares.
struct Bench {
  DeviceProblem problem;
  LaunchTimer timer;
  std::unique_ptr<const oracle::KindReference> reference;
};

class HereMeasurer : public KernelMeasurer {
public:
  HereMeasurer(const Device &device, const PatternFile &file, const MeasureSetup &setup)
      : device(device), file(file), setup(setup) {}

  Status ready() override {
    if (bench)
      return Status();
    const ProblemShape &shape = setup.shape;
    const float scale = setup.scale != 0 ? setup.scale : 1 / std::sqrt(static_cast<float>(setup.headDim));
    const AttentionSizes sizes{shape.batch,   shape.seqlenQ, shape.seqlenK, shape.heads,
                               shape.kvHeads, setup.headDim, setup.valueDim};
    HEDDLE_ASSIGN(const KindSpec *kind, findKind(setup.kind));
    HEDDLE_ASSIGN(AttentionInputs inputs, randomAttentionInputs(sizes, setup.dtype, setup.seed, *kind));
    HEDDLE_TRY(addFromForward(inputs, [&](const AttentionInputs &given) {
      return launchOnce(device, {file, shape, given, scale}, setup.forward);
    }));
    HEDDLE_ASSIGN(DeviceProblem problem, DeviceProblem::create(device, {file, shape, inputs, scale}));
    HEDDLE_ASSIGN(LaunchTimer timer, LaunchTimer::create(device, setup.launchLimitSeconds));
    if (Result<ConditionMeter> opened = ConditionMeter::open(device.info().pciBusId))
      meter.emplace(opened.take());
    bench.emplace(Bench{std::move(problem), std::move(timer),
                        oracle::referenceOf(definitionOf({file, shape, inputs, scale}), setup.verifiedRows)});
    return Status();
  }

  tuner::Verification verify(int64_t candidate, const KernelRecord &record) override {
    tuner::Verification result;
    Result<oracle::KindReport> report = runOnce(candidate, record);
    if (!report)
      result.failure = launchFailure(report.status());
    else if (result.maxError = report->worst().maxError; !report->isOk())
      result.failure = tuner::Failure{tuner::Outcome::wrong, wrongness(*report)};
    return result;
  }

  tuner::Sample sample(int64_t candidate, const KernelRecord &record) override {
    Result<double> us = timeOnce(candidate, record);
    if (!us)
      return {launchFailure(us.status()), 0};
    const Conditions now = meter ? meter->read() : Conditions();
    return {std::nullopt, *us, now.smClockMhz, now.powerWatts};
  }

  void release(int64_t candidate) override { loaded.erase(candidate); }

  Status checkInputs() override { return bench->problem.checkInputs(); }

  Status renew() override {
    loaded.clear();
    bench.reset();
    return ready();
  }

  Status recover() override {
    if (device.isAbandoned())
      return Status::unavailable(
          "a kernel that never ends holds the GPU, and its context is lost to this process; what was "
          "measured is recorded, the same command goes on without this configuration");
    return device.synchronize();
  }

private:
  Result<const PreparedLaunch *> load(int64_t candidate, const KernelRecord &record) {
    auto known = loaded.find(candidate);
    if (known == loaded.end()) {
      HEDDLE_ASSIGN(Kernel kernel, Kernel::load(device, record));
      HEDDLE_ASSIGN(AttentionArgs args, bench->problem.argumentsFor(kernel));
      HEDDLE_ASSIGN(PreparedLaunch launch, kernel.prepare(args));
      known = loaded.emplace(candidate, LoadedCandidate{std::move(kernel), std::move(launch)}).first;
    }
    return &known->second.launch;
  }

  Result<double> timeOnce(int64_t candidate, const KernelRecord &record) {
    HEDDLE_ASSIGN(const PreparedLaunch *launch, load(candidate, record));
    return bench->timer.time([&] { return launch->launch(nullptr); });
  }

  Result<oracle::KindReport> runOnce(int64_t candidate, const KernelRecord &record) {
    HEDDLE_TRY(bench->problem.poison());
    HEDDLE_TRY(timeOnce(candidate, record).status());
    return bench->problem.compare(*bench->reference);
  }

  tuner::Failure launchFailure(const Status &status) const {
    return {device.isAbandoned() ? tuner::Outcome::timedOut : tuner::Outcome::launchFailed, status.message()};
  }

  static std::string wrongness(const oracle::KindReport &report) {
    std::string text;
    for (const oracle::RoleReport &role : report.roles)
      text += (text.empty() ? "error of " : "; of ") + role.name() + " " + std::to_string(role.maxError) +
              ", allowed " + std::to_string(role.allowedError);
    return text;
  }

  Device device;
  const PatternFile &file;
  MeasureSetup setup;
  std::optional<Bench> bench;
  std::optional<ConditionMeter> meter; ///< where there is one
  std::map<int64_t, LoadedCandidate> loaded;
};

} // namespace

std::unique_ptr<KernelMeasurer> measureHere(const Device &device, const PatternFile &file, const MeasureSetup &setup) {
  return std::make_unique<HereMeasurer>(device, file, setup);
}

} // namespace heddle
