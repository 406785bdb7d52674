//===- TuneSession.cpp - the fastest kernel for one problem ---------------===//
#include "compiler/Driver/TuneSession.h"
#include "compiler/Driver/PreparedPattern.h"
#include "compiler/Driver/Publish.h"
#include "compiler/Driver/TunePrior.h"
#include "compiler/Driver/TuneSpace.h"
#include "compiler/Driver/WarmStart.h"
#include "tuner/Search/StoreSink.h"

#include <cmath>

namespace heddle {
namespace {

/// A compiled point; loaded when it is verified.
struct KernelCandidate : tuner::Candidate {
  KernelRecord record;
  std::optional<Kernel> kernel;
  std::optional<PreparedLaunch> launch;
};

tuner::Failure failureOf(tuner::Outcome outcome, const Status &status) { return {outcome, status.message()}; }

/// Compilation on any thread; verification and timing on the session's, within the life of problem and timer.
class KernelEvaluator : public tuner::Evaluator {
public:
  KernelEvaluator(std::shared_ptr<const TuneSpace> space, DeviceProblem &problem, LaunchTimer &timer,
                  const oracle::ReferenceRows &reference, const Device &device)
      : space(std::move(space)), problem(problem), timer(timer), reference(reference), device(device) {}

  tuner::Preparation prepare(const tuner::Point &point, const std::atomic<bool> &) override {
    tuner::Preparation result;
    Result<CompiledVariant> variant = space->compile(point);
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

  std::shared_ptr<const TuneSpace> space;
  DeviceProblem &problem;
  LaunchTimer &timer;
  const oracle::ReferenceRows &reference;
  Device device;
};

Result<std::string> incumbentOf(const Store &store, const WinnerKey &key, const TuneSpace &space) {
  HEDDLE_ASSIGN(StoreLookup found, store.lookup(LookupQuery(key)));
  if (found.match != MatchKind::exact || !found.winner.isTuned)
    return std::string();
  return space.pointOf(found.record.config);
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

static Result<std::shared_ptr<const TuneSpace>> makeSpace(const PatternFile &file, const TuneRequest &request,
                                                          const Device &device) {
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(file));
  KernelShape shape;
  HEDDLE_ASSIGN(shape.arch, archOf(device));
  shape.dtype = request.dtype;
  shape.headDim = request.headDim;
  shape.valueDim = request.valueDim;
  shape.queries = request.shape.seqlenQ;
  return TuneSpace::create(std::move(prepared), shape, request.skeleton);
}

static Result<TunePrior> priorOf(std::shared_ptr<const TuneSpace> space, const PatternFile &file, const TuneRequest &request,
                                 const Device &device) {
  Result<GpuModel> rates = ratesOfDevice(device.info().identity);
  if (!request.model)
    return shippedPrior(std::move(space), file, request.shape, rates);
  HEDDLE_TRY(rates.status());
  return modelPrior(std::move(space), file, request.shape, *rates, *request.model);
}

Result<TuneOutcome> tune(const PatternFile &file, const TuneRequest &request, const Device &device, Store &store) {
  HEDDLE_TRY(checkShape(file, request.shape));
  HEDDLE_ASSIGN(std::shared_ptr<const TuneSpace> space, makeSpace(file, request, device));
  const KernelRequest &kernel = space->request();
  const ProblemShape &shape = request.shape;
  float scale = request.scale != 0 ? request.scale : 1 / std::sqrt(static_cast<float>(request.headDim));
  AttentionSizes sizes{shape.batch, shape.seqlenQ, shape.seqlenK, shape.heads, shape.kvHeads, request.headDim, request.valueDim};
  HEDDLE_ASSIGN(AttentionInputs inputs, randomAttentionInputs(sizes, request.dtype, request.seed));
  oracle::ReferenceRows reference = referenceOf(file, shape, inputs, scale, request.verifiedRows);
  HEDDLE_ASSIGN(DeviceProblem problem, DeviceProblem::create(device, file, shape, inputs, scale));
  HEDDLE_ASSIGN(LaunchTimer timer, LaunchTimer::create(device, request.launchLimitSeconds));

  TuneOutcome outcome;
  outcome.key = winnerKey(file, shape, familyOf(space->pattern(), kernel), device.info().identity);
  tuner::StoreTrialSink sink(store, outcome.key);
  tuner::TuningTask task;
  task.space = &space->space();
  task.evaluator = std::make_shared<KernelEvaluator>(space, problem, timer, reference, device);
  task.sink = &sink;
  task.strategy = request.strategy;
  HEDDLE_ASSIGN(TunePrior prior, priorOf(space, file, request, device));
  task.prior = prior.cost;
  outcome.order = prior.basis;
  std::vector<const Store *> stores = request.shipped;
  stores.insert(stores.begin(), &store);
  HEDDLE_ASSIGN(task.first, warmStarts(stores, outcome.key, *space));
  outcome.warmStarts = task.first.size();
  HEDDLE_ASSIGN(task.incumbent, incumbentOf(store, outcome.key, *space));
  const std::string name = request.name.empty() ? space->pattern().name : request.name;
  HEDDLE_TRY(serveMeanwhile(store, space->pattern(), kernel, LookupQuery(outcome.key, device.info().driverVersion), name));
  HEDDLE_ASSIGN(outcome.search, tuner::runTuningSession(task, request.options));
  if (!outcome.search.winner)
    return outcome;

  outcome.medianUs = outcome.search.winner->medianUs;
  outcome.maxError = outcome.search.winner->maxError;
  if (outcome.search.candidate) {
    outcome.record = static_cast<KernelCandidate &>(*outcome.search.candidate).record;
  } else { // known from an earlier session and not prepared in this one
    HEDDLE_ASSIGN(tuner::Point point, space->space().parse(outcome.search.winner->config));
    HEDDLE_ASSIGN(CompiledVariant variant, space->compile(point));
    outcome.record = std::move(variant.record);
  }
  HEDDLE_TRY(publishWinner(store, outcome, device, space->pattern(), name));
  return outcome;
}

} // namespace heddle
