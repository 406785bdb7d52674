// Plans one attention call whose sequence lies on many ranks: the layout, what ranks send each other, predicted times.
// Needs no GPU, but for the rates of links.
#include "compiler/Tools/CountJson.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/RingLinks.h"
#include "compiler/Tools/RingRateOptions.h"
#include "compiler/Tools/Verb.h"
#include "compiler/Views/RingPlan.h"
#include "dialect/Geometry/NamedLayout.h"
#include "dialect/IR/RealWord.h"
#include "runtime/Core/Positions.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

constexpr int64_t kMostRanks = 1024, kMostHeads = int64_t(1) << 14;
constexpr size_t kFewRanks = 8; ///< of which JSON has every step

struct RingOptions {
  PatternOptions pattern;
  SizeOptions sizes;
  OriginOption origin;
  int64_t ranks = 0, seqlen = 0, batch = 1, heads = 1, headDim = 128;
  std::optional<int64_t> kvHeads, valueDim, stripe, limit;
  std::string dtype = dtypeName(kDefaultDType), layout = "auto", output;
  RingRateOptions rates;
  bool backward = false, allRanks = false, json = false;
};

Result<views::RingRequest> requestOf(const RingOptions &options, const PatternFile &file) {
  views::RingRequest request;
  ProblemShape shape;
  shape.batch = options.batch;
  shape.heads = options.heads;
  shape.kvHeads = options.kvHeads.value_or(shape.heads);
  shape.seqlenQ = shape.seqlenK = options.seqlen;
  shape.qOrigin = options.origin.position.value_or(0);
  HEDDLE_ASSIGN(shape.parameters, file.bindParameters(options.sizes.assignments));
  HEDDLE_TRY(checkShape(file, shape));
  HEDDLE_TRY(bindOperands(file, {options.sizes.operands, {}, OperandSources::Missing::leaveOut}, shape));
  request.sizes = sizesOf(file, shape);
  HEDDLE_TRY(checkMaskTensors(file, request.sizes));
  request.sizes.mostEvaluations = options.limit.value_or(request.sizes.mostEvaluations);
  request.call.kind = Kind{options.backward ? KindBase::backward : KindBase::forward};
  request.call.batch = shape.batch;
  request.call.heads = shape.heads;
  request.call.kvHeads = shape.kvHeads;
  request.call.headDim = options.headDim;
  request.call.valueDim = options.valueDim.value_or(options.headDim);
  request.call.dtype = *parseDType(options.dtype);
  request.ranks = options.ranks;
  request.layout = options.layout;
  request.stripe = options.stripe;
  HEDDLE_TRY(options.rates.set(file, request));
  return request;
}

Json sizesJson(const PatternFile &file, const views::RingRequest &request) {
  Json parameters = Json::object();
  attn::PatternOp pattern = file.pattern();
  for (size_t i = 0; i < request.sizes.parameters.size(); ++i)
    if (!pattern.isOperand(i))
      parameters[pattern.getParameterName(i).str()] = pattern.isRealParameter(i)
                                                          ? Json(attn::realOfWord(request.sizes.parameters[i]))
                                                          : Json(request.sizes.parameters[i]);
  const RingCall &call = request.call;
  return {{"batch", call.batch},
          {"seqlen", request.sizes.seqlenQ},
          {"heads", call.heads},
          {"kv_heads", call.kvHeads},
          {"head_dim", call.headDim},
          {"value_dim", call.valueDim},
          {"dtype", dtypeName(call.dtype)},
          {"parameters", parameters}};
}

Json layoutsJson(const views::RingRequest &request, const views::RingPlan &ring) {
  Json list = Json::array();
  for (const views::LayoutTimes &figures : ring.figures)
    list.push_back({{"layout", figures.name},
                    {"balance", figures.balance ? Json(*figures.balance) : Json()},
                    {"bytes", countJson(figures.travelling * request.call.bytesOfKey())},
                    {"ring_ms", figures.ringMs ? Json(*figures.ringMs) : Json()},
                    {"least", figures.scheme},
                    {"least_ms", figures.ms ? Json(*figures.ms) : Json()}});
  return list;
}

Json predictedJson(const views::RingPlan &ring) {
  Json list = Json::array();
  for (const views::RingScheme &scheme : ring.times.schemes) {
    list.push_back(
        {{"scheme", scheme.name}, {"ms", scheme.ms ? Json(*scheme.ms) : Json()}, {"head_ranks", scheme.headRanks}});
    if (!scheme.ms)
      list.back()["reason"] = scheme.whyNot;
  }
  return list;
}

Json groupRankJson(const GroupRankTime &rank) {
  return {{"ms", rank.ms},
          {"compute_ms", rank.computeMs},
          {"memory_ms", rank.memoryMs},
          {"launch_ms", rank.launchMs},
          {"beside_ms", rank.besideMs},
          {"first_wait_ms", rank.firstWaitMs},
          {"wait_ms", rank.waitMs},
          {"launches", rank.launches},
          {"messages", rank.messages},
          {"received_bytes", int64_t(rank.receivedBytes)},
          {"beyond_bytes", int64_t(rank.fromBeyondBytes)},
          {"waiting_rows", rank.waitingRows}};
}

Json groupsJson(const views::RingPlan &ring) {
  Json list = Json::array();
  for (const GroupForecast &group : ring.groups) {
    Json ranks = Json::array();
    for (const GroupRankTime &rank : group.time.ranks)
      ranks.push_back(groupRankJson(rank));
    list.push_back({{"form", group.form},
                    {"head_ranks", group.as.headRanks},
                    {"ms", group.time.ms ? Json(*group.time.ms) : Json()},
                    {"by_rank", ranks}});
    if (!group.time.ms)
      list.back()["reason"] = group.time.whyNot;
  }
  return list;
}

Json stepsJson(const views::RingRequest &request, const views::RingPlan &ring, size_t rank) {
  Json list = Json::array();
  const size_t ranks = ring.plan->ranks();
  const std::vector<views::RingSlot> slots = views::ringSlots(*ring.plan, request.call, rank);
  for (size_t index = 0; index < ranks; ++index) {
    const size_t peer = (rank + ranks - index) % ranks;
    const attn::ShardStep &step = ring.plan->step(rank, peer);
    if (step.columns == 0)
      continue;
    list.push_back({{"step", index},
                    {"from", peer},
                    {"keys", step.columns},
                    {"head_keys", countJson(step.headColumns)},
                    {"exact", step.isExact},
                    {"all_kept", step.isWhole},
                    {"bytes", rank == peer ? Json(0) : countJson(step.headColumns * request.call.bytesOfKey())},
                    {"kept_pairs", countJson(step.pairs)}});
    if (slots.empty())
      continue;
    list.back()["compute_ms"] = slots[index].computeMs;
    list.back()["move_ms"] = slots[index].moveMs;
    list.back()["bound"] = slots[index].isWaiting() ? "communication" : "compute";
  }
  return list;
}

Json ranksJson(const views::RingRequest &request, const views::RingPlan &ring, bool withSteps) {
  Json list = Json::array();
  for (size_t rank = 0; rank < ring.plan->ranks(); ++rank) {
    const views::RankTime &time = ring.times.ranks[rank];
    const std::optional<attn::WideInt> pairs = ring.plan->pairsOf(rank);
    Json rows = Json::array();
    for (const attn::IndexRange &range : ring.layout.ranks[rank])
      rows.push_back({range.begin, range.end});
    list.push_back({{"rank", rank},
                    {"rows", rows},
                    {"kept_pairs", countJson(pairs)},
                    {"receives_bytes", countJson(time.receives)},
                    {"sends_bytes", countJson(time.sends)},
                    {"compute_ms", pairs ? Json(time.computeMs) : Json()},
                    {"wait_ms", pairs ? Json(time.waitMs()) : Json()},
                    {"ms", pairs ? Json(time.ms) : Json()}});
    if (withSteps)
      list.back()["steps"] = stepsJson(request, ring, rank);
  }
  return list;
}

Json ringJson(const PatternFile &file, const views::RingRequest &request, const views::RingPlan &ring, bool withAll) {
  const std::optional<double> balance = ring.plan->balance();
  const RingRates &rates = request.call.rates;
  attn::WideInt pairs = 0;
  for (size_t rank = 0; rank < ring.plan->ranks(); ++rank)
    pairs += ring.plan->pairsOf(rank).value_or(0);
  return {{"pattern", attn::PatternOp(file.pattern()).getSymName().str()},
          {"file", file.path()},
          {"kind", request.call.kind.name()},
          {"sizes", sizesJson(file, request)},
          {"ranks", request.ranks},
          {"layout", ring.name},
          {"why", ring.why},
          {"layouts", layoutsJson(request, ring)},
          {"kept_pairs", balance ? countJson(pairs) : Json()},
          {"balance", balance ? Json(*balance) : Json()},
          {"rates",
           {{"tflops", rates.tflops},
            {"kernels_from", request.rateNote},
            {"links_from", request.linkNote.empty() ? "as given" : request.linkNote},
            {"link_gbps", rates.linkGBps},
            {"latency_us", rates.latencyUs},
            {"host_ranks", rates.hostRanks},
            {"host_gbps", rates.hostGBps},
            {"host_latency_us", rates.hostLatencyUs},
            {"launch_us", rates.launchUs},
            {"memory_gbps", rates.memoryGBps}}},
          {"predicted", predictedJson(ring)},
          {"of_plans", groupsJson(ring)},
          {"best_of_plans", ring.bestOfPlans() ? Json(ring.bestOfPlans()->form) : Json()},
          {"best", ring.times.best ? Json(ring.times.schemes[*ring.times.best].name) : Json()},
          {"by_rank", ranksJson(request, ring, withAll || ring.plan->ranks() <= kFewRanks)}};
}

Status write(const RingOptions &options, const PatternFile &file, const views::RingRequest &request) {
  ProgressLine progress;
  views::RingRequest shown = request;
  shown.progress = [&](double share) { progress.show(share, "what ranks ask of each other"); };
  auto ring = views::planRing(file, shown);
  progress.finish();
  if (!ring)
    return ring.status();
  views::addGroupTimes(file, shown, **ring);
  if (!options.output.empty())
    HEDDLE_TRY(writeArtifact(options.output, views::ringSvg(file, shown, **ring)));
  if (options.json)
    printJson(ringJson(file, shown, **ring, options.allRanks));
  else if (options.output != "-")
    std::cout << views::ringText(file, shown, **ring, options.allRanks);
  return {};
}

int runPlan(const RingOptions &options) {
  std::vector<std::string> uses = options.sizes.files();
  uses.push_back(options.pattern.path());
  if (Status output = checkOutput("-o", options.output, uses); !output.isOk())
    return fail(output);
  if (Status name = checkEnding("-o", options.output, {".svg"}, kFromSvg); !name.isOk())
    return failUsage(name);
  const auto [file, exitCode] = loadForCall(options.pattern, options.origin, options.sizes);
  if (!file)
    return exitCode;
  Result<views::RingRequest> request = requestOf(options, *file);
  return finish(request ? write(options, *file, *request) : request.status());
}

void addSizes(CLI::App &command, RingOptions &options) {
  CLI::Range counts(int64_t(1), int64_t(1) << 20), heads(int64_t(1), kMostHeads);
  addCount(command, "--ranks", options.ranks, "P", "Ranks that share the sequence, at most 1024")
      ->required()
      ->check(CLI::Range(int64_t(1), kMostRanks));
  addCount(command, "--seqlen", options.seqlen, "N", "Tokens of all ranks together: queries and keys")
      ->required()
      ->check(CLI::Range(int64_t(1), kFarthestPosition));
  addCount(command, "--heads", options.heads, "H", "Query heads (default 1)")->check(heads);
  addCount(command, "--kv-heads", options.kvHeads, "H", "Heads of k and v (default: as --heads)")->check(heads);
  addCount(command, "--head-dim", options.headDim, "D", "Channels of a head of q and k (default 128)")->check(counts);
  addCount(command, "--value-dim", options.valueDim, "D", "Channels of v and out [as --head-dim]")->check(counts);
  addCount(command, "--batch", options.batch, "B", "Batch elements (default 1)")->check(counts);
  command.add_option("--dtype", options.dtype, std::string("Element type (default ") + dtypeName(kDefaultDType) + ")")
      ->check(CLI::IsMember(elementNames(&ElementTraits::isOfCalls)));
  options.sizes.add(command);
  options.origin.add(command);
}

Action addRingPlan(CLI::App &command) {
  auto options = std::make_shared<RingOptions>();
  options->pattern.add(command);
  addSizes(command, *options);
  std::vector<std::string> layouts = attn::layoutNames();
  layouts.push_back("auto");
  addValue(command, "--layout", options->layout, "NAME",
           "Which rows a rank has: contiguous, zigzag, striped, balanced (cut where rows keep as many pairs), or auto: "
           "of the first three, the one that sends least of the fastest")
      ->capture_default_str()
      ->check(oneOf("layout", layouts));
  addCount(command, "--stripe", options->stripe, "N", "Rows of a stripe of the striped layout [128 or more]")
      ->check(CLI::Range(int64_t(1), kFarthestPosition));
  options->rates.add(command, kMostRanks);
  addCount(command, "--limit", options->limit, "N",
           "Kept pairs of a layout are unknown beyond so many evaluations of closed forms [2^19]")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  command.add_flag("--backward", options->backward, "Gradients: those of k and v go home in fp32");
  command.add_flag("--all-ranks", options->allRanks,
                   "Every rank and every step, not only the heaviest and the lightest ranks");
  addValue(command, "-o,--output", options->output, "FILE.svg", "Write a picture of who asks whom, too, or - instead");
  addJsonOption(command, options->json);
  return [options] { return runPlan(*options); };
}

constexpr Verb kOperations[] = {
    {"plan", "Say who sends what to whom, and what it takes at given rates", addRingPlan},
    {"links", "Measure messages between the GPUs of this machine", addRingLinks},
};

} // namespace

Action addRing(CLI::App &command) { return addOperations(command, {std::begin(kOperations), std::end(kOperations)}); }

} // namespace heddle::cli
