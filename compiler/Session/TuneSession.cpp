#include "compiler/Session/TuneSession.h"
#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Measure/MeasureProcess.h"
#include "compiler/Pattern/CallRows.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Session/Publish.h"
#include "compiler/Session/TunePrior.h"
#include "compiler/Session/TuneSpace.h"
#include "runtime/Core/Counters.h"
#include "tuner/Search/StoreSink.h"

#include <chrono>

namespace heddle {
namespace {

/// A compiled point. The measurer knows it by its number from its verification on.
struct KernelCandidate : tuner::Candidate {
  ~KernelCandidate() override {
    if (measurer)
      measurer->release(number);
  }
  KernelRecord record;
  int64_t number = 0;
  std::shared_ptr<KernelMeasurer> measurer;
};

/// Compilation on any thread; verification and timing on the session's.
class KernelEvaluator : public tuner::Evaluator {
public:
  KernelEvaluator(std::shared_ptr<const TuneSpace> space, std::shared_ptr<KernelMeasurer> measurer)
      : space(std::move(space)), measurer(std::move(measurer)) {}

  tuner::Preparation prepare(const tuner::Point &point, const std::atomic<bool> &) override {
    tuner::Preparation result;
    Result<CompiledVariant> variant = space->compile(point);
    if (!variant) {
      result.failure = tuner::Failure{tuner::Outcome::compileFailed, variant.status().message()};
      return result;
    }
    auto candidate = std::make_shared<KernelCandidate>();
    candidate->record = std::move(variant->record);
    result.registers = candidate->record.registers;
    result.spillBytes = candidate->record.spillBytes;
    result.candidate = std::move(candidate);
    return result;
  }

  Status ready() override { return measurer->ready(); }

  tuner::Verification verify(tuner::Candidate &candidate) override {
    auto &kernel = static_cast<KernelCandidate &>(candidate);
    kernel.measurer = measurer;
    kernel.number = next++;
    const tuner::Verification first = measurer->verify(kernel.number, kernel.record);
    const bool isWrong = first.failure && first.failure->outcome == tuner::Outcome::wrong;
    return isWrong && !measurer->checkInputs().isOk() ? verifyAfresh(kernel) : first; // not its fault, maybe
  }

  tuner::Verification confirm(tuner::Candidate &candidate) override {
    if (measurer->checkInputs().isOk())
      return {};
    return verifyAfresh(static_cast<KernelCandidate &>(candidate)); // this one, or one before it
  }

  tuner::Sample sample(tuner::Candidate &candidate) override {
    auto &kernel = static_cast<KernelCandidate &>(candidate);
    return measurer->sample(kernel.number, kernel.record);
  }

  Status recover() override { return measurer->recover(); }

private:
  /// With inputs that no other candidate has seen.
  tuner::Verification verifyAfresh(const KernelCandidate &kernel) {
    if (Status status = measurer->renew(); !status.isOk())
      return {tuner::Failure{tuner::Outcome::launchFailed, status.message()}, 0};
    tuner::Verification again = measurer->verify(kernel.number, kernel.record);
    if (Status status = measurer->checkInputs(); !status.isOk() && !again.failure)
      again.failure = tuner::Failure{tuner::Outcome::wrong, status.message()};
    return again;
  }

  std::shared_ptr<const TuneSpace> space;
  std::shared_ptr<KernelMeasurer> measurer;
  int64_t next = 0;
};

} // namespace

Status publishTuned(Store &store, const TuneOutcome &outcome, int64_t driverVersion, const PreparedPattern &prepared,
                    const TuneRequest &request) {
  Winner winner;
  static_cast<WinnerKey &>(winner) = outcome.key;
  winner.contentKey = outcome.record->contentKey;
  winner.isTuned = 1;
  winner.medianUs = outcome.medianUs;
  winner.driverVersion = driverVersion;
  HEDDLE_TRY(store.publish(*outcome.record, winner));
  return publishName(store, prepared, request.name.empty() ? prepared.name : request.name);
}

/// Batches of other lengths, or keys that lie otherwise, are other problems.
static WinnerKey keyOf(const PatternFile &file, const TuneRequest &request, const KernelFamily &family,
                       const DeviceIdentity &device) {
  WinnerKey key = winnerKey(file, request.shape, family, device);
  if (request.served.isGiven())
    key.arguments += (key.arguments.empty() ? "" : " ") + request.served.key();
  return key;
}

static KernelShape kernelShapeOf(const TuneRequest &request, const GpuArch &arch) {
  KernelShape shape;
  static_cast<CallShape &>(shape) = request;
  shape.arch = &arch;
  shape.queryRows = queryRowsOf(request.shape, request);
  return shape;
}

Result<std::shared_ptr<const TuneSpace>> tuneSpaceOf(const PatternFile &file, const TuneRequest &request,
                                                     const GpuArch &arch) {
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(file, PassFunctions::ofAll, request.kind.walk()));
  return TuneSpace::create(std::move(prepared), kernelShapeOf(request, arch), request.skeleton);
}

/// With the default forward kernel, where calls of the kind read what it writes.
static Result<MeasureSetup> setupOf(const PatternFile &file, const TuneRequest &request, const GpuArch &arch) {
  MeasureSetup setup = request;
  if (!request.kind.takesFromForward())
    return setup;
  KernelShape forward = kernelShapeOf(request, arch);
  forward.kind = Kind();
  HEDDLE_ASSIGN(PreparedPattern prepared, preparePattern(file, PassFunctions::ofDefaults));
  HEDDLE_ASSIGN(CompiledVariant variant, compileVariant(prepared, forward, ""));
  setup.forward = std::move(variant.record);
  return setup;
}

static Result<std::shared_ptr<KernelMeasurer>> makeMeasurer(const PatternFile &file, const TuneRequest &request,
                                                            const Device &device, const GpuArch &arch) {
  HEDDLE_ASSIGN(MeasureSetup setup, setupOf(file, request, arch));
  if (request.measureProgram.empty())
    return std::shared_ptr<KernelMeasurer>(measureHere(device, file, setup));
  HEDDLE_ASSIGN(std::unique_ptr<KernelMeasurer> elsewhere,
                measureElsewhere(request.measureProgram, file, device.info().ordinal, setup));
  return std::shared_ptr<KernelMeasurer>(std::move(elsewhere));
}

Result<TuneOutcome> tune(const PatternFile &file, const TuneRequest &request, const Device &device, Store &store) {
  HEDDLE_TRY(checkShape(file, request.shape));
  HEDDLE_ASSIGN(const GpuArch *arch, archOf(device));
  // it gets ready meanwhile
  HEDDLE_ASSIGN(std::shared_ptr<KernelMeasurer> measurer, makeMeasurer(file, request, device, *arch));
  HEDDLE_ASSIGN(std::shared_ptr<const TuneSpace> space, tuneSpaceOf(file, request, *arch));
  const KernelRequest &kernel = space->request();

  TuneOutcome outcome;
  outcome.key = keyOf(file, request, familyOf(space->pattern(), kernel), device.info().identity);
  tuner::StoreTrialSink sink(store, outcome.key);
  tuner::TuningTask task;
  task.space = &space->space();
  task.evaluator = std::make_shared<KernelEvaluator>(space, measurer);
  task.sink = &sink;
  task.strategy = request.strategy;
  const TunePrior prior = shippedPrior(space, request.shape, ratesOfDevice(device.info().identity));
  task.prior = prior.cost;
  outcome.order = prior.basis;
  std::vector<const Store *> stores = request.shipped;
  stores.insert(stores.begin(), &store);
  HEDDLE_ASSIGN(task.first, warmStarts(stores, outcome.key, *space));
  outcome.warmStarts = task.first.size();
  HEDDLE_ASSIGN(task.incumbent, incumbentOf(store, outcome.key, *space));
  const std::string name = request.name.empty() ? space->pattern().name : request.name;
  HEDDLE_TRY(
      publishProvisional(store, space->pattern(), kernel, LookupQuery(outcome.key, device.info().driverVersion), name));
  const auto begin = std::chrono::steady_clock::now();
  HEDDLE_ASSIGN(outcome.search, tuner::runTuningSession(task, request.options));
  Counters::get().searches.add(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
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
  HEDDLE_TRY(store.recordDevice(device.info().record()));
  HEDDLE_TRY(publishTuned(store, outcome, device.info().driverVersion, space->pattern(), request));
  return outcome;
}

} // namespace heddle
