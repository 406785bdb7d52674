//===- Report.cpp - what a database says, for people ----------------------===//
#include "compiler/Report/Report.h"
#include "runtime/Core/FieldText.h"

#include <algorithm>
#include <tuple>

namespace heddle::report {

double Workload::us() const {
  if (winner && winner->medianUs > 0)
    return winner->medianUs;
  double best = 0;
  for (const Trial &trial : trials)
    if (trial.outcome == "measured" && trial.medianUs > 0 && (best == 0 || trial.medianUs < best))
      best = trial.medianUs;
  return best;
}

std::optional<double> Workload::tflops() const {
  return rates.flops && us() > 0 ? std::optional<double>(*rates.flops / us() * 1e-6) : std::nullopt;
}

std::optional<double> Workload::percentOfRoof() const {
  return rates.roofUs && us() > 0 ? std::optional<double>(100 * *rates.roofUs / us()) : std::nullopt;
}

std::optional<double> Workload::gain() const {
  const double before = defaultTrial ? timeOf(trials[*defaultTrial]) : 0;
  return winner && winner->medianUs > 0 && before > 0 ? std::optional<double>(before / winner->medianUs) : std::nullopt;
}

namespace {

constexpr const char *kNoPattern =
    "the database keeps no text of a pattern; --plan or --problem would give it, with the call";

std::string nameOf(const std::map<std::string, std::string> &names, const std::string &pattern) {
  auto found = names.find(pattern);
  return found == names.end() ? pattern.substr(0, 12) : found->second;
}

std::map<std::string, KernelRecord> kernelsOf(std::vector<KernelSummary> summaries) {
  std::map<std::string, KernelRecord> kernels;
  for (KernelSummary &summary : summaries)
    kernels[summary.record.contentKey] = std::move(summary.record);
  return kernels;
}

class Maker {
public:
  explicit Maker(const ReportRequest &request) : request(request), store(*request.store) {}

  Result<Report> make() {
    for (const KnownProblem &known : request.problems) {
      HEDDLE_ASSIGN(PreparedProblem problem, PreparedProblem::create(known));
      const bool isKnown = std::any_of(problems.begin(), problems.end(),
                                       [&](const PreparedProblem &other) { return other.isSameAs(problem); });
      if (!isKnown)
        problems.push_back(std::move(problem));
    }
    HEDDLE_TRY(readRows());
    for (Workload &workload : report.workloads)
      HEDDLE_TRY(describe(workload));
    sortWorkloads();
    HEDDLE_TRY(findUnserved());
    if (request.against) {
      report.against = request.against->path();
      HEDDLE_ASSIGN(report.comparisons, compareWinners(store, *request.against));
      HEDDLE_ASSIGN(std::vector<NameRecord> names, request.against->names());
      addNames(names);
      for (Comparison &comparison : report.comparisons.rows) {
        const PreparedProblem *problem = problemOf(comparison.either());
        comparison.problem = problem ? problem->label() : comparison.either().str();
      }
    }
    return std::move(report);
  }

private:
  void addNames(const std::vector<NameRecord> &names) {
    for (const NameRecord &name : names)
      report.names.emplace(name.pattern, name.name);
  }

  Status readRows() {
    report.databases = request.databases;
    HEDDLE_ASSIGN(std::vector<NameRecord> names, store.names());
    addNames(names);
    for (const auto &[digest, file] : request.patternFiles)
      report.names.emplace(digest, file);
    HEDDLE_ASSIGN(std::vector<Winner> winners, store.winners());
    HEDDLE_ASSIGN(std::vector<Trial> trials, store.allTrials());
    HEDDLE_ASSIGN(std::vector<KernelSummary> summaries, store.kernels());
    if (winners.empty() && trials.empty())
      return Status::notFound("'" + store.path() + "' holds neither winners nor trials: there is nothing to report");
    const std::map<std::string, KernelRecord> kernels = kernelsOf(std::move(summaries));
    std::map<std::string, Workload> byKey;
    for (Winner &winner : winners) {
      Workload &workload = at(byKey, winner);
      if (auto kernel = kernels.find(winner.contentKey); kernel != kernels.end())
        workload.kernel = kernel->second;
      workload.winner = std::move(winner);
    }
    for (Trial &trial : trials)
      at(byKey, trial).trials.push_back(std::move(trial));
    for (auto &[key, workload] : byKey)
      report.workloads.push_back(std::move(workload));
    findDevices();
    return {};
  }

  static Workload &at(std::map<std::string, Workload> &byKey, const WinnerKey &key) {
    Workload &workload = byKey[fieldDigest(key)];
    workload.key = key;
    return workload;
  }

  /// Those that something was measured on.
  void findDevices() {
    std::map<std::string, DeviceIdentity> devices;
    for (const Workload &workload : report.workloads)
      if (!workload.key.deviceName.empty())
        devices.emplace(fieldText(static_cast<const DeviceIdentity &>(workload.key)), workload.key);
    for (auto &[text, device] : devices)
      report.devices.push_back(std::move(device));
  }

  Status describe(Workload &workload) {
    workload.pattern = nameOf(report.names, workload.key.pattern);
    if (workload.winner) {
      HEDDLE_ASSIGN(StoreLookup found, store.lookup(LookupQuery(workload.key)));
      workload.match = found.match;
    }
    if (const PreparedProblem *problem = problemOf(workload.key)) {
      describe(workload, *problem);
    } else {
      workload.problem = workload.key.str();
      workload.problemNote = workload.key.batch == 0 ? "an untuned default: no problem was measured" : kNoPattern;
      workload.rates.note = workload.estimates.basis = workload.defaultNote = workload.problemNote;
    }
    workload.group = groupOf(workload);
    return {};
  }

  /// The call that rows of the key are of; null if it was not given.
  const PreparedProblem *problemOf(const WinnerKey &key) const {
    const auto found = std::find_if(problems.begin(), problems.end(),
                                    [&](const PreparedProblem &problem) { return problem.isOf(key); });
    return found == problems.end() ? nullptr : &*found;
  }

  void describe(Workload &workload, const PreparedProblem &problem) {
    workload.problem = problem.label();
    workload.rates = problem.ratesOn(workload.key);
    workload.estimates = problem.estimatesOf(workload.trials, workload.key, workload.kernel.config);
    for (size_t i = 0; i < workload.trials.size(); ++i)
      if (!workload.estimates.defaultConfig.empty() && workload.trials[i].config == workload.estimates.defaultConfig)
        workload.defaultTrial = i;
    if (!workload.defaultTrial)
      workload.defaultNote = "there is no trial of the untuned default";
    else if (timeOf(workload.trials[*workload.defaultTrial]) <= 0)
      workload.defaultNote = "the untuned default was not timed: " + workload.trials[*workload.defaultTrial].outcome;
  }

  static std::string groupOf(const Workload &workload) {
    std::string text = fieldText(static_cast<const KernelFamily &>(workload.key)) + workload.problem;
    return sha256Hex(text).substr(0, 16);
  }

  void sortWorkloads() {
    auto order = [](const Workload &workload) {
      const WinnerKey &key = workload.key;
      return std::tie(workload.pattern, key.pattern, key.dtype, key.headDim, key.valueDim, workload.problem,
                      key.deviceName, key.workPerSm, key.tilesPerRow, key.gqaRatio, key.arch, key.smCount,
                      key.memoryGib, key.generator, key.kind);
    };
    std::sort(report.workloads.begin(), report.workloads.end(),
              [&](const Workload &a, const Workload &b) { return order(a) < order(b); });
  }

  Status findUnserved() {
    for (const PreparedProblem &problem : problems)
      for (const DeviceIdentity &device : report.devices) {
        const bool isServed =
            std::any_of(report.workloads.begin(), report.workloads.end(), [&](const Workload &workload) {
              return workload.winner && isOn(workload.key, device) && problem.isOf(workload.key);
            });
        if (!isServed && problem.wasAskedForOn(device))
          HEDDLE_TRY(addUnserved(problem, device));
      }
    return {};
  }

  static bool isOn(const DeviceIdentity &a, const DeviceIdentity &b) { return fieldText(a) == fieldText(b); }

  Status addUnserved(const PreparedProblem &problem, const DeviceIdentity &device) {
    LookupQuery query(problem.keyOn(device));
    query.generator.clear();
    HEDDLE_ASSIGN(StoreLookup found, store.lookup(query));
    report.unserved.push_back({problem.label(), nameOf(report.names, query.pattern), device, found.match,
                               found.match == MatchKind::none ? 0 : found.winner.medianUs});
    return {};
  }

  const ReportRequest &request;
  const Store &store;
  std::vector<PreparedProblem> problems;
  Report report;
};

} // namespace

Result<Report> makeReport(const ReportRequest &request) { return Maker(request).make(); }

} // namespace heddle::report
