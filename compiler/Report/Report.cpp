// The page reads these names (Page/sections.js); change both together.
#include "compiler/Report/Report.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Session/CompileSession.h"
#include "runtime/Core/FieldText.h"
#include "runtime/Include/heddle.h"

#include <algorithm>
#include <functional>
#include <map>

namespace heddle::report {
namespace {

template <class T> Json optional(const std::optional<T> &value) { return value ? Json(*value) : Json(); }
Json measured(double us) { return us > 0 ? Json(us) : Json(); }
Json ratio(double of, double to) { return of > 0 && to > 0 ? Json(of / to) : Json(); }
Json words(const std::string &text) { return text.empty() ? Json() : Json(text); }

/// One problem of one kernel family on one GPU: a winner, the trials of its session, or both.
struct Workload {
  WinnerKey key;
  std::optional<Winner> winner;
  std::vector<Trial> trials; ///< oldest first, as Store::allTrials has them
};

/// The parts of "block_m=128 stages=2", which are separated by blanks, commas, semicolons or newlines.
std::vector<std::string> fieldsOf(const std::string &config) {
  std::vector<std::string> fields;
  for (size_t begin = 0, end; begin < config.size(); begin = end + 1) {
    end = std::min(config.find_first_of(" ,;\n", begin), config.size());
    if (end > begin)
      fields.push_back(config.substr(begin, end - begin));
  }
  return fields;
}

std::string configLine(const std::string &config) {
  std::string line;
  for (const std::string &field : fieldsOf(config))
    line += (line.empty() ? "" : " ") + field;
  return line;
}

std::string nameOf(const std::string &field) { return field.substr(0, field.find('=')); }

/// Every name that occurs, in the order of appearance.
std::vector<std::string> knobsOf(const std::vector<Trial> &trials) {
  std::vector<std::string> knobs;
  for (const Trial &trial : trials)
    for (const std::string &field : fieldsOf(trial.config))
      if (std::find(knobs.begin(), knobs.end(), nameOf(field)) == knobs.end())
        knobs.push_back(nameOf(field));
  return knobs;
}

/// The values of the knobs, null where a configuration has none.
Json valuesOf(const Trial &trial, const std::vector<std::string> &knobs) {
  Json values = Json::array();
  const std::vector<std::string> fields = fieldsOf(trial.config);
  for (const std::string &knob : knobs) {
    auto found =
        std::find_if(fields.begin(), fields.end(), [&](const std::string &field) { return nameOf(field) == knob; });
    values.push_back(found == fields.end() ? Json() : Json(found->substr(std::min(knob.size() + 1, found->size()))));
  }
  return values;
}

Json trialsJson(const std::vector<Trial> &trials, const Estimates &estimates) {
  const std::vector<std::string> knobs = knobsOf(trials);
  Json json{{"knobs", knobs}, {"rows", Json::array()}};
  for (size_t i = 0; i < trials.size(); ++i) {
    const Trial &trial = trials[i];
    Json row{{"values", valuesOf(trial, knobs)},
             {"outcome", trial.outcome},
             {"us", measured(timeOf(trial))},
             {"estimate_us", measured(i < estimates.us.size() ? estimates.us[i] : 0)},
             {"registers", trial.registers},
             {"spill_bytes", trial.spillBytes},
             {"sm_clock_mhz", trial.smClockMhz ? Json(trial.smClockMhz) : Json()},
             {"power_watts", measured(trial.powerWatts)},
             {"message", words(trial.message)}};
    if (!trial.config.empty() && trial.config == estimates.winnerConfig)
      row["is_winner"] = true;
    if (!trial.config.empty() && trial.config == estimates.defaultConfig)
      row["is_default"] = true;
    json["rows"].push_back(std::move(row));
  }
  return json;
}

Json deviceJson(const WinnerKey &key) {
  Json json{{"name", key.deviceName}, {"arch", key.arch}, {"sm_count", key.smCount}, {"memory_gib", key.memoryGib}};
  const Result<const GpuModel *> model = findGpuModel(key.deviceName);
  json["sheet"] = model ? Json((*model)->fullName) : Json();
  json["bf16_tflops"] = model ? Json((*model)->bf16Tflops) : Json();
  json["bandwidth_gb_per_s"] = model ? Json((*model)->bandwidthGBps) : Json();
  return json;
}

class Reporter {
public:
  static Result<Reporter> create(const ReportRequest &request) {
    Reporter reporter;
    for (const KnownProblem &known : request.problems) {
      HEDDLE_ASSIGN(PreparedProblem problem, PreparedProblem::create(known));
      reporter.problems.push_back(std::move(problem));
    }
    for (const Store *store : {request.store, request.against})
      if (store) {
        HEDDLE_ASSIGN(std::vector<NameRecord> records, store->names());
        for (const NameRecord &record : records)
          reporter.names.emplace(record.pattern, record.name);
        HEDDLE_ASSIGN(std::vector<KernelSummary> kernels, store->kernels());
        for (KernelSummary &kernel : kernels)
          reporter.kernels[kernel.record.contentKey] = std::move(kernel.record);
      }
    return reporter;
  }

  Result<Json> workloads(const Store &store) const {
    HEDDLE_ASSIGN(std::vector<Winner> winners, store.winners());
    HEDDLE_ASSIGN(std::vector<Trial> trials, store.allTrials());
    if (winners.empty() && trials.empty())
      return Status::notFound("'" + store.path() + "' holds neither winners nor trials: there is nothing to report");
    std::map<std::string, Workload> byKey;
    for (Winner &winner : winners)
      at(byKey, winner).winner = std::move(winner);
    for (Trial &trial : trials)
      at(byKey, trial).trials.push_back(std::move(trial));
    Json json = Json::array();
    for (const auto &[key, workload] : byKey) {
      json.push_back(describe(workload));
      if (workload.winner) {
        HEDDLE_ASSIGN(StoreLookup found, store.lookup(LookupQuery(workload.key)));
        json.back()["match"] = matchKindName(found.match);
      }
    }
    sort(json);
    return json;
  }

  Result<Json> winners(const Store &store) const {
    HEDDLE_ASSIGN(std::vector<Winner> winners, store.winners());
    Json json = Json::array();
    for (const Winner &winner : winners) {
      json.push_back(keyJson(winner));
      addWinner(winner, json.back());
    }
    sort(json);
    return json;
  }

  /// The slowest first.
  Result<Json> slow(const std::vector<SlowKernel> &list, const Store &store) const {
    HEDDLE_ASSIGN(const std::vector<Winner> winners, store.winners());
    std::multimap<double, Json, std::greater<>> ranked; // equally slow ones stay in their order
    for (const SlowKernel &slow : list)
      ranked.emplace(slow.factor, slowJson(slow, winners));
    Json json = Json::array();
    for (auto &[factor, one] : ranked)
      json.push_back(std::move(one));
    return json;
  }

private:
  static Workload &at(std::map<std::string, Workload> &byKey, const WinnerKey &key) {
    Workload &workload = byKey[fieldDigest(key)];
    workload.key = key;
    return workload;
  }

  static void sort(Json &rows) {
    auto order = [](const Json &row) {
      Json order;
      for (const char *name :
           {"pattern", "digest", "dtype", "head_dim", "value_dim", "problem", "device", "generator", "key"})
        order.push_back(row[name]);
      return order;
    };
    std::sort(rows.begin(), rows.end(), [&](const Json &a, const Json &b) { return order(a) < order(b); });
  }

  /// The call that rows of the key are of; null if it was not given.
  const PreparedProblem *problemOf(const WinnerKey &key) const {
    const auto found = std::find_if(problems.begin(), problems.end(),
                                    [&](const PreparedProblem &problem) { return problem.isOf(key); });
    return found == problems.end() ? nullptr : &*found;
  }

  std::string patternOf(const WinnerKey &key) const {
    if (auto found = names.find(key.pattern); found != names.end())
      return found->second;
    const PreparedProblem *problem = problemOf(key);
    return problem ? problem->patternName() : key.pattern.substr(0, 12);
  }

  /// "key" is the same whatever generator wrote the row, "group" also on other GPUs.
  Json keyJson(const WinnerKey &key) const {
    WinnerKey bare = key;
    bare.generator.clear();
    Json json{{"pattern", patternOf(key)}, {"digest", key.pattern}, {"problem", key.str()}, {"key", fieldDigest(bare)}};
    static_cast<DeviceIdentity &>(bare) = {};
    static_cast<ProblemBucket &>(bare) = {}; // which counts work by SM
    json["group"] = fieldDigest(bare);
    json.update({{"device", key.deviceName.empty() ? "any " + key.arch : key.deviceName},
                 {"kind", key.kind},
                 {"dtype", dtypeName(key.dtype)},
                 {"head_dim", key.headDim},
                 {"value_dim", key.valueDim},
                 {"generator", key.generator}});
    return json;
  }

  /// Beside what the database says of the kernel, and the winner that it has for the problem now.
  Json slowJson(const SlowKernel &slow, const std::vector<Winner> &winners) const {
    const auto name = names.find(slow.pattern);
    Json json{{"pattern", name == names.end() ? slow.pattern.substr(0, 12) : name->second},
              {"digest", slow.pattern},
              {"problem", slow.problem},
              {"device", slow.device},
              {"bus", slow.bus},
              {"content_key", slow.kernel},
              {"expected_us", slow.expectedUs},
              {"median_us", slow.medianUs},
              {"spread_us", slow.spreadUs},
              {"factor", slow.factor},
              {"samples", slow.samples},
              {"since_unix", slow.sinceUnix ? Json(slow.sinceUnix) : Json()},
              {"file", slow.file}};
    const auto kernel = kernels.find(slow.kernel);
    const bool isKnown = kernel != kernels.end();
    json["kind"] = isKnown ? Json(kernel->second.kind) : Json();
    json["dtype"] = isKnown ? Json(dtypeName(kernel->second.dtype)) : Json();
    json["head_dim"] = isKnown ? Json(kernel->second.headDim) : Json();
    json["value_dim"] = isKnown ? Json(kernel->second.valueDim) : Json();
    const auto winner = std::find_if(winners.begin(), winners.end(), [&](const Winner &row) {
      return row.contentKey == slow.kernel && row.deviceName == slow.device && row.str() == slow.problem;
    });
    json["winner_key"] = winner == winners.end() ? Json() : Json(fieldDigest(static_cast<const WinnerKey &>(*winner)));
    json["note"] = winner != winners.end() ? Json()
                   : isKnown               ? Json("the database has another winner for this problem now, or none")
                                           : Json("the database does not have this kernel");
    return json;
  }

  /// Without code; of one that the database lacks nothing is known.
  KernelRecord kernelOf(const Winner &winner) const {
    const auto found = kernels.find(winner.contentKey);
    return found == kernels.end() ? KernelRecord() : found->second;
  }

  void addWinner(const Winner &winner, Json &json) const {
    const KernelRecord kernel = kernelOf(winner);
    json.update({{"us", measured(winner.medianUs)},
                 {"tuned", winner.isTuned != 0},
                 {"content_key", winner.contentKey},
                 {"config", configLine(kernel.config)},
                 {"registers", kernel.registers},
                 {"spill_bytes", kernel.spillBytes},
                 {"shared_bytes", kernel.sharedBytes},
                 {"kernel_arch", words(kernel.kernelArch)},
                 {"nvrtc", words(kernel.nvrtcVersion)},
                 {"driver", winner.driverVersion ? Json(winner.driverVersion) : Json()},
                 {"created_unix", winner.createdUnix}});
  }

  Json describe(const Workload &workload) const {
    Json json = keyJson(workload.key);
    json["winner_key"] = fieldDigest(workload.key);
    json["has_winner"] = workload.winner.has_value();
    json["us"] = measured(workload.winner ? 0 : bestOf(workload.trials));
    if (workload.winner)
      addWinner(*workload.winner, json);
    Rates rates;
    Estimates estimates;
    if (const PreparedProblem *problem = problemOf(workload.key)) {
      rates = problem->ratesOn(workload.key);
      estimates =
          problem->estimatesOf(workload.trials, workload.key, workload.winner ? kernelOf(*workload.winner).config : "");
    } else {
      rates.note = estimates.basis = "the database keeps no text of a pattern; --plan or --problem would give it";
    }
    addRates(rates, json);
    addDefault(workload.trials, estimates, json);
    json["spearman"] = optional(estimates.spearman);
    json["estimate_basis"] = words(estimates.basis);
    json["trials"] = trialsJson(workload.trials, estimates);
    return json;
  }

  static double bestOf(const std::vector<Trial> &trials) {
    double best = 0;
    for (const Trial &trial : trials)
      if (trial.outcome == "measured" && (best == 0 || trial.medianUs < best))
        best = trial.medianUs;
    return best;
  }

  static void addRates(const Rates &rates, Json &json) {
    const double us = json["us"].is_null() ? 0 : json["us"].get<double>();
    json["flops"] = optional(rates.flops);
    json["tflops"] = ratio(rates.flops.value_or(0) * 1e-6, us);
    json["roof_us"] = optional(rates.roofUs);
    json["roof_is"] = rates.roofUs ? Json(rates.isComputeBound ? "compute" : "memory") : Json();
    json["percent_of_roof"] = ratio(100 * rates.roofUs.value_or(0), us);
    json["rate_note"] = words(rates.note);
  }

  /// The trial of the untuned default, of one that was given up its fastest sample, and what the winner gains over it.
  static void addDefault(const std::vector<Trial> &trials, const Estimates &estimates, Json &json) {
    const auto found = std::find_if(trials.begin(), trials.end(), [&](const Trial &trial) {
      return !trial.config.empty() && trial.config == estimates.defaultConfig;
    });
    const double us = found == trials.end() ? 0 : timeOf(*found);
    json["default_us"] = measured(us);
    json["default_was_given_up"] = found != trials.end() && found->outcome == "stopped";
    json["gain"] = json["has_winner"] && !json["us"].is_null() ? ratio(us, json["us"]) : Json();
    json["default_note"] = us > 0                            ? Json()
                           : estimates.defaultConfig.empty() ? words(estimates.basis)
                           : found == trials.end() ? Json("there is no trial of the untuned default")
                                                   : Json("the untuned default was not timed: " + found->outcome);
  }

  std::vector<PreparedProblem> problems;
  std::map<std::string, std::string> names;    ///< of patterns, by digest
  std::map<std::string, KernelRecord> kernels; ///< by content key
};

Result<Json> devicesOf(const Store &store) {
  HEDDLE_ASSIGN(std::vector<Winner> winners, store.winners());
  HEDDLE_ASSIGN(std::vector<Trial> trials, store.allTrials());
  std::vector<WinnerKey> keys(winners.begin(), winners.end());
  keys.insert(keys.end(), trials.begin(), trials.end());
  std::map<std::string, Json> devices;
  for (const WinnerKey &key : keys)
    if (!key.deviceName.empty()) // else nothing was measured
      devices.emplace(fieldText(static_cast<const DeviceIdentity &>(key)), deviceJson(key));
  Json json = Json::array();
  for (auto &[text, device] : devices)
    json.push_back(std::move(device));
  return json;
}

} // namespace

Result<Json> makeReport(const ReportRequest &request) {
  HEDDLE_ASSIGN(const Reporter reporter, Reporter::create(request));
  Json json{{"written_by", std::string("heddle ") + heddle_version()},
            {"generator", kGenerator},
            {"database", request.store->path()},
            {"against", nullptr}};
  HEDDLE_ASSIGN(json["devices"], devicesOf(*request.store));
  HEDDLE_ASSIGN(json["workloads"], reporter.workloads(*request.store));
  json["slow"] = nullptr;
  if (request.slow) {
    HEDDLE_ASSIGN(json["slow"], reporter.slow(*request.slow, *request.store));
  }
  if (request.against) {
    json["against"]["database"] = request.against->path();
    HEDDLE_ASSIGN(json["against"]["winners"], reporter.winners(*request.against));
  }
  return json;
}

} // namespace heddle::report
