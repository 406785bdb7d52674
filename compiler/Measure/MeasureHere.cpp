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

/// A call, and what it should give.
struct CheckedCall {
  DeviceProblem problem;
  std::unique_ptr<const oracle::KindReference> reference;
};

/// What every candidate shares.
struct Bench {
  CheckedCall call;
  std::optional<CheckedCall> shorter; ///< for gradients of arguments, where `call` has too many pairs to compare them
  LaunchTimer timer;
};

AttentionSizes sizesOf(const MeasureSetup &setup, const ProblemShape &shape) {
  return {shape.batch, shape.seqlenQ, shape.seqlenK, shape.heads, shape.kvHeads, setup.headDim, setup.valueDim};
}

/// The same call on so few queries and keys that gradients of arguments are compared; its tensors are made.
Result<ProblemShape> shortened(const PatternFile &file, const MeasureSetup &setup) {
  constexpr int64_t kPairs = int64_t(1) << 20; // take the definition a second
  ProblemShape shape = setup.shape;
  shape.batch = 1;
  while (shape.heads * shape.seqlenQ * shape.seqlenK > kPairs && shape.seqlenQ > 1)
    shape.seqlenQ = (shape.seqlenQ + 1) / 2, shape.seqlenK = (shape.seqlenK + 1) / 2;
  HEDDLE_TRY(bindOperands(file, {{}, {}, OperandSources::Missing::make}, shape));
  return shape;
}

class HereMeasurer : public KernelMeasurer {
public:
  HereMeasurer(const Device &device, const PatternFile &file, const MeasureSetup &setup)
      : device(device), file(file), setup(setup) {}

  Status ready() override {
    if (bench)
      return Status();
    HEDDLE_ASSIGN(CheckedCall call, callOf(setup.shape, setup.verifiedRows));
    std::optional<CheckedCall> shorter;
    if (!setup.kind.gradientsOf.empty() && !oracle::comparesArguments(sizesOf(setup, setup.shape))) {
      HEDDLE_ASSIGN(const ProblemShape shape, shortened(file, setup));
      HEDDLE_ASSIGN(shorter, callOf(shape, setup.verifiedRows));
    }
    HEDDLE_ASSIGN(LaunchTimer timer, LaunchTimer::create(device, setup.launchLimitSeconds));
    if (Result<ConditionMeter> opened = ConditionMeter::open(device.info().pciBusId))
      meter.emplace(opened.take());
    bench.emplace(Bench{std::move(call), std::move(shorter), std::move(timer)});
    return Status();
  }

  tuner::Verification verify(int64_t candidate, const KernelRecord &record) override {
    tuner::Verification result;
    Result<oracle::KindReport> report = runOnce(candidate, record);
    if (!report)
      result.failure = launchFailure(report.status());
    else if (result.maxError = report->worst().maxError; !report->isOk())
      result.failure = tuner::Failure{tuner::Outcome::wrong, wrongness(*report)};
    else if (bench->shorter)
      result.failure = failureOfShorter(candidate);
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

  Status checkInputs() override { return bench->call.problem.checkInputs(); }

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
  Result<AttentionInputs> inputsOf(const AttentionSizes &sizes) const {
    if (!setup.served.isGiven())
      return randomAttentionInputs(sizes, setup.elements.q, setup.seed, setup.kind,
                                   {{}, {}, setup.elements.k, setup.elements.scaleRows});
    HEDDLE_ASSIGN(ServedBatch batch, randomServedBatch(sizes, setup.served, setup.elements, setup.kind, setup.seed));
    return std::move(batch.inputs);
  }

  Result<CheckedCall> callOf(const ProblemShape &shape, int64_t rows) const {
    const float scale = setup.scale != 0 ? setup.scale : 1 / std::sqrt(static_cast<float>(setup.headDim));
    HEDDLE_ASSIGN(AttentionInputs inputs, inputsOf(sizesOf(setup, shape)));
    inputs.precision = setup.elements.precision;
    HEDDLE_TRY(addFromForward(inputs, [&](const AttentionInputs &given) {
      return launchOnce(device, {file, shape, given, scale}, setup.forward);
    }));
    const bool writesOut = setup.kind.base == KindBase::forward;
    const DeviceCall call{file, shape, inputs, scale, writesOut ? std::optional(setup.elements.out) : std::nullopt};
    HEDDLE_ASSIGN(DeviceProblem problem, DeviceProblem::create(device, call));
    return CheckedCall{std::move(problem), oracle::referenceOf(definitionOf(call), rows)};
  }

  /// The candidate is loaded, and right on the call that is timed.
  std::optional<tuner::Failure> failureOfShorter(int64_t candidate) {
    const Kernel &kernel = loaded.find(candidate)->second.kernel;
    auto run = [&]() -> Result<oracle::KindReport> {
      HEDDLE_TRY(bench->shorter->problem.poison());
      HEDDLE_ASSIGN(const AttentionArgs args, bench->shorter->problem.argumentsFor(kernel));
      HEDDLE_TRY(bench->timer.time([&] { return kernel.launch(nullptr, args); }).status());
      return bench->shorter->problem.compare(*bench->shorter->reference);
    };
    const Result<oracle::KindReport> report = run();
    if (!report)
      return launchFailure(report.status());
    if (report->isOk())
      return std::nullopt;
    return tuner::Failure{tuner::Outcome::wrong, "on a shorter call: " + wrongness(*report)};
  }

  Result<const PreparedLaunch *> load(int64_t candidate, const KernelRecord &record) {
    auto known = loaded.find(candidate);
    if (known == loaded.end()) {
      HEDDLE_ASSIGN(Kernel kernel, Kernel::load(device, record));
      HEDDLE_ASSIGN(AttentionArgs args, bench->call.problem.argumentsFor(kernel));
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
    HEDDLE_TRY(bench->call.problem.poison());
    HEDDLE_TRY(timeOnce(candidate, record).status());
    return bench->call.problem.compare(*bench->call.reference);
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
