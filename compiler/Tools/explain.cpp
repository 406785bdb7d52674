//===- explain.cpp - heddle explain ------------------------------------------===//
// Counts pairs, tiles, operations and bytes of a pattern for given sizes. Needs no GPU.
//===----------------------------------------------------------------------===//
#include "codegen/Target/GpuModel.h"
#include "compiler/Driver/BindOperands.h"
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Verb.h"
#include "compiler/Views/ExplanationPrint.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

struct ExplainOptions {
  PatternOptions pattern;
  SizeOptions sizes;
  int64_t seqlen = -1, seqlenK = -1, heads = 1, kvHeads = 0, headDim = 128, valueDim = 0, batch = 1, blockM = 128, blockN = 128;
  int64_t qOrigin = 0;
  std::string dtype = "bf16", gpu = "h200";
  bool json = false, configs = false, quality = false;
  std::string inputs;
  uint64_t seed = 0;
};

Result<views::ExplainRequest> requestOf(const ExplainOptions &options, const PatternFile &file) {
  views::ExplainRequest request;
  ProblemShape shape;
  shape.batch = options.batch;
  shape.heads = options.heads;
  shape.kvHeads = options.kvHeads > 0 ? options.kvHeads : options.heads;
  shape.seqlenQ = options.seqlen;
  shape.seqlenK = options.seqlenK >= 0 ? options.seqlenK : options.seqlen;
  shape.qOrigin = options.qOrigin;
  HEDDLE_ASSIGN(shape.parameters, file.bindParameters(options.sizes.assignments));
  HEDDLE_TRY(checkShape(file, shape));
  // Quality needs every tensor: made like q, k and v, or beside them in their file.
  using Missing = OperandSources::Missing;
  const Missing missing = !options.quality ? Missing::leaveOut : options.inputs.empty() ? Missing::make : Missing::refuse;
  HEDDLE_TRY(bindOperands(file, {options.sizes.operands, options.inputs, missing, options.seed}, shape));
  request.operands = shape.operands;
  request.sizes = sizesOf(file, shape);
  request.batch = shape.batch;
  request.kvHeads = shape.kvHeads;
  request.headDim = options.headDim;
  request.valueDim = options.valueDim ? options.valueDim : options.headDim;
  request.dtype = *parseDType(options.dtype);
  request.tile = {options.blockM, options.blockN};
  HEDDLE_ASSIGN(request.gpu, findGpuModel(options.gpu));
  return request;
}

/// The sizes of the file, unless others were asked for.
Status takeSizes(ExplainOptions &options, const AttentionSizes &sizes) {
  if ((options.seqlen >= 0 && options.seqlen != sizes.seqlenQ) || (options.seqlenK >= 0 && options.seqlenK != sizes.seqlenK))
    return Status::invalidArgument("expected the sizes of " + options.inputs + ": " + std::to_string(sizes.seqlenQ) +
                                   " queries and " + std::to_string(sizes.seqlenK) + " keys");
  options.seqlen = sizes.seqlenQ;
  options.seqlenK = sizes.seqlenK;
  options.batch = sizes.batch;
  options.heads = sizes.heads;
  options.kvHeads = sizes.kvHeads;
  options.headDim = sizes.headDim;
  options.valueDim = sizes.valueDim;
  return {};
}

Result<views::Quality> measure(const PatternFile &file, const ExplainOptions &options, const views::ExplainRequest &request,
                         std::optional<AttentionInputs> inputs) {
  if (!inputs) {
    AttentionSizes sizes{1, request.sizes.seqlenQ, request.sizes.seqlenK, request.sizes.heads, request.kvHeads, request.headDim, request.valueDim};
    HEDDLE_TRY(views::checkQualitySizes(sizes));
    HEDDLE_ASSIGN(inputs, randomAttentionInputs(sizes, request.dtype, options.seed));
  }
  return views::measureQuality(file, {request.sizes, request.tile, &*inputs, options.seed, request.operands});
}

int runExplain(ExplainOptions options) {
  std::optional<AttentionInputs> inputs;
  if (!options.inputs.empty()) {
    Result<AttentionInputs> read = readAttentionInputs(options.inputs);
    Status status = read ? takeSizes(options, read->sizes) : read.status();
    if (!status.isOk())
      return fail(status);
    inputs = read.take();
  } else if (options.seqlen < 0) {
    return failUsage(Status::invalidArgument("--seqlen is required"));
  }
  auto file = options.pattern.load();
  if (!file)
    return fail(file.status());
  printNotes(**file);
  Result<views::ExplainRequest> request = requestOf(options, **file);
  if (!request)
    return fail(request.status());
  Result<views::Explanation> explanation = views::explain(**file, *request);
  if (!explanation)
    return fail(explanation.status());
  std::optional<views::Quality> quality;
  if (options.quality) {
    Result<views::Quality> measured = measure(**file, options, *request, std::move(inputs));
    if (!measured)
      return fail(measured.status());
    quality = measured.take();
  }
  const std::string inputsName =
      options.inputs.empty() ? "random normal q, k and v, seed " + std::to_string(options.seed) : options.inputs;
  if (options.json)
    std::cout << views::explanationJson(**file, *request, *explanation, options.configs, quality ? &*quality : nullptr);
  else
    std::cout << views::explanationText(**file, *request, *explanation, options.configs)
              << (quality ? views::qualityText(inputsName, options.seed, *quality) : "");
  return Ok;
}

} // namespace

Action addExplain(CLI::App &command) {
  auto options = std::make_shared<ExplainOptions>();
  options->pattern.add(command);
  CLI::Range lengths(int64_t(0), int64_t(0x7fffffff)), counts(int64_t(1), int64_t(1) << 20);
  command.add_option("--seqlen", options->seqlen, "Queries, and keys unless --seqlen-k is given; required without --inputs")->check(lengths)->type_name("N");
  command.add_option("--seqlen-k", options->seqlenK, "Keys")->check(lengths)->type_name("M");
  command.add_option("--heads", options->heads, "Query heads (default 1)")->check(counts)->type_name("H");
  command.add_option("--kv-heads", options->kvHeads, "Heads of k and v (default: as --heads)")->check(counts)->type_name("H");
  command.add_option("--head-dim", options->headDim, "Channels of a head of q and k (default 128)")->check(counts)->type_name("D");
  command.add_option("--value-dim", options->valueDim, "Channels of v and out [as --head-dim]")->check(counts)->type_name("D");
  command.add_option("--dtype", options->dtype, "Element type (default bf16)")->check(CLI::IsMember({"bf16", "fp16", "fp32"}));
  command.add_option("--batch", options->batch, "Batch elements (default 1)")->check(counts)->type_name("B");
  command.add_option("--block-m", options->blockM, "Queries of a tile (default 128)")->check(counts)->type_name("M");
  command.add_option("--block-n", options->blockN, "Keys of a tile (default 128)")->check(counts)->type_name("N");
  command.add_option("--q-origin", options->qOrigin, "Position of query 0, for patterns whose q_origin is given")->type_name("P");
  command.add_option("--gpu", options->gpu, "GPU of the roofline (default h200)")->type_name("NAME");
  command.add_flag("--configs", options->configs, "Count the configurations of the kernels, with what rules them out, and list the default and its neighbours");
  CLI::Option *quality = command.add_flag("--quality", options->quality, "Compare with dense attention: captured mass, output error, layers until all is connected, imbalance of tiles");
  command.add_option("--inputs", options->inputs, "Tensors q, k, v of --quality, which also give the sizes [random]")->needs(quality)->type_name("X.safetensors");
  command.add_option("--seed", options->seed, "Of random inputs and of the sample of rows (default 0)")->needs(quality)->type_name("S");
  options->sizes.add(command);
  addJsonOption(command, options->json);
  return [options] { return runExplain(*options); };
}

} // namespace heddle::cli
