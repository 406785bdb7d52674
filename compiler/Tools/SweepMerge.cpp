//===- SweepMerge.cpp - heddle sweep merge --------------------------------===//
#include "compiler/Plan/SweepJournal.h"
#include "compiler/Tools/Cache.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Sweep.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <set>

namespace heddle::cli {
namespace {

struct SweepMergeOptions : SweepPlanOptions {
  DatabaseOptions database;
};

/// Items of the plan that nobody finished.
Result<size_t> countOpen(const SweepMergeOptions &options) {
  HEDDLE_ASSIGN(WorkPlan plan, options.load());
  HEDDLE_ASSIGN(std::vector<SweepEntry> entries, readSweep(options.folder));
  std::set<std::string> done;
  for (const SweepEntry &entry : entries)
    if (entry.isDone)
      done.insert(entry.item);
  size_t open = 0;
  for (const TuneItem &item : plan.tuneItems())
    open += !done.count(item.str());
  return open;
}

Status mergeShards(const SweepMergeOptions &options) {
  HEDDLE_ASSIGN(const size_t open, countOpen(options));
  const std::vector<std::string> shards = shardDatabases(options.folder);
  if (shards.empty())
    return Status::notFound("'" + options.folder + "': there is no database of a shard");
  const StoreOptions reading = options.database.options(StoreMode::readOnly);
  HEDDLE_TRY(Store::previewMerge(options.database.path(), shards, reading).status()); // a target is not made in vain
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readWrite));
  HEDDLE_TRY(store.merge(shards, reading).status());
  HEDDLE_ASSIGN(StoreCounts counts, store.counts());
  if (open > 0)
    warn(counted(open, "item") + " of the plan " + (open == 1 ? "is" : "are") +
         " not done; `heddle sweep status` says why");
  if (options.json)
    printJson(Json{{"database", store.path()}, {"shards", shards}, {"not_done", open}, {"holds", countsJson(counts)}});
  else
    std::cout << store.path() << ": " << counted(shards.size(), "shard") << ", " << countsText(counts) << '\n';
  return {};
}

} // namespace

Action addSweepMerge(CLI::App &command) {
  auto options = std::make_shared<SweepMergeOptions>();
  options->add(command);
  options->addFolder(command);
  addValue(command, "-o,--output", options->database.given, "FILE", "Database to add to; made if it is not there")
      ->required();
  options->database.addPermissions(command);
  return [options] { return finish(mergeShards(*options)); };
}

} // namespace heddle::cli
