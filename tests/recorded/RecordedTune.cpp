//===- RecordedTune.cpp - a search that a table answers -------------------===//
#include "tests/recorded/RecordedTune.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Session/Publish.h"
#include "compiler/Session/TunePrior.h"
#include "runtime/Core/Plausible.h"
#include "tuner/Search/StoreSink.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace heddle {
namespace {

/// The number that the table gives by this word, or `otherwise` if it gives none.
Result<int64_t> countOf(const tuner::RecordedTable &table, const char *word, int64_t otherwise) {
  const std::string text = table.fact(word);
  int64_t value = otherwise;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!text.empty() && (error != std::errc() || stop != text.data() + text.size() || value <= 0))
    return Status::invalidArgument(table.space().name() + ": expected a number above 0 after '# " + word + ":', got '" +
                                   text + "'");
  return value;
}

/// The table, with configurations spelled as the space does, and the evaluator that reads it. Shared, because a
/// preparation may still run when the session has ended.
struct Playback {
  tuner::RecordedTable table;
  tuner::RecordedEvaluator evaluator;
  std::map<tuner::Point, tuner::Point> compiled; ///< points of the table's space to those of the skeleton's

  Playback(tuner::RecordedTable given, double pace)
      : table(std::move(given)), evaluator(table, table.space(), optionsFor(pace)) {}

  static Result<std::shared_ptr<Playback>> create(const tuner::RecordedTable &given, const TuneSpace &space,
                                                  double pace) {
    std::vector<tuner::PointTrial> rows = given.trials();
    std::vector<tuner::Point> points;
    for (tuner::PointTrial &row : rows) {
      Result<tuner::Point> point = space.space().parse(row.config);
      if (!point)
        return Status::invalidArgument(given.space().name() + ": no configuration of " + space.familyName() + ": " +
                                       point.status().message());
      row.config = space.space().text(*point);
      points.push_back(point.take());
    }
    HEDDLE_ASSIGN(tuner::RecordedTable table, tuner::RecordedTable::create(given.space().name(), std::move(rows)));
    auto playback = std::make_shared<Playback>(std::move(table), pace);
    for (size_t i = 0; i < points.size(); ++i)
      playback->compiled.emplace(playback->table.trials()[i].point, points[i]);
    return playback;
  }

private:
  static tuner::RecordedEvaluator::Options optionsFor(double pace) {
    tuner::RecordedEvaluator::Options options;
    options.pace = pace;
    return options;
  }
};

/// What no call of the kind can have given; the table itself knows no kinds.
Status checkErrors(const tuner::RecordedTable &table, const std::string &kind) {
  for (size_t i = 0; i < table.trials().size(); ++i) {
    const tuner::PointTrial &row = table.trials()[i];
    if (const std::string wrong = wrongNumbers(row, outcomeName(row.outcome), kind); !wrong.empty())
      return Status::invalidArgument(table.place(i) + ": " + wrong + " (" + kind + ")");
  }
  return {};
}

/// Those of the default and of winners nearby that the table knows.
Result<std::vector<std::string>> firstOf(const TuneRequest &request, const Store &store, const WinnerKey &key,
                                         const TuneSpace &space, const tuner::RecordedTable &table) {
  std::vector<const Store *> stores = request.shipped;
  stores.insert(stores.begin(), &store);
  HEDDLE_ASSIGN(std::vector<std::string> texts, warmStarts(stores, key, space));
  texts.erase(std::remove_if(texts.begin(), texts.end(), [&](const std::string &text) { return !table.find(text); }),
              texts.end());
  return texts;
}

} // namespace

void setDevice(tuner::RecordedTable &table, const DeviceIdentity &device) {
  table.setFact(kGpuFact, device.deviceName);
  table.setFact(kSmCountFact, std::to_string(device.smCount));
  table.setFact(kMemoryFact, std::to_string(device.memoryGib));
}

Result<DeviceIdentity> deviceOf(const tuner::RecordedTable &table) {
  DeviceIdentity device;
  device.deviceName = table.fact(kGpuFact);
  if (device.deviceName.empty())
    return Status::invalidArgument(table.space().name() + ": expected a line '# " + kGpuFact + ": ...'");
  HEDDLE_ASSIGN(const GpuModel *model, findGpuModel(device.deviceName));
  device.arch = deviceArch(std::string(model->arch));
  HEDDLE_ASSIGN(device.smCount, countOf(table, kSmCountFact, model->smCount));
  HEDDLE_ASSIGN(device.memoryGib, countOf(table, kMemoryFact, 0));
  return device;
}

Result<TuneOutcome> tuneRecorded(const PatternFile &file, const TuneRequest &request, tuner::RecordedTable table,
                                 double pace, Store &store) {
  HEDDLE_TRY(checkShape(file, request.shape));
  HEDDLE_TRY(checkErrors(table, request.kind.str()));
  HEDDLE_ASSIGN(const DeviceIdentity device, deviceOf(table));
  HEDDLE_ASSIGN(const GpuModel *model, findGpuModel(device.deviceName));
  HEDDLE_ASSIGN(const GpuArch *arch, findGpuArch(model->arch));
  HEDDLE_ASSIGN(std::shared_ptr<const TuneSpace> space, tuneSpaceOf(file, request, *arch));
  HEDDLE_ASSIGN(std::shared_ptr<Playback> playback, Playback::create(table, *space, pace));

  TuneOutcome outcome;
  outcome.key = winnerKey(file, request.shape, familyOf(space->pattern(), space->request()), device);
  tuner::StoreTrialSink sink(store, outcome.key);
  tuner::TuningTask task;
  task.space = &playback->table.space();
  task.evaluator = std::shared_ptr<tuner::Evaluator>(playback, &playback->evaluator);
  task.sink = &sink;
  task.strategy = request.strategy;
  const TunePrior prior = shippedPrior(space, request.shape, ratesOfDevice(device));
  task.prior = [&](const tuner::Point &point) { return prior.cost(playback->compiled.at(point)); };
  outcome.order = prior.basis;
  HEDDLE_ASSIGN(task.first, firstOf(request, store, outcome.key, *space, playback->table));
  outcome.warmStarts = task.first.size();
  HEDDLE_ASSIGN(task.incumbent, incumbentOf(store, outcome.key, *space));
  HEDDLE_ASSIGN(outcome.search, tuner::runTuningSession(task, request.options));
  if (!outcome.search.winner)
    return outcome;

  outcome.medianUs = outcome.search.winner->medianUs;
  outcome.maxError = outcome.search.winner->maxError;
  HEDDLE_ASSIGN(tuner::Point point, space->space().parse(outcome.search.winner->config));
  Result<CompiledVariant> variant = space->compile(point);
  if (!variant && variant.status().code() == StatusCode::unavailable) // no compiler here
    return outcome;
  HEDDLE_TRY(variant.status());
  outcome.record = std::move(variant->record);
  HEDDLE_TRY(publishTuned(store, outcome, /*driverVersion=*/0, space->pattern(), request));
  return outcome;
}

} // namespace heddle
