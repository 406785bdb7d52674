//===- ReportJson.cpp - a report as JSON ----------------------------------===//
// The page reads these names (Page/report.js); change both together.
//===----------------------------------------------------------------------===//
#include "codegen/Target/GpuModel.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Report/Report.h"
#include "runtime/Core/Recorded.h"
#include "runtime/Include/heddle.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace heddle::report {
namespace {

template <class T> Json optional(const std::optional<T> &value) { return value ? Json(*value) : Json(); }
Json measured(double us) { return us > 0 ? Json(us) : Json(); }
Json words(const std::string &text) { return text.empty() ? Json() : Json(text); }

using Fields = std::vector<std::pair<std::string, std::string>>;

/// "block_m=128 stages=2", separated by blanks, commas, semicolons or newlines; parts without "=" have no name.
Fields fieldsOf(const std::string &config) {
  Fields fields;
  for (size_t begin = 0; begin < config.size();) {
    const size_t end = std::min(config.find_first_of(" ,;\n", begin), config.size());
    const std::string part = config.substr(begin, end - begin);
    const size_t equals = part.find('=');
    if (!part.empty())
      fields.push_back(equals == std::string::npos ? std::make_pair(std::string(), part)
                                                   : std::make_pair(part.substr(0, equals), part.substr(equals + 1)));
    begin = end + 1;
  }
  return fields;
}

/// On one line.
std::string configLine(const std::string &config) {
  std::string line;
  for (const auto &[name, value] : fieldsOf(config))
    line += (line.empty() ? "" : " ") + (name.empty() ? value : name + "=" + value);
  return line;
}

std::string deviceOf(const DeviceIdentity &device) {
  return device.deviceName.empty() ? "any " + device.arch : device.deviceName;
}

/// Every name that occurs, in the order of appearance.
std::vector<std::string> knobsOf(const std::vector<Trial> &trials) {
  std::vector<std::string> knobs;
  std::set<std::string> seen;
  for (const Trial &trial : trials)
    for (const auto &[name, value] : fieldsOf(trial.config))
      if (seen.insert(name).second)
        knobs.push_back(name);
  return knobs;
}

/// The values of the knobs, null where a configuration has none.
Json valuesOf(const Trial &trial, const std::vector<std::string> &knobs) {
  Json values = Json::array();
  const Fields fields = fieldsOf(trial.config);
  for (const std::string &knob : knobs) {
    auto found = std::find_if(fields.begin(), fields.end(), [&](const auto &field) { return field.first == knob; });
    values.push_back(found == fields.end() ? Json() : Json(found->second));
  }
  return values;
}

/// Kernels have numbers where trials have words.
bool mayMean(const std::string &number, const std::string &word) {
  const bool isWord = word.find_first_not_of("-0123456789") != std::string::npos;
  if (word == "yes" || word == "no")
    return number == (word == "yes" ? "1" : "0") || number == word;
  return isWord || number == word;
}

/// Every field that both have may be the same, and they have some.
bool mayBeConfigOf(const Fields &kernel, const Trial &trial) {
  size_t same = 0;
  for (const auto &[name, value] : fieldsOf(trial.config)) {
    auto found = std::find_if(kernel.begin(), kernel.end(),
                              [&, &name = name](const auto &field) { return field.first == name; });
    if (found != kernel.end() && !mayMean(found->second, value))
      return false;
    same += found != kernel.end();
  }
  return same > 0;
}

/// Which trial has the winner's configuration: by its name where the pattern is known, else the only one that may.
std::optional<size_t> winnersTrial(const Workload &workload) {
  const Fields kernel = fieldsOf(workload.winner ? workload.kernel.config : "");
  const std::string &name = workload.estimates.winnerConfig;
  std::optional<size_t> found;
  for (size_t i = 0; i < workload.trials.size(); ++i) {
    if (!name.empty() && workload.trials[i].config == name)
      return i;
    if (!name.empty() || !mayBeConfigOf(kernel, workload.trials[i]))
      continue;
    if (found)
      return std::nullopt;
    found = i;
  }
  return found;
}

Json trialsJson(const Workload &workload) {
  const std::vector<std::string> knobs = knobsOf(workload.trials);
  const std::optional<size_t> winner = winnersTrial(workload);
  Json json{{"knobs", knobs}, {"rows", Json::array()}};
  for (size_t i = 0; i < workload.trials.size(); ++i) {
    const Trial &trial = workload.trials[i];
    Json row{{"values", valuesOf(trial, knobs)},
             {"outcome", trial.outcome},
             {"us", measured(timeOf(trial))},
             {"estimate_us", measured(i < workload.estimates.us.size() ? workload.estimates.us[i] : 0)},
             {"registers", trial.registers},
             {"spill_bytes", trial.spillBytes}};
    if (trial.smClockMhz)
      row["sm_clock_mhz"] = trial.smClockMhz;
    if (trial.powerWatts > 0)
      row["power_watts"] = trial.powerWatts;
    if (const std::string message = messageOf(trial); !message.empty())
      row["message"] = message;
    if (isRecorded(trial))
      row["recorded"] = true;
    if (winner == i)
      row["is_winner"] = true;
    if (workload.defaultTrial == i)
      row["is_default"] = true;
    json["rows"].push_back(std::move(row));
  }
  return json;
}

/// A message without the numbers in it, which differ from one configuration to the next.
std::string reasonOf(const std::string &message) {
  std::string reason;
  for (char letter : message.substr(0, message.find('\n'))) {
    if (letter < '0' || letter > '9')
      reason += letter;
    else if (reason.empty() || reason.back() != '#')
      reason += '#';
  }
  return reason;
}

/// Trials without a time, by outcome and reason, the most frequent first.
Json failuresJson(const Workload &workload) {
  std::map<std::pair<std::string, std::string>, std::pair<int64_t, std::string>> counts;
  for (const Trial &trial : workload.trials) {
    if (timeOf(trial) > 0)
      continue;
    auto &[count, example] = counts[{trial.outcome, reasonOf(messageOf(trial))}];
    if (count++ == 0)
      example = messageOf(trial);
  }
  std::vector<std::tuple<int64_t, std::string, std::string>> rows;
  for (const auto &[what, row] : counts)
    rows.emplace_back(-row.first, what.first, row.second);
  std::sort(rows.begin(), rows.end());
  Json json = Json::array();
  for (const auto &[negative, outcome, example] : rows)
    json.push_back({{"outcome", outcome}, {"count", -negative}, {"example", words(example)}});
  return json;
}

void addKernel(const Workload &workload, Json &json) {
  const KernelRecord &kernel = workload.kernel;
  const Winner &winner = *workload.winner;
  json["content_key"] = winner.contentKey;
  json["tuned"] = winner.isTuned != 0;
  json["recorded"] = isRecorded(winner);
  json["match"] = matchKindName(workload.match);
  json["config"] =
      configLine(workload.estimates.winnerConfig.empty() ? kernel.config : workload.estimates.winnerConfig);
  json["registers"] = kernel.registers;
  json["spill_bytes"] = kernel.spillBytes;
  json["shared_bytes"] = kernel.sharedBytes;
  json["kernel_arch"] = words(kernel.kernelArch);
  json["nvrtc"] = words(kernel.nvrtcVersion);
  json["driver"] = winner.driverVersion ? Json(winner.driverVersion) : Json();
  json["created_unix"] = winner.createdUnix;
}

Json workloadJson(const Workload &workload) {
  const WinnerKey &key = workload.key;
  const double defaultUs = workload.defaultTrial ? timeOf(workload.trials[*workload.defaultTrial]) : 0;
  Json json{{"winner_key", Trial::sessionKey(key)},
            {"pattern", workload.pattern},
            {"digest", key.pattern},
            {"problem", workload.problem},
            {"problem_note", words(workload.problemNote)},
            {"group", workload.group},
            {"device", deviceOf(key)},
            {"arch", key.arch},
            {"sm_count", key.smCount},
            {"kind", key.kind},
            {"dtype", dtypeName(key.dtype)},
            {"head_dim", key.headDim},
            {"value_dim", key.valueDim},
            {"generator", key.generator},
            {"has_winner", workload.winner.has_value()}};
  if (workload.winner)
    addKernel(workload, json);
  json["us"] = measured(workload.us());
  json["flops"] = optional(workload.rates.flops);
  json["tflops"] = optional(workload.tflops());
  json["roof_us"] = optional(workload.rates.roofUs);
  json["roof_is"] = workload.rates.roofUs ? Json(workload.rates.isComputeBound ? "compute" : "memory") : Json();
  json["percent_of_roof"] = optional(workload.percentOfRoof());
  json["rate_note"] = words(workload.rates.note);
  json["default_us"] = measured(defaultUs);
  json["default_was_given_up"] = workload.defaultTrial && workload.trials[*workload.defaultTrial].outcome == "stopped";
  json["gain"] = optional(workload.gain());
  json["default_note"] = words(workload.defaultNote);
  json["spearman"] = optional(workload.estimates.spearman);
  json["estimate_basis"] = words(workload.estimates.basis);
  json["failures"] = failuresJson(workload);
  json["trials"] = trialsJson(workload);
  return json;
}

Json deviceJson(const DeviceIdentity &device) {
  Json json{{"name", deviceOf(device)},
            {"arch", device.arch},
            {"sm_count", device.smCount},
            {"memory_gib", device.memoryGib}};
  const Result<const GpuModel *> model = findGpuModel(device.deviceName);
  json["sheet"] = model ? Json((*model)->fullName) : Json();
  json["bf16_tflops"] = model ? Json((*model)->bf16Tflops) : Json();
  json["bandwidth_gb_per_s"] = model ? Json((*model)->bandwidthGBps) : Json();
  return json;
}

Json sideJson(const std::optional<Winner> &winner, const std::string &config) {
  if (!winner)
    return {};
  return {{"us", measured(winner->medianUs)},
          {"config", configLine(config)},
          {"generator", winner->generator},
          {"tuned", winner->isTuned != 0},
          {"recorded", isRecorded(*winner)}};
}

Json comparisonJson(const Report &report, const Comparison &comparison) {
  const Winner &winner = comparison.either();
  auto name = report.names.find(winner.pattern);
  return {{"kind", comparisonName(comparison.kind)},
          {"pattern", name == report.names.end() ? winner.pattern.substr(0, 12) : name->second},
          {"problem", comparison.problem},
          {"device", deviceOf(winner)},
          {"dtype", dtypeName(winner.dtype)},
          {"head_dim", winner.headDim},
          {"value_dim", winner.valueDim},
          {"ratio", comparison.ratio > 0 ? Json(comparison.ratio) : Json()},
          {"here", sideJson(comparison.here, comparison.configHere)},
          {"there", sideJson(comparison.there, comparison.configThere)}};
}

} // namespace

Json reportJson(const Report &report) {
  Json json{{"written_by", std::string("heddle ") + heddle_version()},
            {"generator", kGenerator},
            {"databases", report.databases},
            {"against", words(report.against)},
            {"devices", Json::array()},
            {"workloads", Json::array()},
            {"unserved", Json::array()}};
  for (const DeviceIdentity &device : report.devices)
    json["devices"].push_back(deviceJson(device));
  for (const Workload &workload : report.workloads)
    json["workloads"].push_back(workloadJson(workload));
  for (const Unserved &row : report.unserved)
    json["unserved"].push_back({{"pattern", row.pattern},
                                {"problem", row.problem},
                                {"device", deviceOf(row.device)},
                                {"match", matchKindName(row.match)},
                                {"us", measured(row.us)}});
  if (report.against.empty())
    return json;
  json["equal_winners"] = report.comparisons.equal;
  json["comparisons"] = Json::array();
  for (const Comparison &comparison : report.comparisons.rows)
    json["comparisons"].push_back(comparisonJson(report, comparison));
  return json;
}

} // namespace heddle::report
