//===- make_inputs.cpp - heddle make-inputs -----------------------------------===//
// Writes seeded random q, k, v: the same options give the same bytes on every machine.
//===----------------------------------------------------------------------===//
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <iostream>

namespace heddle::cli {
namespace {

struct MakeInputsOptions {
  AttentionSizes sizes;
  int64_t seqlenK = -1, kvHeads = 0, valueDim = 0;
  std::string dtype = "bf16", output;
  uint64_t seed = 0;
  double scale = 1;
};

void multiply(HostTensor &tensor, double factor) {
  for (int64_t i = 0; i < tensor.elements(); ++i)
    tensor.set(i, static_cast<float>(tensor.get(i) * factor));
}

int runMakeInputs(const MakeInputsOptions &options) {
  AttentionSizes sizes = options.sizes;
  sizes.seqlenK = options.seqlenK >= 0 ? options.seqlenK : sizes.seqlenQ;
  sizes.kvHeads = options.kvHeads > 0 ? options.kvHeads : sizes.heads;
  sizes.valueDim = options.valueDim > 0 ? options.valueDim : sizes.headDim;
  Result<AttentionInputs> inputs = randomAttentionInputs(sizes, *parseDType(options.dtype), options.seed);
  if (!inputs)
    return fail(inputs.status());
  if (options.scale != 1)
    for (HostTensor *tensor : {&inputs->q, &inputs->k, &inputs->v})
      multiply(*tensor, options.scale);
  Status written = writeAttentionInputs(options.output, *inputs, options.seed);
  if (!written.isOk())
    return fail(written);
  std::cout << options.output << ": q " << shapeText(inputs->q.shape) << ", k " << shapeText(inputs->k.shape) << ", v "
            << shapeText(inputs->v.shape) << " in " << options.dtype << ", seed " << options.seed << '\n';
  return Ok;
}

} // namespace

Action addMakeInputs(CLI::App &command) {
  auto options = std::make_shared<MakeInputsOptions>();
  CLI::Range lengths(int64_t(0), int64_t(0x7fffffff)), counts(int64_t(1), int64_t(1) << 20);
  options->sizes.headDim = 64;
  command.add_option("--batch", options->sizes.batch, "Batch elements")->type_name("B")->check(counts)->capture_default_str();
  command.add_option("--seqlen", options->sizes.seqlenQ, "Queries, and keys unless --seqlen-k is given")
      ->required()->type_name("N")->check(lengths);
  command.add_option("--seqlen-k", options->seqlenK, "Keys [as --seqlen]")->type_name("M")->check(lengths);
  command.add_option("--heads", options->sizes.heads, "Query heads")->type_name("H")->check(counts)->capture_default_str();
  command.add_option("--kv-heads", options->kvHeads, "Heads of k and v [as --heads]")->type_name("H")->check(counts);
  command.add_option("--head-dim", options->sizes.headDim, "Channels of q and k")->type_name("D")->check(counts)->capture_default_str();
  command.add_option("--value-dim", options->valueDim, "Channels of v [as --head-dim]")->type_name("D")->check(counts);
  command.add_option("--dtype", options->dtype, "Element type: bf16, fp16 or fp32")
      ->type_name("TYPE")->check(CLI::IsMember({"bf16", "fp16", "fp32"}))->capture_default_str();
  command.add_option("--seed", options->seed, "Seed of the random numbers")->type_name("S")->capture_default_str();
  command.add_option("--scale", options->scale, "Standard deviation of every element")->type_name("S")
      ->check(CLI::PositiveNumber)->capture_default_str();
  command.add_option("-o,--output", options->output, "The file to write")->required()->type_name("FILE");
  return [options] { return runMakeInputs(*options); };
}

} // namespace heddle::cli
