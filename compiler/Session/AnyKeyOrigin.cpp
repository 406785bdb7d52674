#include "compiler/Session/CompileSession.h"

#include "codegen/Config/Constraint.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "compiler/Session/PreparedPattern.h"

#include <algorithm>
#include <cstdlib>

namespace heddle {
namespace {

/// What block_n may be, the nearest to `wanted` first.
std::vector<int64_t> keyTiles(const Skeleton &skeleton, const KernelRequest &request, int64_t wanted) {
  std::vector<int64_t> values;
  for (const Knob &knob : skeleton.knobs(request))
    if (knob.name == "block_n")
      values = knob.values;
  std::stable_sort(values.begin(), values.end(),
                   [&](int64_t a, int64_t b) { return std::abs(a - wanted) < std::abs(b - wanted); });
  return values;
}

std::vector<KernelConfig> configsForAnyKeyOrigin(const Skeleton &skeleton, const KernelRequest &request) {
  std::vector<KernelConfig> configs;
  const KernelConfig base = skeleton.defaultConfig(request);
  for (int64_t keys : keyTiles(skeleton, request, base.valueOf("block_n"))) {
    KernelConfig config = base;
    for (const char *field : {"block_n", "chunk_n"}) // families without chunks have whole tiles
      if (Result<size_t> place = config.fields().find(field))
        config[*place] = keys;
    config = skeleton.derived(request, std::move(config));
    if (!skeleton.whyInfeasible(request, config) && skeleton.planCall(request, config).serves.keyOriginStep == 1)
      configs.push_back(std::move(config));
  }
  return configs;
}

} // namespace

Result<CompiledVariant> compileForAnyKeyOrigin(const PreparedPattern &prepared, const KernelRequest &request) {
  HEDDLE_TRY(chooseSkeleton(request).status());
  Status refused = Status::unsupported("pattern '" + prepared.name + "': no kernel takes keys that begin anywhere");
  for (const Skeleton *skeleton : skeletonsOf(request.kind)) {
    if (!skeleton->appliesTo(request).isOk())
      continue;
    for (const KernelConfig &config : configsForAnyKeyOrigin(*skeleton, request)) {
      Result<CompiledVariant> variant = compileVariant(prepared, request, config);
      if (variant || variant.status().code() != StatusCode::unsupported)
        return variant;
      refused = variant.status();
    }
  }
  return refused;
}

} // namespace heddle
