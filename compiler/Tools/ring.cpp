// Plans one attention call whose sequence lies on many ranks: the layout, what ranks send each other, predicted times.
// Needs no GPU, but for the rates of links.
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/RingJson.h"
#include "compiler/Tools/RingLinks.h"
#include "compiler/Tools/RingRateOptions.h"
#include "compiler/Tools/Verb.h"
#include "compiler/Views/RingDecode.h"
#include "compiler/Views/RingPlan.h"
#include "dialect/Geometry/NamedLayout.h"
#include "runtime/Core/Positions.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

constexpr int64_t kMostRanks = 1024, kMostHeads = int64_t(1) << 14;

struct RingOptions {
  PatternOptions pattern;
  SizeOptions sizes;
  OriginOption origin;
  int64_t ranks = 0, seqlen = 0, batch = 1, heads = 1, headDim = 128;
  std::optional<int64_t> kvHeads, valueDim, stripe, limit;
  std::optional<int64_t> queries; ///< of decode: the last positions of a cache
  std::string dtype = dtypeName(kDefaultDType), layout = "auto", output;
  RingRateOptions rates;
  bool backward = false, equalParts = false, allRanks = false, json = false;
};

Result<views::RingRequest> requestOf(const RingOptions &options, const PatternFile &file) {
  views::RingRequest request;
  ProblemShape shape;
  shape.batch = options.batch;
  shape.heads = options.heads;
  shape.kvHeads = options.kvHeads.value_or(shape.heads);
  shape.seqlenQ = options.queries.value_or(options.seqlen);
  shape.seqlenK = options.seqlen;
  shape.qOrigin = options.origin.position.value_or(0);
  HEDDLE_ASSIGN(shape.parameters, file.bindParameters(options.sizes.assignments));
  HEDDLE_TRY(checkShape(file, shape));
  HEDDLE_TRY(bindOperands(file, {options.sizes.operands, {}, OperandSources::Missing::leaveOut}, shape));
  request.sizes = options.queries ? sizesOf(QOriginRule::end, shape) : sizesOf(file, shape);
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
  request.isOfEqualParts = options.equalParts;
  HEDDLE_TRY(options.rates.set(file, request));
  return request;
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
  if (!options.output.empty() || (options.json && options.allRanks))
    views::addSpans(file, shown, **ring);
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

int runDecode(const RingOptions &options) {
  const auto [file, exitCode] = loadForCall(options.pattern, options.origin, options.sizes);
  if (!file)
    return exitCode;
  const Result<views::RingRequest> request = requestOf(options, *file);
  if (!request)
    return fail(request.status());
  const Result<views::DecodeTimes> times = views::decodeTimes(*file, *request);
  if (!times)
    return fail(times.status());
  if (options.json)
    printJson(decodeJson(*file, *request, *times));
  else
    std::cout << views::decodeText(*file, *request, *times);
  return Ok;
}

void addSizes(CLI::App &command, RingOptions &options, const std::string &seqlen) {
  CLI::Range counts(int64_t(1), int64_t(1) << 20), heads(int64_t(1), kMostHeads);
  addCount(command, "--ranks", options.ranks, "P", "Ranks that share the sequence, at most 1024")
      ->required()
      ->check(CLI::Range(int64_t(1), kMostRanks));
  addCount(command, "--seqlen", options.seqlen, "N", seqlen)
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
}

Action addRingPlan(CLI::App &command) {
  auto options = std::make_shared<RingOptions>();
  options->pattern.add(command);
  addSizes(command, *options, "Tokens of all ranks together: queries and keys");
  options->origin.add(command);
  std::vector<std::string> layouts = attn::layoutNames();
  layouts.push_back("auto");
  addValue(command, "--layout", options->layout, "NAME",
           "Which rows a rank has: contiguous, zigzag, striped, balanced (cut where rows keep as many pairs, so that "
           "lengths differ), or auto: the one that sends least of those whose best plans take least")
      ->capture_default_str()
      ->check(oneOf("layout", layouts));
  command.add_flag("--equal-parts", options->equalParts,
                   "Auto: of layouts whose ranks have as many rows, so not of balanced");
  addCount(command, "--stripe", options->stripe, "N", "Rows of a stripe of the striped layout [128 or more]")
      ->check(CLI::Range(int64_t(1), kFarthestPosition));
  options->rates.add(command, kMostRanks);
  addCount(command, "--limit", options->limit, "N",
           "Kept pairs of a layout are unknown beyond so many evaluations of closed forms [2^19]")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  command.add_flag("--backward", options->backward, "Gradients: those of k and v go home in fp32");
  command.add_flag("--all-ranks", options->allRanks,
                   "Every rank and every step, not only the heaviest and the lightest ranks");
  addValue(command, "-o,--output", options->output, "FILE.svg",
           "Write a picture of who asks whom, and of what ranks do when, too, or - instead");
  addJsonOption(command, options->json);
  return [options] { return runPlan(*options); };
}

Action addRingDecode(CLI::App &command) {
  auto options = std::make_shared<RingOptions>();
  options->pattern.add(command);
  addSizes(command, *options, "Keys of each sequence, on all ranks together");
  options->queries = 1;
  addCount(command, "--queries", options->queries, "N", "Queries of each sequence, its last positions (default 1)")
      ->check(CLI::Range(int64_t(1), kFarthestPosition));
  options->rates.addLinks(command, kMostRanks);
  addJsonOption(command, options->json);
  return [options] { return runDecode(*options); };
}

constexpr Verb kOperations[] = {
    {"plan", "Say who sends what to whom, and what it takes at given rates", addRingPlan},
    {"decode", "Say what few queries over a cache on all ranks take at given rates", addRingDecode},
    {"links", "Measure messages between the GPUs of this machine", addRingLinks},
};

} // namespace

Action addRing(CLI::App &command) { return addOperations(command, {std::begin(kOperations), std::end(kOperations)}); }

} // namespace heddle::cli
