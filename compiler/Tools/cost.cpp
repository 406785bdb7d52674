// Plans the training of a model on a cluster: all ways of dividing the work, their time, memory and money. Needs no GPU.
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Verb.h"
#include "compiler/Views/CostPlan.h"
#include "runtime/Core/CountText.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

namespace heddle::cli {
namespace {

using namespace heddle::cost;

struct CostOptions {
  std::string file, output;
  DatabaseOptions database;
  int64_t top = 5;
  bool published = false, json = false;
};

template <class Names, size_t count> Json namedJson(const std::array<double, count> &values, Names name) {
  Json object = Json::object();
  for (size_t index = 0; index < count; ++index)
    object[name(int(index))] = values[index];
  return object;
}

Json layoutJson(const Layout &layout) {
  return {{"tensor", layout.tensor},
          {"pipeline", layout.pipeline},
          {"virtual", layout.virtualStages},
          {"schedule", nameOf(layout.schedule)},
          {"context", layout.context},
          {"context_scheme", nameOf(layout.scheme)},
          {"data", layout.data},
          {"zero", layout.zero},
          {"expert", layout.expert},
          {"micro_batch", layout.microBatch},
          {"recompute", nameOf(layout.recompute)},
          {"sequence", layout.splitsSequence},
          {"offload_optimizer", layout.offloadsOptimizer},
          {"offload_activations", layout.offloadsActivations}};
}

Json optional(const std::optional<double> &value) { return value ? Json(*value) : Json(); }

Json outlookJson(const Outlook &ahead) {
  Json goodput;
  if (ahead.goodput)
    goodput = {{"share", ahead.goodput->share},
               {"failure_hours", ahead.goodput->failureHours},
               {"checkpoint_seconds", ahead.goodput->checkpointSeconds},
               {"interval_seconds", ahead.goodput->intervalSeconds},
               {"rings_go_on", ahead.goodput->hasRings}};
  return {{"tokens_per_second", ahead.tokensPerSecond},
          {"flops_per_token", ahead.flopsOfToken},
          {"mfu", ahead.mfu},
          {"megawatts", ahead.megawatts},
          {"goodput", goodput},
          {"days", optional(ahead.days)},
          {"gpu_hours", optional(ahead.gpuHours)},
          {"megawatt_hours", optional(ahead.megawattHours)},
          {"money", optional(ahead.money)}};
}

Json memoryJson(const MemoryUse &memory) {
  Json moments = Json::array();
  for (size_t moment = 0; moment < kMoments; ++moment) {
    moments.push_back({{"moment", nameOf(Moment(moment))}, {"bytes", memory.totals[moment]}});
    moments.back().update(namedJson(memory.bytes[moment], [](int item) { return nameOf(MemoryItem(item)); }));
  }
  return {{"peak_bytes", memory.peakBytes}, {"peak", nameOf(memory.peak)}, {"moments", moments}};
}

Json candidateJson(const CostProblem &problem, const Candidate &candidate) {
  return {{"layout", layoutJson(candidate.layout)},
          {"micro_batches", microBatches(problem, candidate.layout)},
          {"seconds", candidate.time.total},
          {"forward_ms", candidate.time.forwardMs},
          {"backward_ms", candidate.time.backwardMs},
          {"time", namedJson(candidate.time.seconds, [](int item) { return nameOf(TimeItem(item)); })},
          {"hidden", namedJson(hiddenTime(problem, candidate.layout, candidate.time),
                               [](int item) { return nameOf(TimeItem(item)); })},
          {"memory", memoryJson(candidate.memory)},
          {"outlook", outlookJson(outlook(problem, candidate.layout, candidate.time))}};
}

Json attentionJson(const CostProblem &problem) {
  Json list = Json::array();
  for (const AttentionSpec &spec : problem.attention)
    list.push_back({{"pattern", spec.pattern},
                    {"layers", spec.layers},
                    {"kernel", attentionKernelNames()[size_t(spec.kernel)]},
                    {"kept_pairs", spec.pairs},
                    {"workspace_bytes", spec.workspaceBytes},
                    {"forward_tflops", spec.rate.forward},
                    {"backward_tflops", spec.rate.backward},
                    {"assumed", spec.rate.isGuess},
                    {"rate", spec.rate.note},
                    {"advice", spec.rate.advice}});
  return list;
}

Json refusalsJson(const SearchResult &found) {
  static constexpr const char *kNames[kRefusals] = {"gpus",    "heads", "ffn",     "context", "layers", "schedule",
                                                    "experts", "batch", "ulysses", "offload", "memory"};
  Json list = Json::array();
  for (size_t index = 0; index < kRefusals; ++index)
    if (const RefusalCount &refusal = found.refusals[index]; refusal.count > 0)
      list.push_back({{"reason", kNames[index]},
                      {"count", refusal.count},
                      {"why", refusal.why},
                      {"example", layoutJson(refusal.example)}});
  return list;
}

Json costJson(const views::CostPlan &plan) {
  Json best = Json::array();
  for (const Candidate &candidate : plan.found.best)
    best.push_back(candidateJson(plan.problem, candidate));
  return {{"name", plan.problem.name},
          {"file", plan.problem.where},
          {"parameters", plan.problem.counts.total},
          {"active_parameters", plan.problem.counts.active},
          {"attention", attentionJson(plan.problem)},
          {"gpu", plan.problem.cluster.gpu.name},
          {"gpus", plan.problem.cluster.gpus},
          {"searched", plan.found.tried},
          {"possible", plan.found.possible},
          {"refused", refusalsJson(plan.found)},
          {"layouts", best}};
}

Json publishedJson(const std::vector<views::PublishedRun> &runs) {
  Json list = Json::array(), constants = Json::array();
  for (const views::PublishedRun &run : runs) {
    const Candidate &best = run.plan.found.best.front();
    list.push_back({{"name", run.plan.problem.name},
                    {"reported_seconds", run.plan.reported.secondsOfStep},
                    {"predicted_seconds", run.predicted},
                    {"error", run.error()},
                    {"what", run.plan.reported.what},
                    {"source", run.plan.reported.source},
                    {"note", run.plan.reported.note},
                    {"layout", layoutJson(best.layout)},
                    {"time", namedJson(best.time.seconds, [](int item) { return nameOf(TimeItem(item)); })}});
  }
  for (const EfficiencySource &row : efficiencySources())
    constants.push_back({{"name", row.name}, {"value", row.value}, {"source", row.source}});
  return {{"runs", list}, {"mean_error", views::meanError(runs)}, {"constants", constants}};
}

Status runPublished(const CostOptions &options) {
  HEDDLE_ASSIGN(const std::vector<views::PublishedRun> runs, views::publishedRuns());
  if (options.json)
    printJson(publishedJson(runs));
  else
    std::cout << views::publishedText(runs);
  return {};
}

/// What is guessed is said where nobody reads the lines of attention, too.
void warnOfGuesses(const CostProblem &problem) {
  for (const AttentionSpec &spec : problem.attention)
    if (spec.rate.isGuess)
      warn(problem.where + ": attention '" + spec.pattern + "': " + spec.rate.note +
           (spec.rate.advice.empty() ? "" : "; " + spec.rate.advice));
}

/// None where no database was named: what somebody tuned here says nothing of a cluster that is planned.
Result<std::optional<views::TunedWinners>> tunedOf(const CostOptions &options) {
  if (options.database.given.empty())
    return std::optional<views::TunedWinners>();
  HEDDLE_ASSIGN(const Store store, options.database.open(StoreMode::readOnly));
  HEDDLE_ASSIGN(std::vector<Winner> winners, store.winners());
  return std::optional(views::TunedWinners{store.path(), std::move(winners)});
}

/// "; most, 960, since tensor 3 does not divide 8 heads (8 for k and v)".
std::string mostRefused(const SearchResult &found) {
  const auto most = std::max_element(found.refusals.begin(), found.refusals.end(),
                                     [](const RefusalCount &a, const RefusalCount &b) { return a.count < b.count; });
  const bool isMemory = most - found.refusals.begin() == int64_t(Refusal::memory);
  return "; most, " + grouped(most->count) + ", since " + (isMemory ? "a GPU would hold " : "") + most->why;
}

Status runPlan(const CostOptions &options) {
  HEDDLE_ASSIGN(CostFile file, loadCostFile(options.file));
  HEDDLE_ASSIGN(const std::optional<views::TunedWinners> tuned, tunedOf(options));
  ProgressLine progress;
  auto plan = views::planCost(std::move(file), size_t(options.top), tuned ? &*tuned : nullptr,
                              [&](double share) { progress.show(share, "what ranks ask of each other"); });
  progress.finish();
  if (!plan)
    return plan.status();
  warnOfGuesses(plan->problem);
  if (options.json)
    printJson(costJson(*plan));
  else if (options.output != "-")
    std::cout << views::costText(*plan);
  if (plan->found.best.empty())
    return Status::invalidArgument(options.file + ": no layout is possible: " + grouped(plan->found.tried) +
                                   " were looked at" + mostRefused(plan->found));
  return options.output.empty() ? Status() : writeArtifact(options.output, views::costSvg(*plan));
}

} // namespace

Action addCost(CLI::App &command) {
  auto options = std::make_shared<CostOptions>();
  CLI::Option *file = command.add_option("FILE", options->file, "Plan (JSON): model, attention, cluster; docs/cost.md");
  CLI::Option *published = command.add_flag("--published", options->published,
                                            "Published runs beside what is predicted of them, and all constants");
  CLI::Option *output = addValue(command, "-o,--output", options->output, "FILE.svg",
                                 "Write a picture of memory and a step, too, or - instead");
  CLI::Option *database =
      addValue(command, "--db", options->database.given, "FILE",
               "Database: kernels that were tuned on the GPU of the plan say the rates of attention");
  options->database.addPermissions(command);
  addCount(command, "--top", options->top, "N", "Layouts to show, best first")
      ->capture_default_str()
      ->check(CLI::Range(int64_t(1), int64_t(1000)));
  addJsonOption(command, options->json);
  file->excludes(published);
  output->excludes(published);
  database->excludes(published);
  return [options] {
    if (options->file.empty() && !options->published)
      return failUsage(Status::invalidArgument("expected a plan file, or --published"));
    if (options->published)
      return finish(runPublished(*options));
    if (Status picture = checkOutput("-o", options->output, {options->file}); !picture.isOk())
      return fail(picture);
    if (Status name = checkEnding("-o", options->output, {".svg"}, kFromSvg); !name.isOk())
      return failUsage(name);
    return finish(runPlan(*options));
  };
}

} // namespace heddle::cli
