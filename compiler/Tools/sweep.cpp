//===- sweep.cpp - heddle sweep -------------------------------------------===//
// Tunes every problem of a plan, in as many shards as there are machines; each shard writes files of its own.
//===----------------------------------------------------------------------===//
#include "compiler/Tools/Sweep.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/PlanNames.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {

void SweepPlanOptions::add(CLI::App &command) {
  command.add_option("PLAN", plan, "Plan file (JSON): patterns, head_dims, dtypes, problems, gpus; docs/plans.md")
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

} // namespace heddle::cli
