#include "compiler/Tools/Cache.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/FieldText.h"
#include "runtime/Core/SafeText.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace heddle::cli {

std::string winnerId(const Winner &winner) { return fieldDigest(static_cast<const WinnerKey &>(winner)); }

Json winnerJson(const Winner &winner) {
  Json json{{"winner_key", winnerId(winner)}};
  json.update(rowJson(winner));
  return json;
}

Json kernelJson(KernelRecord record, int64_t cubinBytes, int64_t ptxBytes) {
  record.cubin.clear();
  record.ptx.clear();
  Json json = rowJson(record);
  json["cubin"] = cubinBytes;
  json["ptx"] = ptxBytes;
  return json;
}

Json countsJson(const StoreCounts &counts) {
  Json json;
  json["kernels"] = counts.kernels;
  json["winners"] = counts.winners;
  json["trials"] = counts.trials;
  json["devices"] = counts.devices;
  json["links"] = counts.links;
  json["names"] = counts.names;
  return json;
}

std::string countsText(const StoreCounts &counts) {
  return counted(counts.kernels, "kernel") + ", " + counted(counts.winners, "winner") + ", " +
         counted(counts.trials, "trial") + ", " + counted(counts.devices, "device") + ", " +
         (counts.links ? counted(counts.links, "link") + ", " : "") + counted(counts.names, "name");
}

std::string padded(std::string text, size_t width) {
  text = safeLine(text);
  text.resize(std::max(width, text.size()), ' ');
  return text + "  ";
}

std::string microseconds(double us) {
  char text[400]; // the largest double has 309 digits
  std::snprintf(text, sizeof(text), "%.1f us", us);
  return text;
}

std::string inOneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return safeLine(text, kMostLineBytes);
}

std::string timeText(const Winner &winner) { return winner.isTuned ? microseconds(winner.medianUs) : "untuned"; }

std::string outcomeText(const Trial &trial) {
  return trial.outcome == "measured" ? microseconds(trial.medianUs) : trial.outcome;
}

static constexpr std::string_view kGeneratorPrefix = "heddle ";

std::string generatorText(const std::string &generator) {
  return generator.compare(0, kGeneratorPrefix.size(), kGeneratorPrefix) == 0
             ? generator.substr(kGeneratorPrefix.size())
             : generator;
}

std::string storedGenerator(const std::string &given) {
  return !given.empty() && given[0] >= '0' && given[0] <= '9' ? std::string(kGeneratorPrefix) + given : given;
}

PatternLabels::PatternLabels(const std::vector<NameRecord> &names) {
  for (const NameRecord &name : names)
    nameOf.emplace(name.pattern, name.name);
}

std::string PatternLabels::of(const std::string &digest) const {
  const auto found = nameOf.find(digest);
  return found != nameOf.end() ? found->second : digest.substr(0, 12);
}

/// "192/128" where v has dims of its own.
static std::string dimsText(const KernelFamily &family) {
  std::string text = std::to_string(family.headDim);
  return family.valueDim == family.headDim ? text : text + "/" + std::to_string(family.valueDim);
}

std::string keyText(const WinnerKey &key, const PatternLabels &labels) {
  return padded(labels.of(key.pattern), 16) + padded(key.kind, 8) + padded(dtypeName(key.dtype), 5) +
         padded("d=" + dimsText(key), 5) + padded(key.str(), 20) +
         (key.deviceName.empty() ? "any " + key.arch : safeLine(key.deviceName));
}

std::string dateText(int64_t unixSeconds) {
  std::time_t time = unixSeconds;
  std::tm parts = {};
  char text[64];
  if (!::gmtime_r(&time, &parts) || !std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts))
    return std::to_string(unixSeconds);
  return text;
}

std::map<std::string, std::string> configFields(const std::string &config) {
  std::map<std::string, std::string> fields;
  for (size_t begin = 0; begin < config.size();) {
    size_t end = std::min(config.find_first_of(" ,;\n", begin), config.size());
    std::string field = config.substr(begin, end - begin);
    if (size_t equals = field.find('='); equals != std::string::npos)
      fields[field.substr(0, equals)] = field.substr(equals + 1);
    begin = end + 1;
  }
  return fields;
}

/// Kernels store numbers, trials the names of values where these have some.
static std::string valueInWords(const std::string &field, const std::string &value) {
  const ConfigField *known = findConfigField(field);
  const std::optional<int64_t> number = known ? known->read(value) : std::nullopt;
  return number ? known->spelled(*number) : value;
}

std::string configChanges(const std::string &from, const std::string &to) {
  std::map<std::string, std::string> before = configFields(from);
  std::string text;
  for (const auto &[name, value] : configFields(to)) {
    auto old = before.find(name);
    if (old == before.end())
      continue;
    const std::string had = valueInWords(name, old->second), has = valueInWords(name, value);
    if (had != has)
      text += (text.empty() ? "" : ", ") + name + "=" + had + " -> " + has;
  }
  return text;
}

} // namespace heddle::cli
