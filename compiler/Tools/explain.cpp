// Counts pairs, tiles, operations and bytes of a pattern for given sizes. Needs no GPU.
#include "codegen/Target/GpuModel.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Verb.h"
#include "compiler/Views/ExplanationPrint.h"
#include "runtime/Core/Positions.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

struct ExplainOptions {
  PatternOptions pattern;
  SizeOptions sizes;
  std::optional<int64_t> batch, seqlen, seqlenK, heads, kvHeads, headDim, valueDim;
  std::optional<std::string> dtype;
  OriginOption origin;
  int64_t blockM = 128, blockN = 128;
  Kind kind = {};
  std::string gpu = "h200";
  bool json = false, configs = false, quality = false;
  std::string inputs;
  uint64_t seed = 0;
  std::optional<int64_t> limit, rows;
};

Result<views::ExplainRequest> requestOf(const ExplainOptions &options, const PatternFile &file) {
  views::ExplainRequest request;
  request.kind = options.kind;
  ProblemShape shape;
  shape.batch = options.batch.value_or(1);
  shape.heads = options.heads.value_or(1);
  shape.kvHeads = options.kvHeads.value_or(shape.heads);
  shape.seqlenQ = *options.seqlen;
  shape.seqlenK = options.seqlenK.value_or(shape.seqlenQ);
  shape.qOrigin = options.origin.position.value_or(0);
  HEDDLE_ASSIGN(shape.parameters, file.bindParameters(options.sizes.assignments));
  HEDDLE_TRY(checkShape(file, shape));
  // Quality needs every tensor: made like q, k and v, or beside them in their file.
  using Missing = OperandSources::Missing;
  const Missing missing = !options.quality         ? Missing::leaveOut
                          : options.inputs.empty() ? Missing::make
                                                   : Missing::refuse;
  HEDDLE_TRY(bindOperands(file, {options.sizes.operands, options.inputs, missing, options.seed}, shape));
  request.operands = shape.operands;
  request.sizes = sizesOf(file, shape);
  request.batch = shape.batch;
  request.kvHeads = shape.kvHeads;
  request.headDim = options.headDim.value_or(128);
  request.valueDim = options.valueDim.value_or(request.headDim);
  request.dtype = *parseDType(options.dtype.value_or(dtypeName(kDefaultDType)));
  request.tile = {options.blockM, options.blockN};
  request.pairs.mostPairs = options.limit.value_or(request.pairs.mostPairs);
  request.sizes.mostEvaluations = options.limit.value_or(request.sizes.mostEvaluations);
  HEDDLE_ASSIGN(request.gpu, findGpuModel(options.gpu));
  return request;
}

Status contradiction(const std::string &option, const std::string &given, const std::string &file,
                     const std::string &found) {
  return Status::invalidArgument(option + "=" + given + ": " + file + " has " + found + "; leave " + option + " out");
}

/// The sizes and the element type of the file; options may say the same.
Status takeSizes(ExplainOptions &options, const AttentionInputs &inputs) {
  const AttentionSizes &sizes = inputs.sizes;
  struct Size {
    const char *option;
    std::optional<int64_t> &given;
    int64_t found;
  };
  const Size all[] = {{"--seqlen", options.seqlen, sizes.seqlenQ},      {"--seqlen-k", options.seqlenK, sizes.seqlenK},
                      {"--batch", options.batch, sizes.batch},          {"--heads", options.heads, sizes.heads},
                      {"--kv-heads", options.kvHeads, sizes.kvHeads},   {"--head-dim", options.headDim, sizes.headDim},
                      {"--value-dim", options.valueDim, sizes.valueDim}};
  for (const Size &size : all) {
    if (size.given.value_or(size.found) != size.found)
      return contradiction(size.option, std::to_string(*size.given), options.inputs, std::to_string(size.found));
    size.given = size.found;
  }
  const std::string found = dtypeName(inputs.dtype());
  if (options.dtype.value_or(found) != found)
    return contradiction("--dtype", *options.dtype, options.inputs, found);
  options.dtype = found;
  return {};
}

Result<views::Quality> measure(const PatternFile &file, const ExplainOptions &options,
                               const views::ExplainRequest &request, std::optional<AttentionInputs> inputs) {
  if (!inputs) {
    AttentionSizes sizes{1,
                         request.sizes.seqlenQ,
                         request.sizes.seqlenK,
                         request.sizes.heads,
                         request.kvHeads,
                         request.headDim,
                         request.valueDim};
    HEDDLE_TRY(views::checkQualitySizes(sizes));
    HEDDLE_ASSIGN(inputs, randomAttentionInputs(sizes, request.dtype, options.seed));
  }
  return views::measureQuality(
      file, {request.sizes, request.tile, &*inputs, options.seed, request.operands, options.rows, request.pairs});
}

int runExplain(ExplainOptions options) {
  std::optional<AttentionInputs> inputs;
  if (!options.inputs.empty()) {
    Result<AttentionInputs> read = readAttentionInputs(options.inputs);
    Status status = read ? takeSizes(options, *read) : read.status();
    if (!status.isOk())
      return fail(status);
    inputs = read.take();
  } else if (!options.seqlen) {
    return failUsage(Status::invalidArgument("--seqlen is required"));
  }
  const auto [file, exitCode] = loadForCall(options.pattern, options.origin, options.sizes);
  if (!file)
    return exitCode;
  Result<views::ExplainRequest> request = requestOf(options, *file);
  if (!request)
    return fail(request.status());
  ProgressLine progress;
  request->pairs.progress = [&](double share) { progress.show(share, "pairs and tiles; --limit bounds them"); };
  Result<views::Explanation> explanation = views::explain(*file, *request);
  progress.finish();
  if (!explanation)
    return fail(explanation.status());
  std::optional<views::Quality> quality;
  if (options.quality) {
    request->pairs.progress = [&](double share) {
      progress.show(share, "rows and keys; --rows and --limit bound them");
    };
    request->pairs.progress(0);
    Result<views::Quality> measured = measure(*file, options, *request, std::move(inputs));
    progress.finish();
    if (!measured)
      return fail(measured.status());
    quality = measured.take();
  }
  const std::string inputsName =
      options.inputs.empty() ? "random normal q, k and v, seed " + std::to_string(options.seed) : options.inputs;
  if (options.json)
    printJson(Json::parse(
        views::explanationJson(*file, *request, *explanation, options.configs, quality ? &*quality : nullptr)));
  else
    std::cout << views::explanationText(*file, *request, *explanation, options.configs)
              << (quality ? views::qualityText(inputsName, options.seed, *quality) : "");
  return Ok;
}

} // namespace

Action addExplain(CLI::App &command) {
  auto options = std::make_shared<ExplainOptions>();
  options->pattern.add(command);
  addKindOption(command, options->kind, /*withPages=*/false);
  CLI::Range lengths(int64_t(0), kFarthestPosition), counts(int64_t(1), int64_t(1) << 20);
  addCount(command, "--seqlen", options->seqlen, "N",
           "Queries, and keys unless --seqlen-k is given; required without --inputs")
      ->check(lengths);
  addCount(command, "--seqlen-k", options->seqlenK, "M", "Keys")->check(lengths);
  addCount(command, "--heads", options->heads, "H", "Query heads (default 1)")->check(counts);
  addCount(command, "--kv-heads", options->kvHeads, "H", "Heads of k and v (default: as --heads)")->check(counts);
  addCount(command, "--head-dim", options->headDim, "D", "Channels of a head of q and k (default 128)")->check(counts);
  addCount(command, "--value-dim", options->valueDim, "D", "Channels of v and out [as --head-dim]")->check(counts);
  command.add_option("--dtype", options->dtype, std::string("Element type (default ") + dtypeName(kDefaultDType) + ")")
      ->check(CLI::IsMember(elementNames(&ElementTraits::isOfCalls)));
  addCount(command, "--batch", options->batch, "B", "Batch elements (default 1)")->check(counts);
  addCount(command, "--block-m", options->blockM, "M", "Queries of a tile (default 128)")->check(counts);
  addCount(command, "--block-n", options->blockN, "N", "Keys of a tile (default 128)")->check(counts);
  options->origin.add(command);
  addValue(command, "--gpu", options->gpu, "NAME", "GPU of the roofline (default h200)")->check(gpuName());
  command.add_flag(
      "--configs", options->configs,
      "Count the configurations of the kernels, with what rules them out, and list the default and its neighbours");
  CLI::Option *quality = command.add_flag(
      "--quality", options->quality,
      "Compare with dense attention: captured mass, output error, layers until all is connected, imbalance of tiles");
  addValue(command, "--inputs", options->inputs, "X.safetensors",
           "Tensors q, k, v of --quality, which also give the sizes and the element type [random]")
      ->needs(quality);
  addCount(command, "--rows", options->rows, "N",
           "Rows that --quality looks at [all of short sequences, else at most 256]")
      ->needs(quality)
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  addCount(command, "--limit", options->limit, "N",
           "Counts stop at so many pairs tried one by one, or evaluations of a closed form [2^31 pairs, 2^19 "
           "evaluations]")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  addSeedOption(command, options->seed, "Of random inputs and of the sample of rows (default 0)")->needs(quality);
  options->sizes.add(command);
  addJsonOption(command, options->json);
  return [options] { return runExplain(*options); };
}

} // namespace heddle::cli
