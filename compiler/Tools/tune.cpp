// Finds the fastest kernel for one problem on this machine's GPU and publishes it.
#include "compiler/Measure/ChildProcess.h"
#include "compiler/Session/TuneHere.h"
#include "compiler/Tools/ProcessStats.h"
#include "compiler/Tools/KeyLayout.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/SafeStream.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/CountText.h"
#include "tuner/Search/Strategies.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <iostream>
#include <thread>
#include <unistd.h>

namespace heddle::cli {
namespace {

struct TuneOptions {
  PatternOptions pattern;
  ProblemOptions problem;
  PagesOptions pages;
  ShapeOptions shape;
  ConfigOptions config;
  DatabaseOptions database;
  std::string budget = "20s", strategy = kTuneStrategy, name;
  int workers = 0, parent = 0;
  int64_t rows = 32;
  bool json = false;
};

std::atomic<bool> interrupted{false};
extern "C" void onInterrupt(int) { interrupted = true; }

Json outcomesJson(const tuner::TuningResult &search) {
  Json json;
  for (size_t i = 0; i < tuner::kOutcomeCount; ++i)
    json[tuner::outcomeName(static_cast<tuner::Outcome>(i))] = search.outcomes[i];
  return json;
}

Json winnerJson(const TuneOutcome &outcome, const std::optional<double> &tflops) {
  if (!outcome.search.winner)
    return Json();
  const auto &record = outcome.record;
  return {{"config", outcome.search.winner->config},
          {"median_us", outcome.medianUs},
          {"tflops", rateJson(tflops)},
          {"max_error", outcome.maxError},
          {"registers", record ? record->registers : outcome.search.winner->registers},
          {"content_key", record ? Json(record->contentKey) : Json()},
          {"arch", record ? Json(record->kernelArch) : Json()}};
}

Json describe(const TuneOutcome &outcome, const std::optional<double> &tflops, const std::string &database) {
  const tuner::TuningResult &search = outcome.search;
  Json json = {{"device", outcome.key.deviceName},
               {"database", database},
               {"end", tuner::endReasonName(search.end)},
               {"feasible", search.feasible},
               {"known", search.known},
               {"measured_now", search.measuredNow},
               {"outcomes", outcomesJson(search)},
               {"compile_seconds", search.compileSeconds},
               {"measure_seconds", search.measureSeconds},
               {"elapsed_seconds", search.elapsedSeconds},
               {"order", outcome.order},
               {"warm_starts", outcome.warmStarts}};
  json["first_usable_seconds"] = search.firstUsableSeconds ? Json(*search.firstUsableSeconds) : Json();
  json["winner"] = winnerJson(outcome, tflops);
  json["stats"] = processStats();
  return json;
}

void print(const TuneOutcome &outcome, const std::optional<double> &tflops, const std::string &database) {
  const tuner::TuningResult &search = outcome.search;
  printTo(std::cout, "%s: %s, %s known, %s tried now (%s) in %.1f s\n", outcome.key.deviceName.c_str(),
          counted(search.feasible, "feasible configuration").c_str(), grouped(search.known).c_str(),
          grouped(search.measuredNow).c_str(), tuner::endReasonName(search.end), search.elapsedSeconds);
  printTo(std::cout, "  tried first: %zu, the default and winners nearby; then by %s\n", outcome.warmStarts,
          outcome.order.c_str());
  for (size_t i = 0; i < tuner::kOutcomeCount; ++i)
    if (search.outcomes[i])
      printTo(std::cout, "  %-15s %s\n", tuner::outcomeName(static_cast<tuner::Outcome>(i)),
              grouped(search.outcomes[i]).c_str());
  if (search.winner)
    printTo(std::cout, "winner: %.1f us, %s TFLOP/s on kept pairs, error %.2e\n  %s\n", outcome.medianUs,
            rateText(tflops).c_str(), outcome.maxError, search.winner->config.c_str());
  if (outcome.record)
    printTo(std::cout, "  published to %s\n", database.c_str());
}

TuneRequest requestOf(const TuneOptions &options, const KernelShape &kernel, const ProblemShape &shape,
                      const ServedKeys &served, double budget) {
  TuneRequest request;
  request.shape = shape, request.served = served;
  static_cast<CallShape &>(request) = kernel;
  request.verifiedRows = options.rows;
  request.strategy = options.strategy;
  request.skeleton = options.config.skeleton;
  request.name = options.name;
  request.measureProgram = thisProgram();
  request.options.budgetSeconds = budget;
  int processors = std::max(1u, std::thread::hardware_concurrency());
  request.options.workers = options.workers > 0 ? options.workers : std::max(1, processors - 1);
  request.options.ahead = 2 * request.options.workers;
  request.options.cancel = &interrupted;
  return request;
}

int report(const TuneOptions &options, const TuneOutcome &outcome, const std::optional<double> &flops,
           const std::string &database) {
  const std::optional<double> tflops = teraflops(flops, outcome.medianUs);
  if (options.json)
    printJson(describe(outcome, tflops, database));
  else
    print(outcome, tflops, database);
  if (!outcome.search.winner)
    return fail(
        Status::unsupported("no configuration gave a correct, measured kernel within the budget; `heddle cache ls "
                            "--trials` shows why each failed"));
  return Ok;
}

/// A sweep that is killed leaves no child that goes on measuring beside that of the next run.
Status endWith(int parent) {
  ChildProcess::endWithParent();
  return getppid() == parent ? Status() : Status::unavailable("the process that started this one has ended");
}

int runTune(const TuneOptions &options) {
  if (options.parent)
    if (Status alive = endWith(options.parent); !alive.isOk())
      return fail(alive);
  Result<double> budget = parseSeconds(options.budget);
  if (!budget)
    return failUsage(budget.status());
  auto file = options.pattern.load();
  if (!file)
    return failNames(file.status());
  if (Status names = options.problem.sizes.check(**file); !names.isOk())
    return failUsage(names);
  const Result<ServedKeys> served = options.pages.keysOf(options.shape.kind, options.problem.seqlenK);
  if (!served)
    return failUsage(served.status());
  ProblemOptions problem = options.problem;
  if (served->isGiven())
    problem.seqlenK = served->room();
  Result<ProblemShape> shape = problem.shape(**file);
  if (!shape)
    return fail(shape.status());
  const Result<KernelShape> kernel = options.shape.shape(**file, baselineGpuArch());
  if (!kernel)
    return failUsage(kernel.status());
  if (Status gpu = gpusHere({-1}).status(); !gpu.isOk())
    return fail(gpu);
  Result<Store> store = options.database.open(StoreMode::readWrite);
  if (!store)
    return fail(store.status());
  Result<std::vector<Store>> shipped = options.database.openShippedStores();
  if (!shipped)
    return fail(shipped.status());
  std::signal(SIGINT, onInterrupt);
  std::signal(SIGTERM, onInterrupt);
  ProgressLine progress;
  TuneRequest request = requestOf(options, *kernel, *shape, *served, *budget);
  request.options.progress = [&progress](const tuner::Progress &now) { progress.show(now); };
  for (const Store &other : *shipped)
    request.shipped.push_back(&other);
  Result<TuneOutcome> outcome = tuneHere(**file, request, *store);
  progress.finish();
  if (!outcome)
    return fail(outcome.status());
  Result<std::optional<double>> flops = std::optional<double>(); // of batches of random lengths nobody counts them
  if (!served->isGiven())
    flops = keptFlops(**file, *shape, request.kind.flopsOfPair(request.headDim, request.valueDim));
  if (!flops)
    return fail(flops.status());
  return report(options, *outcome, *flops, store->path());
}

} // namespace

Action addTune(CLI::App &command) {
  auto options = std::make_shared<TuneOptions>();
  options->pattern.add(command);
  options->problem.add(command, /*withSeqlen=*/true);
  options->shape.add(command, /*withPages=*/true);
  options->pages.add(command, /*several=*/false);
  options->config.addSkeleton(command);
  options->database.add(command);
  options->database.addShipped(command);
  std::string strategies;
  for (const tuner::Strategy &strategy : tuner::strategies())
    strategies += std::string(strategies.empty() ? "" : "; ") + strategy.name + ": " + strategy.summary;
  command.add_option("--budget", options->budget, "time for the search: 30, 30s, 2m")->capture_default_str();
  command.add_option("--strategy", options->strategy, "NAME or NAME:OPTION=N,...; " + strategies)
      ->check(strategyWords())
      ->capture_default_str();
  command.add_option("--workers", options->workers,
                     "threads that compile; default: one less than there are processors");
  takesCount(command.add_option("--rows", options->rows, "rows of each candidate compared with the definition"))
      ->capture_default_str();
  command.add_option("--end-with", options->parent, "")->group(""); // of sweep run
  command.add_option("--name", options->name, "name of the pattern in the database; default: its own");
  addJsonOption(command, options->json);
  return [options] { return runTune(*options); };
}

} // namespace heddle::cli
