// Looks into, tidies and passes on kernel databases: the list of operations, and those that list and tidy. Only
// prune, merge and import change one.
#include "compiler/Tools/Cache.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <ctime>
#include <iostream>

namespace heddle::cli {
namespace {

struct CacheOptions {
  DatabaseOptions database;
  std::string keepGenerator;
  double olderThanDays = 0;
  bool keepsUnreferenced = false, dryRun = false, trials = false, json = false;
};

Status listTrials(const Store &store, const CacheOptions &options) {
  HEDDLE_ASSIGN(std::vector<Trial> trials, store.allTrials());
  HEDDLE_ASSIGN(std::vector<NameRecord> names, store.names());
  const PatternLabels labels(names);
  Json json{{"database", store.path()}, {"trials", Json::array()}};
  for (const Trial &trial : trials) {
    json["trials"].push_back(rowJson(trial));
    const std::string message = inOneLine(trial.message);
    if (!options.json)
      std::cout << padded(outcomeText(trial), 14) << padded(keyText(trial, labels), 70) << inOneLine(trial.config)
                << (message.empty() ? "" : ": " + message) << '\n';
  }
  if (options.json)
    printJson(json);
  else
    std::cout << store.path() << ": " << counted(trials.size(), "trial") << '\n';
  return {};
}

Status list(const CacheOptions &options) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readOnly));
  if (options.trials)
    return listTrials(store, options);
  HEDDLE_ASSIGN(std::vector<KernelSummary> kernels, store.kernels());
  HEDDLE_ASSIGN(std::vector<Winner> winners, store.winners());
  HEDDLE_ASSIGN(std::vector<NameRecord> names, store.names());
  if (!options.json) {
    const PatternLabels labels(names);
    for (const Winner &winner : winners)
      std::cout << padded(winnerId(winner).substr(0, 12), 12) << padded(timeText(winner), 10) << keyText(winner, labels)
                << '\n';
    std::cout << store.path() << ": " << counted(kernels.size(), "kernel") << ", " << counted(winners.size(), "winner")
              << '\n';
    return {};
  }
  Json json{{"database", store.path()}, {"kernels", Json::array()}, {"winners", Json::array()}};
  for (const KernelSummary &kernel : kernels)
    json["kernels"].push_back(kernelJson(kernel.record, kernel.cubinBytes, kernel.ptxBytes));
  for (const Winner &winner : winners)
    json["winners"].push_back(winnerJson(winner));
  printJson(json);
  return {};
}

Status verify(const CacheOptions &options) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readOnly));
  HEDDLE_ASSIGN(VerifyReport report, store.verify());
  if (options.json)
    printJson(Json{{"database", store.path()},
                   {"ok", report.problems.empty()},
                   {"counts", countsJson(report.counts)},
                   {"problems", report.problems}});
  else if (report.problems.empty())
    std::cout << store.path() << ": ok: " << countsText(report.counts) << '\n';
  if (report.problems.empty())
    return {};
  std::string problems;
  for (const std::string &problem : report.problems)
    problems += "\n  " + problem;
  return Status::corrupt("'" + store.path() + "' has " + counted(report.problems.size(), "problem") + ":" + problems);
}

Status prune(const CacheOptions &options) {
  HEDDLE_TRY(options.database.open(StoreMode::readOnly).status()); // a missing file is not made to be pruned
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readWrite));
  PruneOptions conditions;
  if (options.olderThanDays > 0)
    conditions.olderThanUnix = int64_t(std::time(nullptr)) - int64_t(options.olderThanDays * 86400);
  conditions.keepGenerator = storedGenerator(options.keepGenerator);
  conditions.dropsUnreferencedKernels = !options.keepsUnreferenced;
  conditions.isDryRun = options.dryRun;
  HEDDLE_ASSIGN(StoreCounts gone, store.prune(conditions));
  if (options.json)
    printJson(Json{{"database", store.path()}, {"dry_run", options.dryRun}, {"removed", countsJson(gone)}});
  else
    std::cout << store.path() << ": " << (options.dryRun ? "would remove " : "removed ") << countsText(gone) << '\n';
  return {};
}

Status listNames(const CacheOptions &options) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readOnly));
  HEDDLE_ASSIGN(std::vector<NameRecord> names, store.names());
  Json json{{"database", store.path()}, {"names", Json::array()}};
  for (const NameRecord &name : names) {
    json["names"].push_back(rowJson(name));
    if (!options.json)
      std::cout << padded(name.name, 20) << padded(name.pattern.substr(0, 12), 12) << inOneLine(name.parameters)
                << '\n';
  }
  if (options.json)
    printJson(json);
  return {};
}

Status listLinks(const CacheOptions &options) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readOnly));
  HEDDLE_ASSIGN(std::vector<LinkRecord> links, store.links());
  Json json{{"database", store.path()}, {"links", Json::array()}};
  for (const LinkRecord &link : links) {
    json["links"].push_back(rowJson(link));
    if (options.json)
      continue;
    char rates[64];
    std::snprintf(rates, sizeof rates, "%.3g GB/s each way, %.3g us", link.gbps, link.latencyUs);
    std::cout << padded(link.deviceName, 20) << padded(counted(link.ranks, "rank"), 8)
              << padded(counted(link.hosts, "host"), 7) << padded(rates, 32) << "NCCL " << inOneLine(link.nccl) << '\n';
  }
  if (options.json)
    printJson(json);
  return {};
}

/// An operation on one database that needs no more than CacheOptions.
template <Status (*operation)(const CacheOptions &)> Action addPlain(CLI::App &command) {
  auto options = std::make_shared<CacheOptions>();
  options->database.add(command);
  addJsonOption(command, options->json);
  if constexpr (operation == list)
    command.add_flag("--trials", options->trials, "List what was tried instead, with the reasons of what failed");
  if constexpr (operation == prune) {
    addValue(command, "--older-than", options->olderThanDays, "DAYS", "Drop winners and trials of more days ago")
        ->check(realBetween(1e-6, 1e6));
    addValue(command, "--keep-generator", options->keepGenerator, "NUMBER",
             std::string("Drop what is not of ") + kGeneratorNumber);
    command.add_flag("--keep-unreferenced", options->keepsUnreferenced, "Keep kernels that no winner names");
    command.add_flag("--dry-run", options->dryRun, "Only count");
  }
  return [options] { return finish(operation(*options)); };
}

constexpr Verb kOperations[] = {
    {"ls", "List the winners", addPlain<list>},
    {"show", "Print one winner whole, or one kernel", addCacheShow},
    {"verify", "Check every row, checksum and plan", addPlain<verify>},
    {"prune", "Drop old rows and kernels that nothing names", addPlain<prune>},
    {"export", "Write the winners that are meant to a file to ship", addCacheExport},
    {"import", "Add a file to the database, after showing what changes", addCacheImport},
    {"merge", "Add everything of other databases to one; the better winner stays", addCacheMerge},
    {"diff", "Say how two databases differ", addCacheDiff},
    {"names", "List the patterns by name", addPlain<listNames>},
    {"links", "List what ring links measured of messages between GPUs", addPlain<listLinks>},
};

} // namespace

Action addCache(CLI::App &command) { return addOperations(command, {std::begin(kOperations), std::end(kOperations)}); }

} // namespace heddle::cli
