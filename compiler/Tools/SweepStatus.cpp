//===- SweepStatus.cpp - heddle sweep status ------------------------------===//
#include "compiler/Plan/SweepJournal.h"
#include "compiler/Tools/Cache.h"
#include "compiler/Tools/Sweep.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
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

} // namespace heddle::cli
