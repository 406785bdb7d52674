//===- ModelTable.cpp - heddle model table --------------------------------===//
// Writes the trials that a database has of one problem on one GPU in the text form that fits and tests read.
//===----------------------------------------------------------------------===//
#include "codegen/Target/GpuModel.h"
#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Session/KernelShape.h"
#include "compiler/Session/PreparedPattern.h"
#include "compiler/Session/RecordedTune.h"
#include "compiler/Io/AtomicFile.h"
#include "compiler/Tools/Cache.h"
#include "compiler/Tools/Model.h"
#include "compiler/Tools/Output.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/FieldText.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <iostream>
#include <set>

namespace heddle::cli {
namespace {

struct TableOptions {
  ModelProblem problem;
  DatabaseOptions database;
  std::string device, output;
  std::vector<std::string> leftOut;
};

template <class T> bool isOf(const WinnerKey &key, const T &part) {
  return fieldsEqual(static_cast<const T &>(key), part);
}

Result<const GpuArch *> archOfDevice(const DeviceIdentity &device) {
  Result<const GpuModel *> model = findGpuModel(device.deviceName);
  return model ? findGpuArch((*model)->arch) : archOf(device);
}

/// Of the problem, on the device that is named or the only one.
Result<std::vector<Trial>> trialsOf(const Store &store, const ExactProblem &problem, const KernelFamily &family,
                                    const std::string &device) {
  HEDDLE_ASSIGN(std::vector<Trial> all, store.allTrials());
  std::vector<Trial> trials;
  std::set<std::string> devices;
  for (const Trial &trial : all) {
    if (!isOf(trial, family) || !isOf(trial, problem))
      continue;
    if (!device.empty() && trial.deviceName != device)
      continue;
    devices.insert(trial.deviceName);
    trials.push_back(trial);
  }
  if (trials.empty())
    return Status::notFound("'" + store.path() + "' has no trials of this problem" +
                            (device.empty() ? "" : " on '" + device + "'") +
                            "; `heddle cache ls --trials` lists those it has");
  std::string names;
  for (const std::string &name : devices)
    names += (names.empty() ? "" : ", ") + name;
  if (devices.size() > 1)
    return Status::invalidArgument("'" + store.path() +
                                   "' has trials of several GPUs, say which with --device: " + names);
  return trials;
}

double rounded(double number, double parts) { return std::round(number * parts) / parts; }

/// On one line, and where it is cut, that is said: reports show it as the reason.
std::string shortMessage(const Trial &trial) {
  constexpr size_t kMostMessage = 500;
  const std::string message = inOneLine(trial.message);
  return message.size() <= kMostMessage ? message : message.substr(0, kMostMessage) + " ...";
}

/// With times to a hundredth.
tuner::PointTrial rowOf(const Trial &trial, tuner::Outcome outcome) {
  tuner::PointTrial row;
  row.config = trial.config;
  row.outcome = outcome;
  row.medianUs = rounded(outcome == tuner::Outcome::stopped ? trial.minUs : trial.medianUs, 100);
  row.maxError = rounded(trial.maxError, 1e5);
  row.registers = trial.registers;
  row.spillBytes = trial.spillBytes;
  row.compileSeconds = rounded(trial.compileSeconds, 100);
  if (tuner::isFailure(outcome))
    row.message = shortMessage(trial);
  return row;
}

Result<tuner::RecordedTable> tableOf(const TableOptions &options, const Store &store) {
  HEDDLE_ASSIGN(std::unique_ptr<PatternFile> file, options.problem.pattern.load());
  HEDDLE_ASSIGN(const ProblemShape shape, options.problem.problem.shape(*file));
  HEDDLE_ASSIGN(const PreparedPattern prepared, preparePattern(*file, PassFunctions::ofDefaults));
  HEDDLE_ASSIGN(const KernelShape kernel, options.problem.shape.shape(*file, baselineGpuArch()));
  const KernelFamily family = familyOf(prepared, kernel);
  HEDDLE_ASSIGN(std::vector<Trial> trials, trialsOf(store, exactProblem(shape), family, options.device));
  HEDDLE_ASSIGN(const GpuArch *arch, archOfDevice(trials.front()));
  HEDDLE_ASSIGN(LoadedProblem loaded, loadProblem(options.problem, *arch));
  std::vector<tuner::PointTrial> rows;
  for (const Trial &trial : trials) {
    HEDDLE_ASSIGN(tuner::Outcome outcome, tuner::parseOutcome(trial.outcome));
    const bool isLeftOut = std::any_of(options.leftOut.begin(), options.leftOut.end(), [&](const std::string &text) {
      return trial.message.find(text) != std::string::npos;
    });
    if (!isLeftOut && loaded.space->space().parse(trial.config))
      rows.push_back(rowOf(trial, outcome));
  }
  HEDDLE_ASSIGN(tuner::RecordedTable table, tuner::RecordedTable::create(store.path(), std::move(rows)));
  table.setFact(kProblemFact, options.problem.text());
  setDevice(table, trials.front());
  int64_t last = 0;
  for (const Trial &trial : trials)
    last = std::max(last, trial.createdUnix);
  table.setFact("recorded", dateText(last) + ", code generator " + generatorText(family.generator));
  return table;
}

Status writeTable(const TableOptions &options) {
  std::vector<std::string> uses = options.problem.files();
  uses.push_back(options.database.path());
  HEDDLE_TRY(checkOutput("-o", options.output, uses));
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readOnly));
  HEDDLE_ASSIGN(tuner::RecordedTable table, tableOf(options, store));
  if (options.output.empty()) {
    std::cout << table.text();
    return {};
  }
  HEDDLE_TRY(writeFileAtomically(options.output, table.text()));
  std::cout << options.output << ": " << counted(table.trials().size(), "trial") << '\n';
  return {};
}

} // namespace

Action addModelTable(CLI::App &command) {
  auto options = std::make_shared<TableOptions>();
  options->problem.add(command);
  options->database.add(command);
  addValue(command, "--device", options->device, "NAME",
           "GPU that the trials are of, as the driver calls it [the only one]");
  addValues(command, "--leave-out", options->leftOut, "TEXT",
            "Leave out trials whose message has this text; may be repeated");
  addValue(command, "-o,--output", options->output, "FILE", "File to write [standard output]");
  return [options] {
    if (Status usage = options->problem.shape.check(); !usage.isOk())
      return failUsage(usage);
    if (int code = checkNames(options->problem); code != Ok)
      return code;
    return finish(writeTable(*options));
  };
}

} // namespace heddle::cli
