#include "compiler/Session/CompileSession.h"
#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Target/FindArch.h"
#include "compiler/Session/PreparedPattern.h"
#include "runtime/Core/Counters.h"
#include "runtime/Core/KernelImages.h"
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Core/ParallelFor.h"

#include <algorithm>
#include <numeric>

namespace heddle {

const char *const kGenerator = "heddle " HEDDLE_VERSION;

KernelRequest makeRequest(const PreparedPattern &prepared, const KernelShape &shape) {
  KernelRequest request;
  static_cast<CallShape &>(request) = shape;
  request.arch = shape.arch;
  static_cast<PatternRates &>(request) = *prepared.rates;
  if (request.kind.isBackward()) { // walks in both directions
    request.grain = std::gcd(request.grain, request.transposedGrain);
    request.bandedGrain = std::gcd(request.bandedGrain, request.transposedBandedGrain);
  }
  if (shape.queryRows)
    request.balance.queries = ProblemBucket::rowsOfDefault(shape.queryRows, shape);
  return request;
}

KernelFamily familyOf(const PreparedPattern &prepared, const KernelRequest &request) {
  return KernelFamily::of(prepared.digest, request, kGenerator);
}

/// One "field=value".
static Status assignField(KernelConfig &config, const std::string &item) {
  size_t equals = item.find('=');
  std::string field = item.substr(0, equals);
  std::string text = equals == std::string::npos ? "" : item.substr(equals + 1);
  if (field == "skeleton") // skeletonOf
    return {};
  HEDDLE_ASSIGN(const size_t place, config.fields().find(field));
  const ConfigField &known = config.fields().list[place];
  if (const std::optional<int64_t> value = known.read(text)) {
    config[place] = *value;
    return {};
  }
  std::string names;
  for (const std::string &name : known.names)
    names += name.empty() ? "" : ", " + name;
  return Status::invalidArgument("expected " + field + "=NUMBER" +
                                 (names.empty() ? "" : " or one of" + names.substr(1)) +
                                 " in the configuration, got '" + item + "'");
}

static std::vector<std::string> itemsOf(const std::string &text) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find_first_of(", \n", begin), text.size());
    if (end > begin)
      items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (items == std::vector<std::string>{kDefaultChanges})
    items.clear();
  return items;
}

/// The one that the last "skeleton=NAME" names, else the preferred one.
static Result<const Skeleton *> skeletonOf(const KernelRequest &request, const std::vector<std::string> &items) {
  const std::string field = "skeleton=";
  for (auto item = items.rbegin(); item != items.rend(); ++item)
    if (item->compare(0, field.size(), field) == 0)
      return skeletonFor(request, item->substr(field.size()));
  return chooseSkeleton(request);
}

Result<KernelConfig> parseConfig(const KernelRequest &request, const std::string &text) {
  std::vector<std::string> items = itemsOf(text);
  HEDDLE_ASSIGN(const Skeleton *skeleton, skeletonOf(request, items));
  KernelConfig config = skeleton->defaultConfig(request);
  for (const std::string &item : items)
    HEDDLE_TRY(assignField(config, item));
  // What follows from other fields does so unless it is typed in.
  config = skeleton->derived(request, skeleton->takenBack(std::move(config)));
  for (const std::string &item : items)
    HEDDLE_TRY(assignField(config, item));
  return config;
}

/// One kernel: what it is asked to do, and the functions of its pattern.
static KernelSource assemble(const PreparedPattern &prepared, const KernelRequest &request,
                             const std::string &functions, const KernelConfig &config, const Skeleton &skeleton) {
  KernelSourceParts parts;
  parts.patternName = prepared.name;
  parts.config = request.str() + " " + config.summary();
  parts.generator = kGenerator;
  parts.traits = skeleton.traits(request, config);
  parts.pattern = functions;
  if (request.hasScores)
    parts.instructions = "Ptx/scalar.cuh";
  parts.skeleton = skeleton.deviceFile();
  parts.kernels = skeleton.kernels(request, config);
  KernelSource source;
  source.text = assembleKernelSource(parts);
  for (const EmbeddedFile &file : skeletonSources())
    source.headers.push_back({std::string(file.name), std::string(file.text)});
  return source;
}

static std::vector<KernelSource> assembleAll(const PreparedPattern &prepared, const KernelRequest &request,
                                             const KernelConfig &config, const Skeleton &skeleton) {
  std::vector<KernelSource> sources;
  for (const KernelRequest &kernel : Skeleton::kernelsOf(request, config)) {
    const PatternText &text =
        config.valueOf(kChainedField) ? prepared.passFunctions[sources.size()] : prepared.functions;
    sources.push_back(assemble(prepared, kernel, text.of(request.isExact()), config, skeleton));
  }
  return sources;
}

Result<std::vector<KernelSource>> variantSources(const PreparedPattern &prepared, const KernelRequest &request,
                                                 const KernelConfig &config) {
  HEDDLE_ASSIGN(const Skeleton *skeleton, validateConfig(request, config));
  if (config.valueOf(kChainedField) && prepared.passFunctions.empty())
    return Status::internal("pattern '" + prepared.name + "' was prepared for defaults, which do not chain its passes");
  return assembleAll(prepared, request, config, *skeleton);
}

/// The record has its plan.
static void fillCode(KernelRecord &record, std::vector<Cubin> cubins) {
  std::vector<std::string> keys;
  for (const Cubin &cubin : cubins)
    keys.push_back(cubin.contentKey);
  record.contentKey = contentKeyOf(keys, record.plan);
  record.kernelArch = cubins.front().arch;
  record.nvrtcVersion = cubins.front().nvrtcVersion;
  std::vector<std::string> images, texts;
  int64_t staticSharedBytes = 0;
  for (Cubin &cubin : cubins) {
    record.minDriver = std::max(record.minDriver, cubin.minDriver);
    record.registers = std::max(record.registers, cubin.registers());
    record.spillBytes = std::max(record.spillBytes, cubin.spillBytes());
    staticSharedBytes = std::max(staticSharedBytes, cubin.usage.staticSharedBytes);
    record.compileLog += cubin.log;
    texts.push_back(std::move(cubin.ptx));
    images.push_back(std::move(cubin.cubin));
  }
  record.sharedBytes += staticSharedBytes;
  record.ptx = joinImages(texts);
  record.cubin = joinImages(images);
}

static std::string joined(const std::string &a, const std::string &b, const char *between) {
  return a + (a.empty() || b.empty() ? "" : between) + b;
}

/// What is evaluated pair by pair, and why another skeleton would have been preferred.
static std::string noteOf(const PreparedPattern &prepared, const KernelRequest &request, const Skeleton &skeleton) {
  std::string reasons = whyPassedOver(request, skeleton);
  return joined(prepared.note, reasons.empty() ? "" : "fallback: " + reasons, "; ");
}

/// The code of every kernel of a call, one after the other.
static Result<std::vector<Cubin>> compileAll(const std::vector<KernelSource> &sources, const std::string &arch,
                                             StageTimes &times) {
  std::vector<Cubin> cubins;
  double nvrtcMs = 0, ptxasMs = 0;
  for (const KernelSource &source : sources) {
    Result<Cubin> cubin = compile(source, arch);
    HEDDLE_TRY(cubin.isOk() ? checkVariant(*cubin) : cubin.status());
    nvrtcMs += cubin->totalMs - cubin->ptxasMs;
    ptxasMs += cubin->ptxasMs;
    cubins.push_back(std::move(*cubin));
  }
  Counters::get().compilations.add((nvrtcMs + ptxasMs) * 1e-3);
  times.push_back({"nvrtc", nvrtcMs});
  times.push_back({"ptxas", ptxasMs});
  return cubins;
}

/// What is known of a kernel before it is compiled.
static KernelRecord plannedRecord(const PreparedPattern &prepared, const KernelRequest &request,
                                  const KernelConfig &config, const Skeleton &skeleton) {
  KernelRecord record;
  static_cast<KernelFamily &>(record) = familyOf(prepared, request);
  record.config = config.str();
  const LaunchPlan plan = skeleton.planCall(request, config);
  record.plan = plan.str();
  record.minDriver = plan.minDriver();
  record.sharedBytes = skeleton.planSmem(request, config).totalBytes();
  record.note = noteOf(prepared, request, skeleton);
  return record;
}

/// With the code that is known for these sources, if there is some.
static Result<std::optional<KernelRecord>> knownRecord(const KernelRecord &planned,
                                                       const std::vector<KernelSource> &sources,
                                                       const std::string &arch, const KnownKernels &known) {
  std::vector<std::string> keys;
  for (const KernelSource &source : sources) {
    HEDDLE_ASSIGN(std::string key, contentKey(source, arch));
    keys.push_back(std::move(key));
  }
  Result<KernelRecord> found = known(contentKeyOf(keys, planned.plan));
  if (!found && found.status().code() == StatusCode::notFound)
    return std::optional<KernelRecord>();
  HEDDLE_TRY(found.status());
  static_cast<KernelFamily &>(*found) = planned;
  found->config = planned.config;
  found->note = planned.note;
  return std::optional<KernelRecord>(found.take());
}

/// What all configurations of one kernel have in common.
struct Wanted {
  const PreparedPattern &prepared;
  const KernelRequest &request;
  const KnownKernels &known;
};

/// Failures do not name the pattern and the configuration.
static Result<CompiledVariant> compileFeasible(const Wanted &wanted, const KernelConfig &config,
                                               const Skeleton &skeleton) {
  CompiledVariant variant;
  const std::string arch = archName(*wanted.request.arch);
  std::vector<KernelSource> sources = timeStage(
      variant.times, "source", [&] { return assembleAll(wanted.prepared, wanted.request, config, skeleton); });
  variant.record = plannedRecord(wanted.prepared, wanted.request, config, skeleton);
  if (wanted.known) {
    HEDDLE_ASSIGN(std::optional<KernelRecord> stored, knownRecord(variant.record, sources, arch, wanted.known));
    if (stored)
      return CompiledVariant{std::move(*stored), std::move(variant.times), /*wasKnown=*/true};
  }
  HEDDLE_ASSIGN(std::vector<Cubin> cubins, compileAll(sources, arch, variant.times));
  fillCode(variant.record, std::move(cubins));
  return variant;
}

Result<CompiledVariant> compileVariant(const PreparedPattern &prepared, const KernelRequest &request,
                                       const KernelConfig &config, const KnownKernels &known) {
  HEDDLE_ASSIGN(const Skeleton *skeleton, validateConfig(request, config));
  Result<CompiledVariant> variant = compileFeasible({prepared, request, known}, config, *skeleton);
  if (variant || variant.status().code() == StatusCode::unavailable)
    return variant;
  return Status(variant.status().code(),
                "pattern '" + prepared.name + "' (" + config.summary() + "): " + variant.status().message());
}

KernelFamily familyOf(const PreparedPattern &prepared, const KernelShape &shape) {
  return familyOf(prepared, makeRequest(prepared, shape));
}

static Result<ConfigSummary> summaryOf(const KernelConfig &config) {
  HEDDLE_ASSIGN(const Skeleton *skeleton, findSkeleton(config.skeleton()));
  return ConfigSummary{config.skeleton(),
                       config.str(),
                       config.json(),
                       config.summary(),
                       config.valueOf("block_m"),
                       config.valueOf("block_n"),
                       skeleton->schedule(config).addedInAnyOrder};
}

Result<ConfigSummary> configFor(const PreparedPattern &prepared, const KernelShape &shape, const std::string &changes) {
  KernelRequest request = makeRequest(prepared, shape);
  HEDDLE_ASSIGN(KernelConfig config, parseConfig(request, changes));
  HEDDLE_TRY(validateConfig(request, config).status());
  return summaryOf(config);
}

Result<ConfigSummary> summarizeConfig(const std::string &stored) {
  HEDDLE_ASSIGN(KernelConfig config, readConfig(stored));
  return summaryOf(config);
}

Result<std::vector<KernelSource>> variantSources(const PreparedPattern &prepared, const KernelShape &shape,
                                                 const std::string &changes) {
  KernelRequest request = makeRequest(prepared, shape);
  HEDDLE_ASSIGN(KernelConfig config, parseConfig(request, changes));
  return variantSources(prepared, request, config);
}

/// Defaults and fallback configurations of every skeleton that applies, in order of preference, as `change` has them.
static Result<std::vector<KernelConfig>> defaultsOf(const KernelRequest &request, const ChangeConfig &change) {
  std::vector<KernelConfig> configs;
  for (const Skeleton *skeleton : skeletonsOf(request.kind)) {
    if (!skeleton->appliesTo(request).isOk())
      continue;
    configs.push_back(skeleton->defaultConfig(request));
    for (KernelConfig &fallback : skeleton->fallbackConfigs(request))
      configs.push_back(std::move(fallback));
  }
  for (KernelConfig &config : configs)
    if (change) {
      HEDDLE_ASSIGN(config, parseConfig(request, change(config.str())));
    }
  return configs;
}

/// Those from `begin` to `end`, in order.
static std::vector<Result<CompiledVariant>> compileEach(const Wanted &wanted, const std::vector<KernelConfig> &configs,
                                                        size_t begin, size_t end) {
  std::vector<Result<CompiledVariant>> variants(end - begin, Status::internal("not compiled"));
  parallelFor(int64_t(end - begin), int(end - begin), [&](int, int64_t place) {
    const KernelConfig &config = configs[begin + size_t(place)];
    const Result<const Skeleton *> skeleton = validateConfig(wanted.request, config);
    variants[size_t(place)] =
        skeleton ? compileFeasible(wanted, config, **skeleton) : Result<CompiledVariant>(skeleton.status());
  });
  return variants;
}

/// The end of what is tried side by side, from `begin` on: the first alone, behind it configurations of one skeleton.
static size_t endOfNext(const std::vector<KernelConfig> &configs, size_t begin, int threads) {
  size_t end = begin;
  const size_t most = begin ? begin + size_t(threadCountFor(int64_t(configs.size()), threads)) : 1;
  while (end < std::min(most, configs.size()) && configs[end].skeleton() == configs[begin].skeleton())
    ++end;
  return end;
}

/// The first default that the compiler accepts.
static Result<CompiledVariant> compileDefault(const Wanted &wanted, int threads, const ChangeConfig &change = {}) {
  HEDDLE_TRY(chooseSkeleton(wanted.request).status());
  HEDDLE_ASSIGN(const std::vector<KernelConfig> configs, defaultsOf(wanted.request, change));
  std::string reasons;
  StageTimes refused;
  // Nearly always the first is accepted; where it is not, often several are refused.
  for (size_t begin = 0, end = 0; begin < configs.size(); begin = end) {
    end = endOfNext(configs, begin, threads);
    auto variants = timeStage(refused, "refused", [&] { return compileEach(wanted, configs, begin, end); });
    for (size_t place = 0; place < variants.size(); ++place) {
      Result<CompiledVariant> &variant = variants[place];
      const KernelConfig &config = configs[begin + place];
      if (!variant && variant.status().code() == StatusCode::unsupported) {
        reasons =
            joined(reasons, config.skeleton() + " (" + config.summary() + "): " + variant.status().message(), "; ");
        continue;
      }
      if (variant && !reasons.empty())
        variant->record.note = joined(variant->record.note, "fallback: " + reasons, "; ");
      if (variant)
        variant->times.insert(variant->times.begin(), refused.begin(), refused.end() - 1);
      return std::move(variant);
    }
  }
  return Status::unsupported("pattern '" + wanted.prepared.name + "': " + reasons +
                             "; other configurations may do, see --config");
}

Result<CompiledVariant> compileVariant(const PreparedPattern &prepared, const KernelShape &shape,
                                       const std::string &changes, int threads, const KnownKernels &known) {
  KernelRequest request = makeRequest(prepared, shape);
  if (changes.empty() || changes == kDefaultChanges)
    return compileDefault({prepared, request, known}, threads);
  HEDDLE_ASSIGN(KernelConfig config, parseConfig(request, changes));
  return compileVariant(prepared, request, config, known);
}

Result<CompiledVariant> compileChangedDefault(const PreparedPattern &prepared, const KernelShape &shape,
                                              const ChangeConfig &change) {
  return compileDefault({prepared, makeRequest(prepared, shape), {}}, /*threads=*/0, change);
}

} // namespace heddle
