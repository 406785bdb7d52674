// Computes a call of any kind, attention unless --kind says otherwise, on the tensors of a file and writes what it
// gives; on demand compares sampled rows with the definition in fp64.
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Io/AtomicFile.h"
#include "compiler/Measure/DeviceProblem.h"
#include "compiler/Tools/ProcessStats.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/RunStream.h"
#include "compiler/Tools/RunTarget.h"
#include "compiler/Tools/SafeStream.h"
#include "compiler/Tools/Verb.h"
#include "dialect/IR/PatternOperands.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/Positions.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>

namespace heddle::cli {
namespace {

struct RunOptions {
  PatternOptions pattern;
  SizeOptions sizes;
  DatabaseOptions database;
  Kind kind = {};
  std::string inputs, output, target;
  std::optional<double> scale;
  OriginOption origin;
  std::optional<int64_t> splitKeys, repeat;
  std::string outDType, config;
  Precision precision = Precision::exact;
  int64_t rows = 64, scaleRows = 0;
  GradientsOption gradientsOf;
  StreamOptions stream;
  const CLI::App *command = nullptr;
  bool verifies = false, json = false, makesOperands = false;
};

/// What only a GPU's kernels do, and where a cut through the keys is possible.
Status checkDeviceOptions(const PatternFile &file, const RunOptions &options, int64_t seqlenK) {
  const KindRole *out = options.kind.find(Role::out);
  const bool setsOut = !options.outDType.empty() && !(out && includes(out->access, Access::write));
  const char *forDevices = options.splitKeys                       ? "--split-keys"
                           : setsOut                               ? "--out-dtype"
                           : options.precision != Precision::exact ? "--precision"
                           : !options.config.empty()               ? "--config"
                           : options.repeat                        ? "--repeat"
                                                                   : nullptr;
  if (options.target != "cuda" && forDevices)
    return Status::invalidArgument(std::string(forDevices) + " is for --target=cuda");
  if (!options.splitKeys)
    return {};
  if (!options.kind.find(Role::carryOut))
    return Status::invalidArgument("--split-keys: calls of kind " + options.kind.name() + " continue no softmax");
  attn::PatternOp pattern = file.pattern();
  if (pattern.getQOrigin() == attn::Origin::end)
    return Status::invalidArgument("--split-keys: query 0 of pattern '" + pattern.getSymName().str() +
                                   "' is placed by the number of keys, which each launch sees a part of; declare the "
                                   "pattern with q_origin given");
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    if (pattern.isOperand(i) && attn::hasExtent(pattern, i, attn::Extent::SeqlenK))
      return Status::invalidArgument("--split-keys: tensor '" + pattern.getParameterName(i).str() +
                                     "' has an element for each key, and each launch sees a part of the keys");
  if (*options.splitKeys > seqlenK)
    return Status::invalidArgument("--split-keys: expected 0 to " + std::to_string(seqlenK) +
                                   ", the number of keys, got " + std::to_string(*options.splitKeys));
  return {};
}

oracle::KindReport verify(const RunOptions &options, const RunCall &call, const RunResult &result) {
  oracle::KindCall definition = definitionOf({call.file, call.shape, call.inputs, call.scale, call.outDType()});
  definition.isOfTensorCores = options.target == "cuda";
  return oracle::verifyCall(definition, result, options.rows, result.argumentGradients);
}

/// "out [1, 8, 2, 64] and lse"
std::string resultsText(const RunCall &call, const RunResult &result) {
  std::string text;
  const std::vector<RoleSpec> roles = rolesOf(call.inputs.kind, Access::write);
  for (const RoleSpec &role : roles)
    text += text.empty() ? role.name + (" " + shapeText(result.of(role.role).shape))
                         : (role.role == roles.back().role ? " and " : ", ") + std::string(role.name);
  return text;
}

void report(const RunOptions &options, const RunCall &call, const RunResult &result,
            const std::optional<oracle::KindReport> &verified) {
  const AttentionSizes &sizes = call.inputs.sizes;
  if (options.json) {
    Json json = {{"pattern", call.file.pattern().getSymName().str()},
                 {"target", options.target},
                 {"kernel", result.kernel},
                 {"ms", result.ms},
                 {"output", options.output},
                 {"dtype", dtypeName(call.inputs.dtype())},
                 {"batch", sizes.batch},
                 {"heads", sizes.heads},
                 {"kv_heads", sizes.kvHeads},
                 {"seqlen_q", sizes.seqlenQ},
                 {"seqlen_k", sizes.seqlenK},
                 {"head_dim", sizes.headDim},
                 {"value_dim", sizes.valueDim},
                 {"scale", call.scale}};
    json["verify"] = verified ? verifyJson(*verified) : Json();
    if (result.split)
      json["split"] = {{"key", *call.splitKeys},
                       {"out_difference", finiteJson(result.split->out)},
                       {"lse_difference", finiteJson(result.split->lse)}};
    if (call.repeat)
      json["equal_launches"] = *call.repeat;
    json["stats"] = processStats();
    printJson(json);
    return;
  }
  printTo(std::cout, "%s: %s in %s, %.3f ms on %s (%s)\n", call.file.pattern().getSymName().str().c_str(),
          resultsText(call, result).c_str(), options.output.c_str(), result.ms, options.target.c_str(),
          result.kernel.c_str());
  if (result.split)
    printTo(std::cout, "two launches, split at key %lld, differ from one by %.3e in out, %.3e in lse\n",
            (long long)*call.splitKeys, result.split->out, result.split->lse);
  if (call.repeat)
    printTo(std::cout, "%s gave the same bits\n", counted(*call.repeat, "launch").c_str());
  if (verified)
    printVerify(*verified);
}

/// Two results within the bounds of the definition are within twice the bounds of each other.
bool agreesWithOneLaunch(const RunResult &result, const oracle::KindReport &verified) {
  return !result.split || (result.split->out <= 2 * verified.roles[0].allowedError &&
                           result.split->lse <= 2 * verified.roles[1].allowedError);
}

std::map<std::string, const HostTensor *> gradientsByName(const RunCall &call, const RunResult &result) {
  std::map<std::string, const HostTensor *> gradients;
  attn::PatternOp pattern = call.file.pattern();
  const std::vector<int64_t> &gradientsOf = call.inputs.kind.gradientsOf;
  for (size_t i = 0; i < gradientsOf.size(); ++i)
    gradients["d_" + pattern.getParameterName(unsigned(gradientsOf[i])).str()] = &result.argumentGradients[i];
  return gradients;
}

int execute(const RunOptions &options, const RunCall &call) {
  Result<RunResult> result = options.target == "cpu" ? runOnCpu(call) : runOnDevice(call, options.database);
  if (!result)
    return fail(result.status());
  Status written = writeAttentionOutputs(options.output, *result, call.inputs.kind, gradientsByName(call, *result));
  if (!written.isOk())
    return fail(written);
  std::optional<oracle::KindReport> verified;
  if (options.verifies)
    verified = verify(options, call, *result);
  report(options, call, *result, verified);
  if (!verified)
    return Ok;
  if (verified->isOk() && agreesWithOneLaunch(*result, *verified))
    return Ok;
  if (verified->isOk())
    return fail(
        Status::invalidArgument("two launches over a split of the keys and one launch differ by more than is allowed"));
  return fail(Status::invalidArgument("the result differs from the definition by more than is allowed; " +
                                      options.output + " was written and is not to be trusted"));
}

/// Neither tensors nor kernels may give way to the result.
Status checkRunOutput(const RunOptions &options) {
  std::vector<std::string> uses = options.sizes.files();
  uses.insert(uses.end(), {options.inputs, options.pattern.path(), options.database.path()});
  for (const std::string &shipped : options.database.shippedPaths())
    uses.push_back(shipped);
  return checkOutput("--output", options.output, uses);
}

/// With the sizes and tensors that the pattern reads, where the call walks it.
Result<ProblemShape> shapeOfCall(const PatternFile &file, const RunOptions &options, const AttentionInputs &inputs) {
  ProblemShape shape = shapeOf(inputs.sizes);
  shape.qOrigin = options.origin.position.value_or(0);
  if (!inputs.kind.walksPattern()) {
    attn::PatternOp pattern = file.pattern();
    shape.parameters.assign(pattern.getNumArguments(), 0);
    HEDDLE_TRY(checkShape(file, shape));
    return shape;
  }
  HEDDLE_ASSIGN(shape.parameters, file.bindParameters(options.sizes.assignments));
  HEDDLE_TRY(checkShape(file, shape));
  using Missing = OperandSources::Missing;
  const Missing missing = options.makesOperands ? Missing::make : Missing::refuse;
  HEDDLE_TRY(bindOperands(file, {options.sizes.operands, options.inputs, missing}, shape));
  return shape;
}

/// Computes what the inputs of the call lack of a forward call, and says so.
Status completeInputs(const RunOptions &options, const RunCall &call, AttentionInputs &inputs) {
  std::string names;
  for (const RoleSpec &role : missingOfForward(inputs))
    names += (names.empty() ? "" : " and ") + std::string(role.name);
  if (names.empty())
    return {};
  constexpr double kFewPairs = 1 << 25; // take less time than the compilation of a forward kernel
  const AttentionSizes &sizes = inputs.sizes;
  const double pairs = double(sizes.batch) * double(sizes.heads) * double(sizes.seqlenQ) * double(sizes.seqlenK);
  // Weights exp(s - lse) want lse of scores in the call's precision, and the CPU has exact ones only.
  const bool isOnCpu = options.target == "cpu" || (pairs <= kFewPairs && inputs.precision == Precision::exact);
  if (!isQuiet())
    std::cerr << "heddle: the inputs have no " << names << ": computed on the " << (isOnCpu ? "CPU" : "GPU") << '\n';
  return isOnCpu ? addFromForwardOnCpu(call, inputs) : addFromForwardOnDevice(call, options.database, inputs);
}

/// Streamed calls are forward, in one launch of a piece after the other.
Status checkStreamed(const RunOptions &options) {
  const char *refused = options.splitKeys                      ? "--split-keys"
                        : options.repeat                       ? "--repeat"
                        : !options.outDType.empty()            ? "--out-dtype"
                        : !options.gradientsOf.names.empty()   ? "--gradients-of"
                        : options.kind.name() != Kind().name() ? "--kind"
                        : options.origin.position.value_or(0)  ? "--q-origin"
                                                               : nullptr;
  return refused ? Status::invalidArgument(std::string(refused) + " is not for --stream: calls that are streamed are "
                                                                  "forward, from position 0 on")
                 : Status();
}

int runInPieces(const RunOptions &options, const PatternFile &file) {
  if (Status streamed = checkStreamed(options); !streamed.isOk())
    return failUsage(streamed);
  if (Status device = checkDeviceOptions(file, options, /*seqlenK=*/0); !device.isOk())
    return failUsage(device);
  return runStreamed({file, options.stream, options.sizes, options.database, options.inputs, options.output,
                      options.target, options.config, options.scale, options.verifies ? options.rows : 0, options.json,
                      options.makesOperands});
}

/// Scales that are read say by their shapes what they are of.
Status checkScaleOption(const RunOptions &options) {
  const KindRole *scale = options.kind.find(Role::descaleQ);
  if (!options.scaleRows || (scale && includes(scale->access, Access::write)))
    return {};
  return Status::invalidArgument("--scale-rows: calls of kind " + options.kind.name() + " write no scales" +
                                 (scale ? ", the shapes of those in the file say what they are of" : ""));
}

int runRun(const RunOptions &options) {
  if (Status given = options.stream.check(*options.command, options.inputs); !given.isOk())
    return failUsage(given);
  if (options.output.empty() && !options.stream.seqlen)
    return failUsage(Status::invalidArgument("--output is required"));
  if (Status output = checkRunOutput(options); !output.isOk())
    return fail(output);
  auto file = options.pattern.load();
  if (!file)
    return failNames(file.status());
  Status origin = options.origin.check({file->get()});
  if (!origin.isOk())
    return failUsage(origin);
  if (Status names = options.sizes.check(**file); !names.isOk())
    return failUsage(names);
  if (Status scales = checkScaleOption(options); !scales.isOk())
    return failUsage(scales);
  if (options.stream.isOn)
    return runInPieces(options, **file);
  Result<AttentionInputs> inputs = readAttentionInputs(options.inputs, options.kind);
  if (!inputs)
    return fail(inputs.status());
  Result<ProblemShape> shape = shapeOfCall(**file, options, *inputs);
  if (!shape)
    return fail(shape.status());
  Status device = checkDeviceOptions(**file, options, inputs->sizes.seqlenK);
  if (!device.isOk())
    return failUsage(device);
  Result<Kind> kind = options.gradientsOf.addedTo(options.kind, **file);
  if (!kind)
    return failUsage(kind.status());
  inputs->kind = kind.take();
  inputs->precision = options.precision;
  if (options.scaleRows)
    inputs->setScaleRows(options.scaleRows);
  Status writable = AtomicFile::create(options.output).status(); // before hours of work, not after
  if (!writable.isOk())
    return fail(writable);
  double scale = options.scale.value_or(1 / std::sqrt(double(std::max<int64_t>(inputs->sizes.headDim, 1))));
  const RunCall call{
      **file,         *inputs,           *shape,        static_cast<float>(scale), parseDType(options.outDType),
      options.config, options.splitKeys, options.repeat};
  if (Status added = completeInputs(options, call, *inputs); !added.isOk())
    return fail(added);
  return execute(options, call);
}

/// "out [batch, seqlen_q, heads, value_dim], lse [batch, heads, seqlen_q]"
std::string rolesText(Access access) {
  std::string text;
  for (const RoleSpec &role : rolesOf(Kind(), access))
    text += (text.empty() ? "" : ", ") + std::string(role.name) + " " + shapeWords(role);
  return text;
}

} // namespace

Action addRun(CLI::App &command) {
  auto options = std::make_shared<RunOptions>();
  options->command = &command;
  options->pattern.add(command);
  addKindOption(command, options->kind, /*withPages=*/true);
  addValue(command, "--inputs", options->inputs, "X.safetensors",
           "Tensors " + rolesText(Access::read) + " in " + elementList(&ElementTraits::isOfCalls) +
               "; backward, also d_out, and out and lse, which are computed "
               "where they are missing, on the target, or of short calls on the CPU; required, but with --seqlen");
  addValue(command, "--output", options->output, "Y.safetensors",
           "Where " + rolesText(Access::write) + " go; backward, d_q, d_k and d_v; required, but with --seqlen");
  addValue(command, "--target", options->target, "TARGET", "Where to compute: cpu or cuda")
      ->required()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  addValue(command, "--scale", options->scale, "S", "Factor of q . k [1 / sqrt(head_dim)]")
      ->check(realBetween(-1e30, 1e30));
  options->sizes.add(command);
  options->origin.add(command);
  addValue(command, "--out-dtype", options->outDType, "DTYPE",
           "Type of out: that of q, or fp32; of e4m3 bf16, fp16 or fp32 [that of q; of e4m3 bf16]")
      ->check(CLI::IsMember(elementNames(&ElementTraits::isOfWarps)));
  addPrecisionOption(command, options->precision);
  addScaleRowsOption(command, options->scaleRows, "Of kind quantize: how many rows of q and k share a scale");
  addValue(
      command, "--config", options->config, "FIELDS",
      "On a GPU: compile now, with changes to the default configuration, as skeleton=portable_forward,stages=2, or "
      "with none (default); what --db=FILE has of this very code is taken")
      ->check(configFields());
  addCount(command, "--split-keys", options->splitKeys, "N",
           "On a GPU: two launches, the second over the keys from N on, continuing the softmax of the first")
      ->check(CLI::Range(int64_t(0), kFarthestPosition));
  addCount(command, "--repeat", options->repeat, "N",
           "On a GPU: launch N times; exit 1 unless every launch gives the bits of the first, and say so where the "
           "kernel adds up a result in any order")
      ->check(CLI::Range(int64_t(1), int64_t(1000000000)));
  options->gradientsOf.add(command);
  options->stream.add(command);
  command.add_flag("--make-operands", options->makesOperands,
                   "Make the tensors that the pattern reads and nobody gives, for tests");
  command.add_flag("--verify", options->verifies, "Compare rows with the definition in fp64; exit 1 if they differ");
  addCount(command, "--rows", options->rows, "N", "How many rows --verify compares")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40))
      ->capture_default_str();
  options->database.add(command);
  options->database.addShipped(command);
  addJsonOption(command, options->json);
  return [options] { return runRun(*options); };
}

} // namespace heddle::cli
