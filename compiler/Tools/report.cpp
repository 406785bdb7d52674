// Writes what a database says as one page for people, or as JSON. Databases are only read.
#include "compiler/Report/Report.h"
#include "compiler/Plan/WorkPlan.h"
#include "compiler/Tools/CallOptions.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/SafeStream.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <ctime>
#include <iostream>
#include <set>

namespace heddle::cli {
namespace {

struct ReportOptions {
  DatabaseOptions database;
  std::string against, output;
  std::vector<std::string> plans, calls, stats;
  bool json = false;
};

CallOptions problemOf(const TuneItem &item) {
  CallOptions problem;
  problem.pattern.file = item.pattern.file;
  problem.pattern.name = item.pattern.pattern;
  problem.problem.batch = item.problem.batch;
  problem.problem.heads = item.problem.heads;
  problem.problem.kvHeads = item.problem.kvHeads;
  problem.problem.seqlen = item.problem.seqlenQ;
  problem.problem.seqlenK = item.problem.seqlenK;
  problem.problem.sizes.assignments = item.pattern.sizes;
  problem.shape.kind = item.kind;
  problem.shape.gradientsOf.names = item.pattern.gradientsOf;
  problem.shape.headDim = item.dims.head;
  problem.shape.valueDim = item.dims.value;
  problem.shape.dtype = dtypeName(item.dtype);
  problem.shape.precision = item.precision;
  return problem;
}

/// The calls of all plans, then the others, each once: a plan has an item for every GPU.
Result<std::vector<CallOptions>> callsOf(const ReportOptions &options) {
  std::vector<CallOptions> calls;
  for (const std::string &path : options.plans) {
    HEDDLE_ASSIGN(WorkPlan plan, WorkPlan::load(path));
    for (const TuneItem &item : plan.tuneItems())
      calls.push_back(problemOf(item));
  }
  for (const std::string &text : options.calls) {
    HEDDLE_ASSIGN(CallOptions call, CallOptions::parse(text));
    calls.push_back(std::move(call));
  }
  std::set<std::string> seen;
  calls.erase(std::remove_if(calls.begin(), calls.end(),
                             [&](const CallOptions &call) { return !seen.insert(call.text()).second; }),
              calls.end());
  return calls;
}

/// A page must not take the place of what it was made from.
Status checkPage(const ReportOptions &options) {
  HEDDLE_ASSIGN(const std::vector<CallOptions> calls, callsOf(options));
  std::vector<std::string> uses = options.plans;
  uses.insert(uses.end(), {options.database.path(), options.against});
  uses.insert(uses.end(), options.stats.begin(), options.stats.end());
  for (const CallOptions &call : calls)
    for (const std::string &file : call.files())
      uses.push_back(file);
  return checkOutput("-o", options.output, uses);
}

/// Ok, or the exit code for what a --problem says wrong or names in vain.
int checkCalls(const std::vector<std::string> &calls) {
  for (const std::string &text : calls) {
    const Result<CallOptions> call = CallOptions::parse(text);
    if (!call)
      return failUsage(call.status());
    if (const int code = checkNames(*call); code != Ok)
      return code;
  }
  return Ok;
}

Result<Json> collect(const ReportOptions &options) {
  HEDDLE_ASSIGN(const std::vector<CallOptions> calls, callsOf(options));
  HEDDLE_ASSIGN(Store store, options.database.open(StoreMode::readOnly));
  report::ReportRequest request;
  request.store = &store;
  std::optional<Store> against;
  if (!options.against.empty()) {
    HEDDLE_ASSIGN(against, Store::open(options.against, options.database.options(StoreMode::readOnly)));
    request.against = &*against;
  }
  for (const CallOptions &call : calls) {
    report::KnownProblem &known = request.problems.emplace_back();
    HEDDLE_ASSIGN(known.file, call.pattern.load());
    HEDDLE_ASSIGN(known.shape, call.problem.shape(*known.file));
    HEDDLE_ASSIGN(known.kernel, call.shape.shape(*known.file, baselineGpuArch()));
  }
  for (const std::string &path : options.stats) {
    HEDDLE_ASSIGN(std::vector<report::SlowKernel> slow, report::readSlowKernels(path));
    if (!request.slow)
      request.slow.emplace();
    request.slow->insert(request.slow->end(), slow.begin(), slow.end());
  }
  return report::makeReport(request);
}

/// "  window 1x8x2048 (1023) on Some GPU 00000000:1b:00.0: 1.30 times its 20 us, since 2026-11-26 05:00 UTC".
void printSlow(const Json &slow) {
  for (const Json &row : slow) {
    char since[40] = "";
    if (const time_t seconds = row["since_unix"].is_null() ? 0 : time_t(row["since_unix"].get<int64_t>()))
      std::strftime(since, sizeof since, ", since %Y-%m-%d %H:%M UTC", std::gmtime(&seconds));
    const std::string text = row["pattern"].get<std::string>() + " " + row["problem"].get<std::string>() + " on " +
                             row["device"].get<std::string>() + " " + row["bus"].get<std::string>();
    printTo(std::cout, "  %s: %.3g times its %.4g us%s%s\n", text.c_str(), row["factor"].get<double>(),
            row["expected_us"].get<double>(), since,
            row["note"].is_null() ? "" : ("; " + row["note"].get<std::string>()).c_str());
  }
}

Status makeAndWrite(const ReportOptions &options) {
  HEDDLE_ASSIGN(Json data, collect(options));
  if (options.json) {
    printJson(data);
    return {};
  }
  HEDDLE_TRY(writeArtifact(options.output, report::reportPage(data)));
  size_t winners = 0, trials = 0;
  for (const Json &workload : data["workloads"]) {
    winners += workload["has_winner"].get<bool>();
    trials += workload["trials"]["rows"].size();
  }
  if (options.output != "-")
    std::cout << options.output << ": " << counted(data["workloads"].size(), "workload") << ", "
              << counted(winners, "winner") << ", " << counted(trials, "trial") << ", "
              << counted(data["devices"].size(), "GPU")
              << (options.stats.empty() ? "" : ", " + counted(data["slow"].size(), "slow kernel")) << '\n';
  if (options.output != "-" && !options.stats.empty())
    printSlow(data["slow"]);
  return {};
}

} // namespace

Action addReport(CLI::App &command) {
  auto options = std::make_shared<ReportOptions>();
  options->database.add(command);
  addValue(command, "--against", options->against, "FILE",
           "Another database to compare the winners with: an older one, another machine's");
  addValues(command, "--plan", options->plans, "FILE",
            "Plan of the sweep: says which calls were tuned, for rates, roof, estimates and defaults; may be "
            "repeated");
  addValues(command, "--problem", options->calls, "CALL",
            "One such call, \"FILE --batch=2 --heads=16 --seqlen=8192 --head-dim=128\"; may be repeated");
  addValues(command, "--stats", options->stats, "FILE",
            "Counters of a running process, JSON of heddle.stats() or a drift in each line: shows kernels that became "
            "slower than their stored times; may be repeated");
  CLI::Option *output =
      addValue(command, "-o,--output", options->output, "FILE", "Page to write; - is standard output");
  CLI::Option *json = command.add_flag("--json", options->json, "Print the data of the page as JSON instead");
  output->excludes(json);
  return [options] {
    if (options->output.empty() && !options->json)
      return failUsage(Status::invalidArgument("expected -o FILE, or --json"));
    if (const int code = checkCalls(options->calls); code != Ok)
      return code;
    if (Status page = options->json ? Status() : checkPage(*options); !page.isOk())
      return fail(page);
    if (Status name =
            checkEnding("-o", options->output, {".html", ".htm"}, "browsers make them of an .html, by printing it");
        !name.isOk())
      return failUsage(name);
    return finish(makeAndWrite(*options));
  };
}

} // namespace heddle::cli
