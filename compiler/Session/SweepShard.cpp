#include "compiler/Session/SweepShard.h"

#include <chrono>
#include <ctime>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <unistd.h>

namespace heddle {
namespace {

std::string hostName() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

class ShardRun {
public:
  ShardRun(const SweepOptions &options, SweepJournal journal) : options(options), journal(std::move(journal)) {}

  Status choose(const WorkPlan &plan) {
    HEDDLE_ASSIGN(std::vector<SweepEntry> ended, readSweep(options.folder));
    std::set<std::string> done;
    for (const SweepEntry &entry : ended)
      if (entry.isDone)
        done.insert(entry.item);
    const std::vector<TuneItem> items = plan.tuneItems();
    for (size_t i = 0; i < items.size(); ++i) {
      if (!options.shard.has(i))
        continue;
      ++result.items;
      if (done.count(items[i].str()))
        ++result.known;
      else if (!hasGpuFor(items[i]))
        ++result.elsewhere;
      else
        waiting.push_back(items[i]);
    }
    progress.total = waiting.size();
    return {};
  }

  Result<SweepResult> run() {
    std::vector<std::thread> threads;
    for (const SweepGpu &gpu : options.gpus)
      threads.emplace_back([this, &gpu] {
        while (std::optional<TuneItem> item = next(gpu))
          finish(tuned(*item, gpu));
      });
    for (std::thread &thread : threads)
      thread.join();
    HEDDLE_TRY(failure);
    return std::move(result);
  }

private:
  static bool serves(const SweepGpu &gpu, const TuneItem &item) { return item.gpu.empty() || item.gpu == gpu.name; }
  bool hasGpuFor(const TuneItem &item) const {
    for (const SweepGpu &gpu : options.gpus)
      if (serves(gpu, item))
        return true;
    return false;
  }

  std::optional<TuneItem> next(const SweepGpu &gpu) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!failure.isOk() || (options.cancel && *options.cancel))
      return std::nullopt;
    for (auto item = waiting.begin(); item != waiting.end(); ++item)
      if (serves(gpu, *item)) {
        TuneItem found = std::move(*item);
        waiting.erase(item);
        return found;
      }
    return std::nullopt;
  }

  SweepEntry tuned(const TuneItem &item, const SweepGpu &gpu) const {
    const auto begin = std::chrono::steady_clock::now();
    SweepEntry entry = options.tune(item, gpu);
    entry.item = item.str();
    entry.device = gpu.name;
    entry.host = host;
    entry.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    entry.endedUnix = int64_t(std::time(nullptr));
    return entry;
  }

  /// An item that ended because everything is to end has not failed: it is there for the next run.
  void finish(SweepEntry entry) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!failure.isOk() || (!entry.isDone && options.cancel && *options.cancel))
      return;
    if (Status written = journal.append(entry); !written.isOk())
      failure = written;
    ++progress.ended;
    progress.failed += !entry.isDone;
    progress.last = entry.item;
    result.entries.push_back(std::move(entry));
    if (options.progress)
      options.progress(progress);
  }

  const SweepOptions &options;
  const std::string host = hostName();
  std::mutex mutex; ///< of what follows
  SweepJournal journal;
  std::deque<TuneItem> waiting;
  SweepProgress progress;
  SweepResult result;
  Status failure;
};

} // namespace

Result<SweepResult> runShard(const WorkPlan &plan, const SweepOptions &options) {
  HEDDLE_ASSIGN(SweepJournal journal, SweepJournal::open(shardJournal(options.folder, options.shard)));
  ShardRun run(options, std::move(journal));
  HEDDLE_TRY(run.choose(plan));
  return run.run();
}

} // namespace heddle
