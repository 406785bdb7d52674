//===- TuneSession.cpp - the fastest kernel for one problem ---------------===//
#include "compiler/Driver/TuneSession.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/ConfigSpace.h"
#include "compiler/Driver/Publish.h"
#include "tuner/Search/StoreSink.h"

#include <cmath>

namespace heddle {
namespace {

tuner::Knob toTunerKnob(const Knob &knob) {
  if (knob.labels.empty())
    return tuner::Knob::integers(knob.name, knob.values, knob.help);
  tuner::Knob result{knob.name, knob.help, {}};
  for (size_t i = 0; i < knob.values.size(); ++i)
    result.values.push_back({knob.values[i], knob.labels[i]});
  return result;
}

/// A compiled point; loaded when it is verified.
struct KernelCandidate : tuner::Candidate {
  KernelRecord record;
  std::optional<Kernel> kernel;
  std::optional<PreparedLaunch> launch;
};

tuner::Failure failureOf(tuner::Outcome outcome, const Status &status) { return {outcome, status.message()}; }

/// What compiling a point needs. Shared, because a compilation may still run when its session has ended.
struct PointCompiler {
  PreparedPattern prepared;
  KernelRequest request;
  const Skeleton *skeleton;
  std::shared_ptr<const ConfigSpace> configs;
  tuner::SearchSpace space;

  Result<CompiledVariant> compile(const tuner::Point &point) const {
    return compileVariant(prepared, request, configs->configAt(point.index));
  }
};

/// Compilation on any thread; verification and timing on the session's, within the life of problem and timer.
class KernelEvaluator : public tuner::Evaluator {
public:
  KernelEvaluator(std::shared_ptr<const PointCompiler> compiler, DeviceProblem &problem, LaunchTimer &timer,
                  const oracle::ReferenceRows &reference, const Device &device)
      : compiler(std::move(compiler)), problem(problem), timer(timer), reference(reference), device(device) {}

  tuner::Preparation prepare(const tuner::Point &point, const std::atomic<bool> &) override {
    tuner::Preparation result;
    Result<CompiledVariant> variant = compiler->compile(point);
    if (!variant) {
      result.failure = failureOf(tuner::Outcome::compileFailed, variant.status());
      return result;
    }
    auto candidate = std::make_shared<KernelCandidate>();
    candidate->record = std::move(variant->record);
    result.registers = candidate->record.registers;
    result.spillBytes = candidate->record.spillBytes;
    result.candidate = std::move(candidate);
    return result;
  }

  tuner::Verification verify(tuner::Candidate &candidate) override {
    tuner::Verification result;
    Result<oracle::VerifyReport> report = runOnce(static_cast<KernelCandidate &>(candidate));
    if (!report)
      result.failure = launchFailure(report.status());
    else if (result.maxError = report->maxError; !report->ok)
      result.failure = tuner::Failure{tuner::Outcome::wrong, wrongness(*report)};
    return result;
  }

  tuner::Sample sample(tuner::Candidate &candidate) override {
    PreparedLaunch &launch = *static_cast<KernelCandidate &>(candidate).launch;
    Result<double> us = timer.time([&] { return launch.launch(nullptr); });
    if (us)
      return {std::nullopt, *us};
    return {launchFailure(us.status()), 0};
  }

  Status recover() override {
    if (device.isAbandoned())
      return Status::unavailable("a kernel that never ends holds the GPU, and its context is lost to this process; what was "
                                 "measured is recorded, the same command goes on without this configuration");
    return device.synchronize();
  }

private:
  Result<oracle::VerifyReport> runOnce(KernelCandidate &candidate) {
    HEDDLE_ASSIGN(candidate.kernel, Kernel::load(device, candidate.record));
    HEDDLE_TRY(problem.poison());
    HEDDLE_ASSIGN(AttentionArgs args, problem.argumentsFor(*candidate.kernel));
    HEDDLE_ASSIGN(candidate.launch, candidate.kernel->prepare(args));
    HEDDLE_TRY(timer.time([&] { return candidate.launch->launch(nullptr); }).status());
    return problem.compare(reference);
  }

  tuner::Failure launchFailure(const Status &status) const {
    return failureOf(device.isAbandoned() ? tuner::Outcome::timedOut : tuner::Outcome::launchFailed, status);
  }

  static std::string wrongness(const oracle::VerifyReport &report) {
    return "error " + std::to_string(report.maxError) + ", allowed " + std::to_string(report.allowedError) +
           "; lse error " + std::to_string(report.maxLseError);
  }

  std::shared_ptr<const PointCompiler> compiler;
  DeviceProblem &problem;
  LaunchTimer &timer;
  const oracle::ReferenceRows &reference;
  Device device;
};

/// Fewer changes from the default first: the default is meant to be close. Tiles that grow with their chunk count as
/// one change.
std::function<double(const tuner::Point &)> distanceFromDefault(const PointCompiler &compiler) {
  return [base = compiler.skeleton->defaultConfig(compiler.request), &space = compiler.space](const tuner::Point &point) {
    double distance = 0;
    tuner::PointValues values = space.values(point);
    for (const auto &[field, value] : base.coordinates())
      if (field != "chunk_n")
        distance += values.valueOr(field, value) != value;
    if (!space.knobIndex("chunk_n"))
      return distance;
    int64_t blockN = values.valueOr("block_n", base.blockN), chunkN = values.valueOr("chunk_n", base.chunkN);
    return distance + (blockN * base.chunkN != chunkN * base.blockN);
  };
}

Result<std::string> incumbentOf(const Store &store, const WinnerKey &key, const PointCompiler &compiler) {
  HEDDLE_ASSIGN(StoreLookup found, store.lookup(LookupQuery(key)));
  if (found.match != MatchKind::exact || !found.winner.isTuned)
    return std::string();
  Result<KernelConfig> config = KernelConfig::parse(found.record.config);
  if (!config || config->skeleton != compiler.skeleton->name())
    return std::string();
  std::string text;
  for (const Knob &knob : compiler.skeleton->knobs(compiler.request)) {
    HEDDLE_ASSIGN(int64_t value, config->get(knob.name));
    text += (text.empty() ? "" : " ") + knob.name + "=" + spelling(knob, value);
  }
  return compiler.space.parse(text) ? text : std::string();
}

Status publishWinner(Store &store, const TuneOutcome &outcome, const Device &device, const PreparedPattern &prepared,
                     const std::string &name) {
  HEDDLE_TRY(store.recordDevice(device.info().record()));
  Winner winner;
  static_cast<WinnerKey &>(winner) = outcome.key;
  winner.contentKey = outcome.record->contentKey;
  winner.isTuned = 1;
  winner.medianUs = outcome.medianUs;
  winner.driverVersion = device.info().driverVersion;
  HEDDLE_TRY(store.publish(*outcome.record, winner));
  return publishName(store, prepared, name);
}

} // namespace

std::string spelling(const Knob &knob, int64_t value) {
  for (size_t i = 0; i < knob.labels.size(); ++i)
    if (knob.values[i] == value)
      return knob.labels[i];
  return std::to_string(value);
}

Result<tuner::SearchSpace> searchSpaceOf(const Skeleton &skeleton, std::shared_ptr<const ConfigSpace> configs) {
  std::vector<tuner::Knob> dimensions;
  for (const Knob &knob : configs->knobs())
    dimensions.push_back(toTunerKnob(knob));
  std::vector<std::string> names;
  for (const Constraint &constraint : skeleton.constraints())
    names.emplace_back(constraint.name);
  auto judge = [configs](const tuner::PointValues &values) -> std::optional<tuner::Refusal> {
    const Rejection *rejection = configs->refusal(values.where().index);
    return rejection ? std::optional(tuner::Refusal{rejection->constraint, rejection->reason}) : std::nullopt;
  };
  return tuner::SearchSpace::create(std::string(skeleton.name()), std::move(dimensions), judge, names);
}

static Result<std::shared_ptr<const PointCompiler>> makeCompiler(const PatternFile &file, const TuneRequest &request,
                                                                 const Device &device) {
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(file));
  KernelShape shape;
  HEDDLE_ASSIGN(shape.arch, archOf(device));
  shape.dtype = request.dtype;
  shape.headDim = request.headDim;
  shape.valueDim = request.valueDim;
  KernelRequest kernel = makeRequest(prepared, shape);
  HEDDLE_ASSIGN(const Skeleton *skeleton, skeletonFor(kernel, request.skeleton));
  auto configs = std::make_shared<const ConfigSpace>(*skeleton, kernel);
  HEDDLE_ASSIGN(tuner::SearchSpace space, searchSpaceOf(*skeleton, configs));
  return std::shared_ptr<const PointCompiler>(
      new PointCompiler{std::move(prepared), std::move(kernel), skeleton, std::move(configs), std::move(space)});
}

Result<TuneOutcome> tune(const PatternFile &file, const TuneRequest &request, const Device &device, Store &store) {
  HEDDLE_TRY(checkShape(file, request.shape));
  HEDDLE_ASSIGN(std::shared_ptr<const PointCompiler> compiler, makeCompiler(file, request, device));
  const KernelRequest &kernel = compiler->request;
  const tuner::SearchSpace &space = compiler->space;
  const ProblemShape &shape = request.shape;
  float scale = request.scale != 0 ? request.scale : 1 / std::sqrt(static_cast<float>(request.headDim));
  AttentionSizes sizes{shape.batch, shape.seqlenQ, shape.seqlenK, shape.heads, shape.kvHeads, request.headDim, request.valueDim};
  HEDDLE_ASSIGN(AttentionInputs inputs, randomAttentionInputs(sizes, request.dtype, request.seed));
  oracle::ReferenceRows reference = referenceOf(file, shape, inputs, scale, request.verifiedRows);
  HEDDLE_ASSIGN(DeviceProblem problem, DeviceProblem::create(device, file, shape, inputs, scale));
  HEDDLE_ASSIGN(LaunchTimer timer, LaunchTimer::create(device, request.launchLimitSeconds));

  TuneOutcome outcome;
  outcome.key = winnerKey(file, shape, familyOf(compiler->prepared, kernel), device.info().identity);
  tuner::StoreTrialSink sink(store, outcome.key);
  tuner::TuningTask task;
  task.space = &space;
  task.evaluator = std::make_shared<KernelEvaluator>(compiler, problem, timer, reference, device);
  task.sink = &sink;
  task.strategy = request.strategy;
  task.prior = distanceFromDefault(*compiler);
  HEDDLE_ASSIGN(task.incumbent, incumbentOf(store, outcome.key, *compiler));
  const std::string name = request.name.empty() ? compiler->prepared.name : request.name;
  HEDDLE_TRY(serveMeanwhile(store, compiler->prepared, kernel, LookupQuery(outcome.key, device.info().driverVersion), name));
  HEDDLE_ASSIGN(outcome.search, tuner::runTuningSession(task, request.options));
  if (!outcome.search.winner)
    return outcome;

  outcome.medianUs = outcome.search.winner->medianUs;
  outcome.maxError = outcome.search.winner->maxError;
  if (outcome.search.candidate) {
    outcome.record = static_cast<KernelCandidate &>(*outcome.search.candidate).record;
  } else { // known from an earlier session and not prepared in this one
    HEDDLE_ASSIGN(tuner::Point point, space.parse(outcome.search.winner->config));
    HEDDLE_ASSIGN(CompiledVariant variant, compiler->compile(point));
    outcome.record = std::move(variant.record);
  }
  HEDDLE_TRY(publishWinner(store, outcome, device, compiler->prepared, name));
  return outcome;
}

} // namespace heddle
