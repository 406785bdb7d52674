//===- SweepMerge.cpp - heddle sweep merge --------------------------------===//
#include "compiler/Plan/SweepJournal.h"
#include "compiler/Tools/Cache.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Sweep.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <map>

namespace heddle::cli {
namespace {

struct SweepMergeOptions : SweepPlanOptions {
  DatabaseOptions database;
};

/// Items of the plan that nobody finished, and those whose times are recorded, not measured.
struct OpenItems {
  size_t open = 0, recorded = 0;
};

Result<OpenItems> countOpen(const SweepMergeOptions &options) {
  HEDDLE_ASSIGN(WorkPlan plan, options.load());
  HEDDLE_ASSIGN(std::vector<SweepEntry> entries, readSweep(options.folder));
  std::map<std::string, bool> isRecorded; // of those that are done
  for (const SweepEntry &entry : entries)
    if (entry.isDone)
      isRecorded[entry.item] = entry.isRecorded;
  OpenItems items;
  for (const TuneItem &item : plan.tuneItems()) {
    const auto done = isRecorded.find(item.str());
    items.open += done == isRecorded.end();
    items.recorded += done != isRecorded.end() && done->second;
  }
  return items;
}

Status mergeShards(const SweepMergeOptions &options) {
  HEDDLE_ASSIGN(const OpenItems items, countOpen(options));
  const std::vector<std::string> shards = shardDatabases(options.folder);
  if (shards.empty())
    return Status::notFound("'" + options.folder + "': there is no database of a shard");
  const StoreOptions reading = options.database.options(StoreMode::readOnly);
  HEDDLE_TRY(Store::previewMerge(options.database.path(), shards, reading).status()); // a target is not made in vain
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readWrite));
  HEDDLE_TRY(store.merge(shards, reading).status());
  HEDDLE_ASSIGN(StoreCounts counts, store.counts());
  if (items.recorded > 0)
    warn(counted(items.recorded, "item") + " of the plan " + (items.recorded == 1 ? "has" : "have") +
         " recorded times, which nobody measured here");
  if (items.open > 0)
    warn(counted(items.open, "item") + " of the plan " + (items.open == 1 ? "is" : "are") +
         " not done; `heddle sweep status` says why");
  if (options.json)
    printJson(Json{{"database", store.path()},
                   {"shards", shards},
                   {"not_done", items.open},
                   {"recorded", items.recorded},
                   {"holds", countsJson(counts)}});
  else
    std::cout << store.path() << ": " << counted(shards.size(), "shard") << ", " << countsText(counts) << '\n';
  return {};
}

} // namespace

Action addSweepMerge(CLI::App &command) {
  auto options = std::make_shared<SweepMergeOptions>();
  options->add(command);
  options->addFolder(command);
  command.add_option("-o,--output", options->database.given, "Database to add to; made if it is not there")
      ->type_name("FILE")
      ->required();
  options->database.addPermissions(command);
  return [options] { return finish(mergeShards(*options)); };
}

} // namespace heddle::cli
