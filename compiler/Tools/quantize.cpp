// Writes the q, k and v of a tensor file as e4m3, with a scale for each head, or block of its rows, as a file that calls read.
#include "compiler/Io/QuantizedInputs.h"
#include "compiler/Io/RandomTensor.h"
#include "compiler/Io/Safetensors.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/RunTarget.h"
#include "compiler/Tools/Verb.h"
#include "dialect/IR/ScoreChain.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

struct QuantizeOptions {
  std::string inputs, output, target = "cpu";
  uint64_t rotationSeed = 0;
  bool isRotated = false;  ///< by signs of that seed
  bool isKeyMajor = false; ///< what becomes of v
  int64_t scaleRows = 0;   ///< of q and k
  std::string smoothK;     ///< the pattern of the calls beside which k is less its mean; empty: it is not
  DatabaseOptions database;
};

/// invalidArgument: weights of the pattern see what is added to all scores of a query.
Status smoothKeys(const std::string &pattern, AttentionInputs &inputs) {
  HEDDLE_ASSIGN(const std::unique_ptr<PatternFile> file, (PatternOptions{pattern, ""}.load()));
  if (const std::string sees = attn::whatSeesAddedNumbers(file->pattern()); !sees.empty())
    return Status::unsupported("--smooth-k: beside the " + sees + " of pattern '" + file->pattern().getSymName().str() +
                               "' a number that is added to all scores of a query changes weights: leave k as it is");
  const RoleSpec &mean = specOf(Role::kMean);
  inputs.kMean = HostTensor::zeros(inputs.elements().of(mean.element), inputs.sizes.shapeOf(mean));
  return {};
}

/// Of the kind that rotates, where the file has signs or the options say of which seed they are.
Result<AttentionInputs> readInputs(const QuantizeOptions &options) {
  const char *const signs = specOf(Role::rotation).name;
  HEDDLE_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(options.inputs));
  const bool hasSigns = file.entries().count(signs) > 0;
  if (hasSigns && options.isRotated)
    return Status::invalidArgument("--rotation-seed: tensor file '" + options.inputs + "' has a '" + signs +
                                   "' of its own");
  HEDDLE_ASSIGN(AttentionInputs inputs,
                readAttentionInputs(options.inputs, {hasSigns ? KindBase::quantizeRotated : KindBase::quantize}));
  if (options.isRotated) {
    inputs.kind = {KindBase::quantizeRotated};
    inputs.rotation = randomSigns({inputs.sizes.headDim}, options.rotationSeed, signs);
  }
  inputs.kind.hasKeyMajorValues = options.isKeyMajor;
  inputs.setScaleRows(options.scaleRows);
  if (!options.smoothK.empty())
    HEDDLE_TRY(smoothKeys(options.smoothK, inputs));
  return inputs;
}

Result<AttentionInputs> quantized(const QuantizeOptions &options) {
  HEDDLE_ASSIGN(const AttentionInputs inputs, readInputs(options));
  HEDDLE_ASSIGN(const std::unique_ptr<PatternFile> file, (PatternOptions{"full", ""}.load())); // as good as any other
  const RunCall call{*file, inputs, shapeOf(inputs.sizes), 1};
  Result<RunResult> result = options.target == "cpu" ? runOnCpu(call) : runOnDevice(call, options.database);
  HEDDLE_TRY(result.status());
  return inputsOfQuantized(result.take(), inputs);
}

int runQuantize(const QuantizeOptions &options) {
  std::vector<std::string> uses = options.database.shippedPaths();
  uses.insert(uses.end(), {options.inputs, options.database.path()});
  if (Status output = checkOutput("-o", options.output, uses); !output.isOk())
    return fail(output);
  const Result<AttentionInputs> low = quantized(options);
  if (!low)
    return fail(low.status());
  std::vector<RoleSpec> roles = low->given();
  if (low->isGiven(Role::kMean))
    roles.push_back(specOf(Role::kMean));
  std::map<std::string, const HostTensor *> tensors;
  for (const RoleSpec &role : roles)
    tensors[role.name] = &low->of(role.role);
  if (Status written = writeSafetensors(options.output, tensors); !written.isOk())
    return fail(written);
  std::cout << options.output;
  const char *separator = ": ";
  for (const RoleSpec &role : roles) {
    std::cout << separator << role.name << ' ' << shapeText(low->of(role.role).shape);
    separator = ", ";
  }
  std::cout << " in " << dtypeName(low->dtype()) << '\n';
  return Ok;
}

} // namespace

Action addQuantize(CLI::App &command) {
  auto options = std::make_shared<QuantizeOptions>();
  addValue(command, "inputs", options->inputs, "X.safetensors",
           "Tensors q, k and v in " + elementList(&ElementTraits::isOfWarps) +
               "; a rotation of head_dim signs in fp32 rotates rows of q and k first")
      ->required();
  addValue(command, "-o,--output", options->output, "Y.safetensors",
           "Where q, k and v in e4m3 go, and descale_q, descale_k and descale_v, what their heads, or blocks of these, "
           "are multiplied by")
      ->required();
  const CLI::Option *seed = addSeedOption(
      command, options->rotationSeed, "Rotate rows of q and k first, by random signs of this seed", "--rotation-seed");
  addScaleRowsOption(command, options->scaleRows, "How many rows of q and k share a scale");
  addKeyMajorOption(command, options->isKeyMajor, "Write v");
  addValue(
      command, "--smooth-k", options->smoothK, "PATTERN",
      "Subtract from rows of k the mean of their head, which is written as k_mean, for calls of this pattern: weights "
      "stay, lse lacks scale * (q . k_mean)");
  addValue(command, "--target", options->target, "TARGET", "Where to compute: cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  options->database.add(command);
  options->database.addShipped(command);
  return [options, seed] {
    options->isRotated = !seed->empty();
    return runQuantize(*options);
  };
}

} // namespace heddle::cli
