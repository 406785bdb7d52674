// Writes seeded random q, k, v, on demand with extreme scores: the same options give the same bytes on every machine.
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/ExtremeScores.h"
#include "compiler/Tools/KeyLayout.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/ParallelFor.h"
#include "runtime/Core/ParseCount.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

namespace heddle::cli {
namespace {

constexpr int64_t kPageSize = 16;

struct MakeInputsOptions {
  AttentionSizes sizes;
  int64_t seqlenK = -1, kvHeads = 0, valueDim = 0, scaleRows = 0;
  KeyLayout layout = {KeyPlaces::pages, kPageSize};
  std::vector<std::string> with;
  Kind kind = {};
  std::string dtype = dtypeName(kDefaultDType), keyDtype, output, patternFile, patternName;
  uint64_t seed = 0;
  double scale = 1;
  ScoreSpikes spikes{0, 1e4};
  std::string sunkKeys; ///< "FIRST-LAST", or empty
};

struct KeySpan {
  long long first = 0, last = 0;
};

/// The text is "FIRST-LAST".
std::optional<KeySpan> parseKeySpan(const std::string &text) {
  // a first key may be negative, to be refused with its range
  const size_t dash = std::min(text.find('-', 1), text.size());
  const std::optional<int64_t> first = parseCount(text.substr(0, dash)),
                               last = parseCount(text.substr(std::min(dash + 1, text.size())));
  return first && last ? std::optional(KeySpan{*first, *last}) : std::nullopt;
}

Status multiply(HostTensor &tensor, double factor) {
  constexpr int64_t kPiece = int64_t(1) << 12;
  const int64_t count = tensor.elements(), pieces = (count + kPiece - 1) / kPiece;
  std::atomic<bool> isFinite{true};
  parallelFor(pieces, threadCountFor(pieces, 0), [&](int, int64_t piece) {
    float values[kPiece];
    const int64_t first = piece * kPiece;
    const int length = static_cast<int>(std::min(kPiece, count - first));
    loadElements(tensor.dtype, tensor.data.data(), first, length, values);
    for (int i = 0; i < length; ++i)
      values[i] = static_cast<float>(values[i] * factor);
    storeElements(tensor.dtype, values, length, tensor.data.data(), first);
    loadElements(tensor.dtype, tensor.data.data(), first, length, values); // as they were rounded
    if (!std::all_of(values, values + length, [](float value) { return std::isfinite(value); }))
      isFinite = false;
  });
  if (isFinite)
    return {};
  return Status::invalidArgument("--scale: elements become too large for " + std::string(dtypeName(tensor.dtype)) +
                                 ": give a smaller one");
}

/// The roles of --with.
Result<std::vector<Role>> optionalRoles(const MakeInputsOptions &options) {
  std::vector<Role> roles;
  for (const std::string &name : options.with) {
    std::string known;
    for (const KindRole &role : options.kind.roles())
      if (role.presence == Presence::optional && includes(role.access, Access::read) &&
          specOf(role.role).element != RoleElement::i32) {
        known += (known.empty() ? "" : ", ") + std::string(specOf(role.role).name);
        if (name == specOf(role.role).name)
          roles.push_back(role.role);
      }
    if (roles.empty() || name != specOf(roles.back()).name)
      return Status::invalidArgument("--with: calls of kind " + options.kind.name() + " have no optional '" + name +
                                     "'" + (known.empty() ? "" : "; there is " + known));
  }
  return roles;
}

Result<AttentionInputs> makeInputs(const AttentionSizes &sizes, const MakeInputsOptions &options,
                                   const std::vector<Role> &also) {
  ProgressLine progress;
  auto made = randomAttentionInputs(sizes, *parseDType(options.dtype), options.seed, options.kind,
                                    {also, [&](double share) { progress.show(share, "random elements"); },
                                     parseDType(options.keyDtype), options.scaleRows});
  progress.finish();
  HEDDLE_ASSIGN(AttentionInputs inputs, std::move(made));
  if (options.scale != 1)
    for (const RoleSpec &role : inputs.given())
      if (role.element != RoleElement::i32 && role.element != RoleElement::sign)
        HEDDLE_TRY(multiply(inputs.of(role.role), options.scale));
  if (options.spikes.count > 0)
    HEDDLE_TRY(plantSpikes(inputs, options.spikes, options.seed));
  if (std::optional<KeySpan> span = parseKeySpan(options.sunkKeys))
    HEDDLE_TRY(sinkKeys(inputs, span->first, span->last));
  return inputs;
}

/// The tensors that the pattern reads, by name.
Result<std::map<std::string, OperandTensor>> makeOperands(const AttentionSizes &sizes,
                                                          const MakeInputsOptions &options) {
  std::map<std::string, OperandTensor> made;
  if (options.patternFile.empty())
    return made;
  HEDDLE_ASSIGN(auto file, (PatternOptions{options.patternFile, options.patternName}.load()));
  ProblemShape shape = shapeOf(sizes);
  attn::PatternOp pattern = file->pattern();
  shape.parameters.assign(pattern.getNumArguments(), 0);
  HEDDLE_TRY(bindOperands(*file, {{}, {}, OperandSources::Missing::make, options.seed}, shape));
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    if (shape.operands[i])
      made[pattern.getParameterName(i).str()] = shape.operands[i];
  return made;
}

int runMakeInputs(const MakeInputsOptions &options) {
  const std::string pattern = PatternOptions{options.patternFile, options.patternName}.path();
  if (Status output = checkOutput("-o", options.output, {pattern}); !output.isOk())
    return fail(output);
  const bool hasScores = options.kind.walksPattern() && !options.kind.hasPages();
  if ((options.spikes.count > 0 || !options.sunkKeys.empty()) && !hasScores)
    return failUsage(
        Status::invalidArgument("--spikes and --minus-inf are about scores of keys in rows, which calls of "
                                "kind " +
                                options.kind.name() + " have none of"));
  AttentionSizes sizes = options.sizes;
  sizes.seqlenK = options.seqlenK >= 0 ? options.seqlenK : sizes.seqlenQ;
  sizes.kvHeads = options.kvHeads > 0 ? options.kvHeads : sizes.heads;
  sizes.valueDim = options.valueDim > 0 ? options.valueDim : sizes.headDim;
  if (options.kind.hasPages())
    sizes = options.layout.sizesWith(sizes);
  else if (options.layout.pageSize != kPageSize || options.layout.places != KeyPlaces::pages)
    return failUsage(Status::invalidArgument("--page-size and --keys are of --kind=decode, whose keys lie in pages"));
  Result<std::vector<Role>> also = optionalRoles(options);
  if (!also)
    return failUsage(also.status());
  for (Role role : options.layout.roles())
    also->push_back(role);
  Result<AttentionInputs> inputs = makeInputs(sizes, options, *also);
  if (!inputs)
    return fail(inputs.status());
  Result<std::map<std::string, OperandTensor>> operands = makeOperands(sizes, options);
  if (!operands)
    return failNames(operands.status());
  ProgressLine progress;
  progress.show(1, "writing");
  Status written = writeAttentionInputs(options.output, *inputs, options.seed, *operands);
  progress.finish();
  if (!written.isOk())
    return fail(written);
  std::cout << options.output;
  const char *separator = ": ";
  for (const RoleSpec &role : inputs->given()) {
    std::cout << separator << role.name << ' ' << shapeText(inputs->of(role.role).shape);
    separator = ", ";
  }
  std::cout << " in " << options.dtype;
  for (const auto &[name, tensor] : *operands)
    std::cout << ", " << name << ' ' << shapeText(tensor.shape) << " in " << traitsOf(tensor.element).mlirName;
  std::cout << ", seed " << options.seed << '\n';
  return Ok;
}

} // namespace

Action addMakeInputs(CLI::App &command) {
  auto options = std::make_shared<MakeInputsOptions>();
  CLI::Range lengths(int64_t(0), int64_t(0x7fffffff)), counts(int64_t(1), int64_t(1) << 20);
  options->sizes.headDim = 64;
  addKindOption(command, options->kind, /*withPages=*/true);
  addValue(command, "--with", options->with, "NAME", "Also what calls of the kind may leave out: d_lse, in fp32");
  addCount(command, "--batch", options->sizes.batch, "B", "Batch elements")->check(counts)->capture_default_str();
  addCount(command, "--seqlen", options->sizes.seqlenQ, "N", "Queries, and keys unless --seqlen-k is given")
      ->required()
      ->check(lengths);
  addCount(command, "--seqlen-k", options->seqlenK, "M", "Keys [as --seqlen]")->check(lengths);
  addKeyLayout(command, options->layout);
  addCount(command, "--heads", options->sizes.heads, "H", "Query heads")->check(counts)->capture_default_str();
  addCount(command, "--kv-heads", options->kvHeads, "H", "Heads of k and v [as --heads]")->check(counts);
  addCount(command, "--head-dim", options->sizes.headDim, "D", "Channels of q and k")
      ->check(counts)
      ->capture_default_str();
  addCount(command, "--value-dim", options->valueDim, "D", "Channels of v [as --head-dim]")->check(counts);
  addValue(command, "--kv-dtype", options->keyDtype, "TYPE",
           "Element type of k and v, if it is e4m3 beside q of bf16 or fp16")
      ->check(CLI::IsMember(elementNames(&ElementTraits::isScaled)));
  addValue(command, "--dtype", options->dtype, "TYPE", "Element type: " + elementList(&ElementTraits::isOfCalls))
      ->check(CLI::IsMember(elementNames(&ElementTraits::isOfCalls)))
      ->capture_default_str();
  addScaleRowsOption(command, options->scaleRows, "Of e4m3: how many rows of q and k share a scale");
  addSeedOption(command, options->seed, "Seed of the random numbers")->capture_default_str();
  addValue(command, "--scale", options->scale, "S", "Standard deviation of every element")
      ->check(realBetween(1e-30, 1e30))
      ->capture_default_str();
  addCount(command, "--spikes", options->spikes.count, "N",
           "So many random pairs of a query and a key in every head get a score near --spike-value")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 20))
      ->capture_default_str();
  addValue(command, "--spike-value", options->spikes.value, "S", "That score, at a scale of 1 / sqrt(head_dim)")
      ->check(realBetween(-1e30, 1e30))
      ->capture_default_str();
  auto isSpan = [](const std::string &text) {
    return parseKeySpan(text) ? "" : "expected FIRST-LAST, got '" + text + "'";
  };
  addValue(command, "--minus-inf", options->sunkKeys, "FIRST-LAST",
           "Keys FIRST to LAST get scores that overflow to -infinity; every row must keep others")
      ->check(isSpan);
  addValue(command, "--for", options->patternFile, kPatternType,
           "Also the tensors that this pattern reads, under their names");
  addValue(command, "--pattern", options->patternName, "NAME", "Which attn.pattern of that file, if it has several");
  addValue(command, "-o,--output", options->output, "FILE", "The file to write")->required();
  return [options] { return runMakeInputs(*options); };
}

} // namespace heddle::cli
