// Says which keys only one of two databases has and whose winner differs, by how much.
#include "compiler/Tools/Cache.h"
#include "runtime/Core/CountText.h"
#include "runtime/Store/Store.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <iostream>

namespace heddle::cli {
namespace {

struct DiffOptions {
  DatabaseOptions first, second;
  bool exitCode = false, json = false;
};

Json winnersJson(const std::vector<Winner> &winners) {
  Json json = Json::array();
  for (const Winner &winner : winners)
    json.push_back(winnerJson(winner));
  return json;
}

Json namesJson(const std::vector<NameRecord> &names) {
  Json json = Json::array();
  for (const NameRecord &name : names)
    json.push_back(rowJson(name));
  return json;
}

Json differenceJson(const WinnerDifference &difference) {
  Json json{{"winner_key", winnerId(difference.a)}, {"same_kernel", difference.isSameKernel()}};
  json["ratio"] = difference.ratio() > 0 ? Json(difference.ratio()) : Json();
  json["changes"] = configChanges(difference.configA, difference.configB);
  json["a"] = winnerJson(difference.a);
  json["b"] = winnerJson(difference.b);
  return json;
}

Json diffJson(const StoreDiff &diff) {
  Json json{{"equal", diff.isEqual()},
            {"winners_equal", diff.winnersEqual},
            {"winners_only_a", winnersJson(diff.winnersOnlyA)},
            {"winners_only_b", winnersJson(diff.winnersOnlyB)},
            {"winners_differ", Json::array()},
            {"names_only_a", namesJson(diff.namesOnlyA)},
            {"names_only_b", namesJson(diff.namesOnlyB)},
            {"names_differ", Json::array()}};
  for (const WinnerDifference &difference : diff.winnersDiffer)
    json["winners_differ"].push_back(differenceJson(difference));
  for (const NameDifference &difference : diff.namesDiffer)
    json["names_differ"].push_back({{"a", rowJson(difference.a)}, {"b", rowJson(difference.b)}});
  json["kernels_only_a"] = diff.kernelsOnlyA;
  json["kernels_only_b"] = diff.kernelsOnlyB;
  json["trials_only_a"] = diff.trialsOnlyA;
  json["trials_only_b"] = diff.trialsOnlyB;
  json["trials_differ"] = diff.trialsDiffer;
  return json;
}

void printOnly(const char *side, const std::vector<Winner> &winners, const PatternLabels &labels) {
  for (const Winner &winner : winners)
    std::cout << "only " << side << "  " << padded(keyText(winner, labels), 70) << timeText(winner) << '\n';
}

std::string ratioText(const WinnerDifference &difference) {
  if (difference.ratio() <= 0)
    return "";
  char text[64];
  std::snprintf(text, sizeof(text), ", %.3f x", difference.ratio());
  return text;
}

void printDifference(const WinnerDifference &difference, const PatternLabels &labels) {
  std::string changes = configChanges(difference.configA, difference.configB);
  std::cout << "differ  " << padded(keyText(difference.a, labels), 70) << timeText(difference.a) << " -> "
            << timeText(difference.b) << ratioText(difference) << '\n';
  std::cout << "        "
            << (difference.isSameKernel() ? "the same kernel"
                : changes.empty()         ? "another kernel of the same configuration"
                                          : changes)
            << '\n';
}

void printNames(const StoreDiff &diff) {
  for (const NameRecord &name : diff.namesOnlyA)
    std::cout << "only a  the name " << name.name << '\n';
  for (const NameRecord &name : diff.namesOnlyB)
    std::cout << "only b  the name " << name.name << '\n';
  for (const NameDifference &name : diff.namesDiffer)
    std::cout << "differ  the name " << inOneLine(name.a.name) << ": pattern " << name.a.pattern.substr(0, 12) << " -> "
              << name.b.pattern.substr(0, 12) << '\n';
}

void printDiff(const StoreDiff &diff, const PatternLabels &labels) {
  printOnly("a", diff.winnersOnlyA, labels);
  printOnly("b", diff.winnersOnlyB, labels);
  for (const WinnerDifference &difference : diff.winnersDiffer)
    printDifference(difference, labels);
  printNames(diff);
  auto counts = [](int64_t a, int64_t b) { return grouped(a) + " only in a, " + grouped(b) + " only in b"; };
  std::cout << "winners: " << counts(int64_t(diff.winnersOnlyA.size()), int64_t(diff.winnersOnlyB.size())) << ", "
            << grouped(diff.winnersDiffer.size()) << " differ, " << grouped(diff.winnersEqual) << " equal\n"
            << "kernels: " << counts(diff.kernelsOnlyA, diff.kernelsOnlyB) << '\n'
            << "trials: " << counts(diff.trialsOnlyA, diff.trialsOnlyB) << ", " << grouped(diff.trialsDiffer)
            << " differ\n";
}

/// True if the two are equal.
Result<bool> compare(const DiffOptions &options) {
  HEDDLE_ASSIGN(Store a, options.first.open(StoreMode::readOnly));
  HEDDLE_ASSIGN(Store b, options.second.open(StoreMode::readOnly));
  std::error_code ignored;
  if (std::filesystem::equivalent(a.path(), b.path(), ignored))
    return Status::invalidArgument("compare '" + a.path() + "' with '" + b.path() +
                                   "': expected two files, this is one");
  HEDDLE_ASSIGN(StoreDiff diff, diffStores(a, b));
  HEDDLE_ASSIGN(std::vector<NameRecord> names, a.names());
  HEDDLE_ASSIGN(std::vector<NameRecord> others, b.names());
  names.insert(names.end(), others.begin(), others.end());
  if (options.json) {
    Json json{{"a", a.path()}, {"b", b.path()}};
    json.update(diffJson(diff));
    printJson(json);
  } else {
    std::cout << "a  " << a.path() << "\nb  " << b.path() << '\n';
    printDiff(diff, PatternLabels(names));
  }
  return diff.isEqual();
}

} // namespace

Action addCacheDiff(CLI::App &command) {
  auto options = std::make_shared<DiffOptions>();
  command.add_option("A", options->first.given, "Database")->required();
  command.add_option("B", options->second.given, "Database to compare it with")->required();
  options->first.addPermissions(command);
  command.add_flag("--exit-code", options->exitCode, "Exit with 1 if they differ");
  addJsonOption(command, options->json);
  return [options] {
    options->second.allowForeignWriters = options->first.allowForeignWriters;
    Result<bool> equal = compare(*options);
    if (!equal)
      return fail(equal.status());
    return options->exitCode && !*equal ? int(BadInput) : int(Ok);
  };
}

} // namespace heddle::cli
