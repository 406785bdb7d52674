// Prints one winner whole: what it is for, its configuration, resources, provenance, and the trials it came from.
#include "compiler/Tools/Cache.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <map>

namespace heddle::cli {
namespace {

struct ShowOptions {
  DatabaseOptions database;
  std::string key;
  int64_t trials = 10;
  bool json = false;
};

struct Shown {
  KernelRecord kernel;
  std::vector<Winner> winners; ///< the one that was named, or all that name the kernel that was
};

bool beginsWith(const std::string &text, const std::string &prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

/// The content key and, if a winner is named rather than a kernel, its id.
Result<std::pair<std::string, std::string>> resolve(const Store &store, const std::vector<Winner> &winners,
                                                    const std::string &prefix) {
  std::vector<std::pair<std::string, std::string>> found;
  HEDDLE_ASSIGN(std::vector<KernelSummary> kernels, store.kernels());
  for (const KernelSummary &kernel : kernels)
    if (beginsWith(kernel.record.contentKey, prefix))
      found.emplace_back(kernel.record.contentKey, "");
  for (const Winner &winner : winners)
    if (beginsWith(winnerId(winner), prefix))
      found.emplace_back(winner.contentKey, winnerId(winner));
  if (found.empty())
    return Status::notFound("no winner and no kernel of '" + store.path() + "' begins with '" + prefix +
                            "'; heddle cache ls lists them");
  if (found.size() > 1)
    return Status::invalidArgument(grouped(found.size()) + " winners and kernels of '" + store.path() +
                                   "' begin with '" + prefix + "': give more letters");
  return found.front();
}

Result<Shown> find(const Store &store, const std::string &prefix) {
  HEDDLE_ASSIGN(std::vector<Winner> winners, store.winners());
  HEDDLE_ASSIGN(auto named, resolve(store, winners, prefix));
  Shown shown;
  HEDDLE_ASSIGN(shown.kernel, store.kernel(named.first));
  for (const Winner &winner : winners)
    if (named.second.empty() ? winner.contentKey == named.first : winnerId(winner) == named.second)
      shown.winners.push_back(winner);
  return shown;
}

/// The trials of the winner's session, the fastest first, then those without a time.
Result<std::vector<Trial>> trialsOf(const Store &store, const Winner &winner) {
  HEDDLE_ASSIGN(std::vector<Trial> trials, store.trials(Trial::sessionKey(winner)));
  std::multimap<double, Trial> ranked; // equally fast ones stay in their order
  for (Trial &trial : trials)
    ranked.emplace(trial.outcome == "measured" ? trial.medianUs : HUGE_VAL, std::move(trial));
  trials.clear();
  for (auto &[us, trial] : ranked)
    trials.push_back(std::move(trial));
  return trials;
}

std::string versionText(int64_t cuda) {
  return cuda ? std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10) : "unknown";
}

void line(const std::string &name, const std::string &value) {
  std::cout << "  " << padded(name, 14) << inOneLine(value) << '\n';
}

void printWinner(const Winner &winner) {
  std::cout << "winner " << winnerId(winner) << '\n';
  line("device", winner.deviceName.empty()
                     ? "any " + winner.arch
                     : winner.deviceName + ", " + winner.arch + ", " + counted(winner.smCount, "SM") + ", " +
                           grouped(winner.memoryGib) + " GiB");
  line("problem", winner.str());
  line("bucket",
       "work_per_sm=" + std::to_string(winner.workPerSm) + " tiles_per_row=" + std::to_string(winner.tilesPerRow) +
           " gqa_ratio=" + std::to_string(winner.gqaRatio) + " query_rows=" + std::to_string(winner.queryRows));
  line("median", timeText(winner));
  line("driver", versionText(winner.driverVersion));
  line("created", dateText(winner.createdUnix));
}

std::string conditionsText(const Trial &trial) {
  std::string text = trial.smClockMhz ? " at " + std::to_string(trial.smClockMhz) + " MHz" : "";
  if (trial.powerWatts > 0)
    text += (text.empty() ? " at " : ", ") + std::to_string(int64_t(trial.powerWatts)) + " W";
  return text;
}

void printTrials(const std::vector<Trial> &trials, const std::string &config, int64_t most) {
  std::map<std::string, int64_t> outcomes;
  for (const Trial &trial : trials)
    ++outcomes[trial.outcome];
  std::string counts;
  for (const auto &[outcome, count] : outcomes)
    counts += (counts.empty() ? "" : ", ") + grouped(count) + " " + outcome;
  line("trials", grouped(trials.size()) + (counts.empty() ? "" : ": " + counts));
  for (size_t i = 0; i < trials.size() && int64_t(i) < most; ++i) {
    const Trial &trial = trials[i];
    const bool isMeasured = trial.outcome == "measured";
    const std::string message = inOneLine(trial.message);
    std::string changes = configChanges(config, trial.config);
    std::cout << "    " << padded(outcomeText(trial) + (isMeasured ? conditionsText(trial) : ""), 14)
              << (changes.empty() ? "this configuration" : inOneLine(changes))
              << (message.empty() ? "" : ": " + message) << '\n';
  }
}

void printKernel(const KernelRecord &kernel, const std::vector<NameRecord> &names) {
  std::cout << "kernel " << kernel.contentKey << '\n';
  std::string named;
  for (const NameRecord &name : names)
    if (name.pattern == kernel.pattern)
      named += name.name + " ";
  line("pattern", named + kernel.pattern);
  line("computes", kernel.kind + " " + dtypeName(kernel.dtype) + " head_dim=" + std::to_string(kernel.headDim) +
                       " value_dim=" + std::to_string(kernel.valueDim));
  std::cout << "configuration\n";
  for (const auto &[name, value] : configFields(kernel.config))
    line(name, value);
  std::cout << "resources\n";
  line("registers", std::to_string(kernel.registers));
  line("spilled", grouped(kernel.spillBytes) + " B");
  line("shared memory", grouped(kernel.sharedBytes) + " B");
  line("cubin", grouped(kernel.cubin.size()) + " B");
  line("PTX", grouped(kernel.ptx.size()) + " B");
  std::cout << "provenance\n";
  line("compiled for", kernel.kernelArch);
  line("least driver", versionText(kernel.minDriver));
  line("code generator", generatorText(kernel.generator));
  line("NVRTC", kernel.nvrtcVersion);
  if (!kernel.note.empty())
    line("note", kernel.note);
}

Json configJson(const std::string &config) {
  Json json = Json::object();
  for (const auto &[name, value] : configFields(config))
    json[name] = value;
  return json;
}

Status showJson(const Store &store, const Shown &shown) {
  Json json{{"database", store.path()}};
  json["kernel"] = kernelJson(shown.kernel, int64_t(shown.kernel.cubin.size()), int64_t(shown.kernel.ptx.size()));
  json["configuration"] = configJson(shown.kernel.config);
  json["winners"] = Json::array();
  for (const Winner &winner : shown.winners) {
    HEDDLE_ASSIGN(std::vector<Trial> trials, trialsOf(store, winner));
    Json entry = winnerJson(winner);
    entry["trials"] = Json::array();
    for (const Trial &trial : trials)
      entry["trials"].push_back(rowJson(trial));
    json["winners"].push_back(std::move(entry));
  }
  printJson(json);
  return {};
}

Status print(const Store &store, const Shown &shown, const ShowOptions &options) {
  if (options.json)
    return showJson(store, shown);
  HEDDLE_ASSIGN(std::vector<NameRecord> names, store.names());
  printKernel(shown.kernel, names);
  if (shown.winners.empty())
    std::cout << "no winner names it\n";
  for (const Winner &winner : shown.winners) {
    HEDDLE_ASSIGN(std::vector<Trial> trials, trialsOf(store, winner));
    printWinner(winner);
    printTrials(trials, shown.kernel.config, options.trials);
  }
  return {};
}

int show(const ShowOptions &options) {
  const Result<Store> store = options.database.open(StoreMode::readOnly);
  if (!store)
    return fail(store.status());
  const Result<Shown> shown = find(*store, options.key);
  return shown ? finish(print(*store, *shown, options)) : failNames(shown.status());
}

} // namespace

Action addCacheShow(CLI::App &command) {
  auto options = std::make_shared<ShowOptions>();
  options->database.add(command);
  command.add_option("KEY", options->key, "Key of a winner, as ls prints it, or of a kernel, or how it begins")
      ->required();
  addCount(command, "--trials", options->trials, "N", "Print so many trials of a winner; --json has all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  addJsonOption(command, options->json);
  return [options] { return show(*options); };
}

} // namespace heddle::cli
