// Tunes every problem of a plan, in as many shards as there are machines; each shard writes files of its own.
#include "compiler/Tools/Sweep.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Plan/SweepJournal.h"
#include "compiler/Tools/Cache.h"
#include "compiler/Session/KernelShape.h"
#include "compiler/Pattern/Suggest.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <set>

namespace heddle::cli {

void SweepPlanOptions::add(CLI::App &command) {
  command
      .add_option("PLAN", plan,
                  "Plan file (JSON): patterns, head_dims, dtypes, kinds, precisions, problems, gpus; docs/plans.md")
      ->required();
  addJsonOption(command, json);
}

void SweepPlanOptions::addFolder(CLI::App &command) {
  addValue(command, "--dir", folder, "FOLDER", "Folder of the sweep: a database and a journal for each shard")
      ->required();
}

Result<WorkPlan> SweepPlanOptions::load() const {
  HEDDLE_ASSIGN(WorkPlan read, WorkPlan::load(plan));
  for (const PlanPattern &pattern : read.patterns)
    if (read.problemsOf(pattern).empty())
      return Status::invalidArgument(plan + ": expected \"problems\", what the patterns are tuned for");
  HEDDLE_TRY(checkPlanNames(read, plan));
  return read;
}

namespace {

Status listItems(const SweepPlanOptions &options) {
  HEDDLE_ASSIGN(WorkPlan plan, options.load());
  const std::vector<TuneItem> items = plan.tuneItems();
  Json list = Json::array();
  for (size_t i = 0; i < items.size(); ++i) {
    list.push_back({{"number", i}, {"item", items[i].str()}, {"file", items[i].pattern.file}});
    if (!options.json)
      std::cout << i << "  " << items[i].str() << '\n';
  }
  if (options.json)
    printJson(Json{{"plan", options.plan}, {"items", list}});
  else
    std::cout << options.plan << ": " << counted(items.size(), "item")
              << "; shard I/N has those whose number leaves I when divided by N\n";
  return {};
}

Action addSweepPlan(CLI::App &command) {
  auto options = std::make_shared<SweepPlanOptions>();
  options->add(command);
  return [options] { return finish(listItems(*options)); };
}

} // namespace

Action addSweep(CLI::App &command) {
  return addOperations(command, {{"plan", "List the items of a plan", addSweepPlan},
                                 {"run", "Tune the items of one shard on this machine's GPUs", addSweepRun},
                                 {"status", "Say what is done, what failed and why, and what is left", addSweepStatus},
                                 {"merge", "Add the databases of all shards to one", addSweepMerge}});
}

static Status checkArch(const std::string &name) {
  const Status known = findGpuArch(name).status();
  if (known.isOk() || name == "all")
    return {};
  const std::string meant = didYouMean(name, gpuArchNames());
  return Status::invalidArgument(known.message() + meant);
}

static Status checkPattern(const PlanPattern &pattern, const std::vector<Kind> &kinds) {
  HEDDLE_ASSIGN(const auto file, (PatternOptions{pattern.file, pattern.pattern}.load()));
  HEDDLE_TRY(file->checkSizeNames(pattern.sizes));
  const auto ofGradients = std::find_if(kinds.begin(), kinds.end(), [](const Kind &kind) { return kind.isBackward(); });
  const Kind &kind = ofGradients == kinds.end() ? kinds.front() : *ofGradients;
  const Status gradients = gradientArguments(*file, pattern.gradientsOf, kind).status();
  return gradients.isOk() ? gradients : Status(gradients.code(), "gradients_of: " + gradients.message());
}

Status checkPlanNames(const WorkPlan &plan, const std::string &label) {
  for (const std::string &arch : plan.archs)
    if (const Status known = checkArch(arch); !known.isOk())
      return Status::invalidArgument(label + ": archs: " + known.message());
  for (size_t i = 0; i < plan.patterns.size(); ++i)
    if (const Status found = checkPattern(plan.patterns[i], plan.kinds); !found.isOk())
      return Status::invalidArgument(label + ": patterns[" + std::to_string(i) + "]: " + found.message());
  return {};
}

namespace {

struct StatusOptions : SweepPlanOptions {
  bool list = false;
};

struct ItemStatus {
  std::string item;
  const SweepEntry *entry; ///< null: nobody came to its end
  const char *state() const { return !entry ? "pending" : entry->isDone ? "done" : "failed"; }
};

Json describe(const ItemStatus &status) {
  Json json = {{"item", status.item}, {"state", status.state()}};
  if (status.entry)
    json.update({{"message", status.entry->message},
                 {"device", status.entry->device},
                 {"host", status.entry->host},
                 {"median_us", status.entry->medianUs},
                 {"seconds", status.entry->seconds},
                 {"ended_unix", status.entry->endedUnix}});
  return json;
}

void print(const ItemStatus &status) {
  std::cout << padded(status.state(), 7) << status.item;
  if (status.entry && status.entry->isDone)
    std::cout << ": " << microseconds(status.entry->medianUs) << " on " << status.entry->device;
  else if (status.entry)
    std::cout << ": " << inOneLine(status.entry->message);
  std::cout << '\n';
}

Status showStatus(const StatusOptions &options) {
  HEDDLE_ASSIGN(WorkPlan plan, options.load());
  HEDDLE_ASSIGN(std::vector<SweepEntry> entries, readSweep(options.folder));
  std::map<std::string, const SweepEntry *> entryOf;
  double seconds = 0;
  for (const SweepEntry &entry : entries) {
    entryOf[entry.item] = &entry;
    seconds += entry.seconds;
  }
  std::map<std::string, int64_t> counts = {{"done", 0}, {"failed", 0}, {"pending", 0}};
  Json list = Json::array();
  for (const TuneItem &item : plan.tuneItems()) {
    const auto found = entryOf.find(item.str());
    const ItemStatus status{item.str(), found == entryOf.end() ? nullptr : found->second};
    ++counts[status.state()];
    list.push_back(describe(status));
    if (!options.json && (options.list || (status.entry && !status.entry->isDone)))
      print(status);
  }
  const Json summary = {
      {"done", counts["done"]}, {"failed", counts["failed"]}, {"pending", counts["pending"]}, {"gpu_seconds", seconds}};
  if (options.json)
    printJson(Json{{"plan", options.plan}, {"dir", options.folder}, {"summary", summary}, {"items", list}});
  else
    std::cout << options.folder << ": " << grouped(counts["done"]) << " done, " << grouped(counts["failed"])
              << " failed, " << grouped(counts["pending"]) << " pending, " << grouped(int64_t(seconds))
              << " s of GPUs\n";
  return {};
}

} // namespace

Action addSweepStatus(CLI::App &command) {
  auto options = std::make_shared<StatusOptions>();
  options->add(command);
  options->addFolder(command);
  command.add_flag("--list", options->list, "Every item, not only those that failed");
  return [options] { return finish(showStatus(*options)); };
}

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
