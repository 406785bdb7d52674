//===- cache.cpp - heddle cache -------------------------------------------===//
// Looks into and tidies kernel databases. Only prune and merge change one.
//===----------------------------------------------------------------------===//
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/FieldText.h"

#include <CLI/CLI.hpp>

#include <ctime>
#include <iostream>

namespace heddle::cli {
namespace {

struct CacheOptions {
  DatabaseOptions database;
  std::string key, keepGenerator;
  std::vector<std::string> sources;
  double olderThanDays = 0;
  bool keepsUnreferenced = false, dryRun = false, json = false;
};

Json valueJson(const std::string &value) { return value; }
Json valueJson(int64_t value) { return value; }
Json valueJson(double value) { return value; }
Json valueJson(DType value) { return dtypeName(value); }

/// The fields of a row, in the order of its list.
template <class T> Json rowJson(const T &row) {
  Json json;
  T::fields([&](const char *name, auto member) { json[name] = valueJson(row.*member); });
  return json;
}

Json countsJson(const StoreCounts &counts) {
  Json json;
  json["kernels"] = counts.kernels;
  json["winners"] = counts.winners;
  json["trials"] = counts.trials;
  json["devices"] = counts.devices;
  json["names"] = counts.names;
  return json;
}

std::string countsText(const StoreCounts &counts) {
  return std::to_string(counts.kernels) + " kernels, " + std::to_string(counts.winners) + " winners, " +
         std::to_string(counts.trials) + " trials, " + std::to_string(counts.devices) + " devices, " +
         std::to_string(counts.names) + " names";
}

/// The row as JSON without its code, whose sizes are given instead.
Json kernelJson(KernelRecord record, int64_t cubinBytes, int64_t ptxBytes) {
  record.cubin.clear();
  record.ptx.clear();
  Json json = rowJson(record);
  json["cubin"] = cubinBytes;
  json["ptx"] = ptxBytes;
  return json;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text + "  ";
}

/// What a pattern is called here, else the start of its digest.
std::string patternLabel(const std::vector<NameRecord> &names, const std::string &digest) {
  for (const NameRecord &name : names)
    if (name.pattern == digest)
      return name.name;
  return digest.substr(0, 12);
}

/// "192/128" where v has dims of its own.
std::string dimsText(const KernelFamily &family) {
  std::string text = std::to_string(family.headDim);
  return family.valueDim == family.headDim ? text : text + "/" + std::to_string(family.valueDim);
}

std::string winnerText(const Winner &winner, const std::vector<NameRecord> &names) {
  std::string device = winner.deviceName.empty() ? "any " + winner.arch : winner.deviceName;
  std::string time = winner.isTuned ? std::to_string(int64_t(winner.medianUs + 0.5)) + " us" : "untuned";
  return padded(winner.contentKey.substr(0, 12), 12) + padded(patternLabel(names, winner.pattern), 16) +
         padded(winner.kind, 8) + padded(dtypeName(winner.dtype), 5) + padded("d=" + dimsText(winner), 5) +
         padded(time, 10) + device + '\n';
}

Status list(const CacheOptions &options) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readOnly));
  HEDDLE_ASSIGN(std::vector<KernelSummary> kernels, store.kernels());
  HEDDLE_ASSIGN(std::vector<Winner> winners, store.winners());
  HEDDLE_ASSIGN(std::vector<NameRecord> names, store.names());
  if (!options.json) {
    for (const Winner &winner : winners)
      std::cout << winnerText(winner, names);
    std::cout << store.path() << ": " << kernels.size() << " kernels, " << winners.size() << " winners\n";
    return {};
  }
  Json json{{"database", store.path()}, {"kernels", Json::array()}, {"winners", Json::array()}};
  for (const KernelSummary &kernel : kernels)
    json["kernels"].push_back(kernelJson(kernel.record, kernel.cubinBytes, kernel.ptxBytes));
  for (const Winner &winner : winners)
    json["winners"].push_back(rowJson(winner));
  printJson(json);
  return {};
}

/// The one content key that starts with `prefix`.
Result<std::string> completeKey(const Store &store, const std::string &prefix) {
  HEDDLE_ASSIGN(std::vector<KernelSummary> kernels, store.kernels());
  std::string found;
  for (const KernelSummary &kernel : kernels) {
    const std::string &key = kernel.record.contentKey;
    if (key.compare(0, prefix.size(), prefix) != 0)
      continue;
    if (!found.empty())
      return Status::invalidArgument("several kernels of '" + store.path() + "' begin with '" + prefix + "': give more letters");
    found = key;
  }
  if (found.empty())
    return Status::notFound("no kernel of '" + store.path() + "' begins with '" + prefix + "'; heddle cache ls lists them");
  return found;
}

Status show(const CacheOptions &options) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readOnly));
  HEDDLE_ASSIGN(std::string key, completeKey(store, options.key));
  HEDDLE_ASSIGN(KernelRecord record, store.kernel(key));
  int64_t cubinBytes = int64_t(record.cubin.size()), ptxBytes = int64_t(record.ptx.size());
  if (options.json) {
    printJson(kernelJson(std::move(record), cubinBytes, ptxBytes));
    return {};
  }
  record.cubin = std::to_string(cubinBytes) + " bytes";
  record.ptx = std::to_string(ptxBytes) + " bytes";
  std::cout << fieldText(record);
  return {};
}

Status verify(const CacheOptions &options) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readOnly));
  HEDDLE_ASSIGN(VerifyReport report, store.verify());
  if (options.json)
    printJson(Json{{"database", store.path()}, {"ok", report.problems.empty()}, {"counts", countsJson(report.counts)}, {"problems", report.problems}});
  else if (report.problems.empty())
    std::cout << store.path() << ": ok: " << countsText(report.counts) << '\n';
  if (report.problems.empty())
    return {};
  std::string problems;
  for (const std::string &problem : report.problems)
    problems += "\n  " + problem;
  return Status::corrupt("'" + store.path() + "' has " + std::to_string(report.problems.size()) + " problems:" + problems);
}

Status prune(const CacheOptions &options) {
  HEDDLE_TRY(options.database.open(StoreMode::readOnly).status()); // a missing file is not made to be pruned
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readWrite));
  PruneOptions conditions;
  if (options.olderThanDays > 0)
    conditions.olderThanUnix = int64_t(std::time(nullptr)) - int64_t(options.olderThanDays * 86400);
  conditions.keepGenerator = options.keepGenerator;
  conditions.dropsUnreferencedKernels = !options.keepsUnreferenced;
  conditions.isDryRun = options.dryRun;
  HEDDLE_ASSIGN(StoreCounts gone, store.prune(conditions));
  if (options.json)
    printJson(Json{{"database", store.path()}, {"dry_run", options.dryRun}, {"removed", countsJson(gone)}});
  else
    std::cout << store.path() << ": " << (options.dryRun ? "would remove " : "removed ") << countsText(gone) << '\n';
  return {};
}

Status merge(const CacheOptions &options) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readWrite));
  StoreOptions reading;
  reading.allowForeignWriters = options.database.allowForeignWriters;
  Json added = Json::array();
  for (const std::string &source : options.sources) {
    HEDDLE_ASSIGN(StoreCounts counts, store.merge(source, reading));
    added.push_back({{"from", source}, {"added", countsJson(counts)}});
    if (!options.json)
      std::cout << source << ": added " << countsText(counts) << '\n';
  }
  if (options.json)
    printJson(Json{{"database", store.path()}, {"merged", added}});
  return {};
}

Status listNames(const CacheOptions &options) {
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readOnly));
  HEDDLE_ASSIGN(std::vector<NameRecord> names, store.names());
  Json json{{"database", store.path()}, {"names", Json::array()}};
  for (const NameRecord &name : names) {
    json["names"].push_back(rowJson(name));
    if (!options.json)
      std::cout << padded(name.name, 20) << padded(name.pattern.substr(0, 12), 12) << name.parameters << '\n';
  }
  if (options.json)
    printJson(json);
  return {};
}

using Operation = Status (*)(const CacheOptions &);

/// A subcommand with the options that all of them take.
CLI::App *addOperation(CLI::App &command, CacheOptions &options, const char *name, const char *summary) {
  CLI::App *sub = command.add_subcommand(name, summary);
  options.database.add(*sub);
  addJsonOption(*sub, options.json);
  return sub;
}

void addPruneOptions(CLI::App &command, CacheOptions &options) {
  command.add_option("--older-than", options.olderThanDays, "Drop winners and trials of more days ago")
      ->type_name("DAYS")
      ->check(CLI::PositiveNumber);
  command.add_option("--keep-generator", options.keepGenerator, "Drop what other versions of the generator wrote")->type_name("VERSION");
  command.add_flag("--keep-unreferenced", options.keepsUnreferenced, "Keep kernels that no winner names");
  command.add_flag("--dry-run", options.dryRun, "Only count");
}

} // namespace

Action addCache(CLI::App &command) {
  auto options = std::make_shared<CacheOptions>();
  command.require_subcommand(1);
  std::vector<std::pair<CLI::App *, Operation>> operations;
  auto add = [&](const char *name, const char *summary, Operation operation) {
    operations.emplace_back(addOperation(command, *options, name, summary), operation);
    return operations.back().first;
  };
  add("ls", "List kernels and what they won", list);
  add("show", "Print one kernel's record", show)
      ->add_option("KEY", options->key, "Content key, or how it begins")
      ->required();
  add("verify", "Check every row, checksum and plan", verify);
  addPruneOptions(*add("prune", "Drop old rows and kernels that nothing names", prune), *options);
  add("merge", "Add everything of other databases", merge)
      ->add_option("FILE", options->sources, "Databases to read")
      ->required();
  add("names", "List the patterns by name", listNames);
  return [options, operations] {
    for (const auto &[sub, operation] : operations)
      if (sub->parsed()) {
        Status status = operation(*options);
        return status.isOk() ? int(Ok) : fail(status);
      }
    return int(Usage);
  };
}

} // namespace heddle::cli
