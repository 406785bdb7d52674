//===- ConfigSample.cpp - feasible configurations of a skeleton -----------===//
#include "compiler/Driver/ConfigSample.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Skeleton.h"
#include "tuner/Strategies/Shuffle.h"

#include <algorithm>

namespace heddle {

static Result<std::string> changesOf(const KernelConfig &config, const std::vector<Knob> &knobs) {
  std::string text = "skeleton=" + config.skeleton;
  for (const Knob &knob : knobs) {
    HEDDLE_ASSIGN(int64_t value, config.get(knob.name));
    text += "," + knob.name + "=" + std::to_string(value);
  }
  return text;
}

Result<ConfigList> listConfigs(const PreparedPattern &prepared, const KernelShape &shape, const std::string &skeleton,
                               const std::optional<SampleSize> &sample) {
  KernelRequest request = makeRequest(prepared, shape);
  HEDDLE_ASSIGN(const Skeleton *chosen, skeletonFor(request, skeleton));
  std::vector<KernelConfig> configs = chosen->feasibleConfigs(request);
  ConfigList list;
  list.skeleton = std::string(chosen->name());
  list.feasible = static_cast<int64_t>(configs.size());
  if (sample) {
    std::mt19937_64 random{sample->seed};
    tuner::shuffleFrom(configs, 0, random);
    configs.resize(std::min<size_t>(configs.size(), sample->count));
  }
  const std::vector<Knob> knobs = chosen->knobs(request);
  for (const KernelConfig &config : configs) {
    HEDDLE_ASSIGN(std::string changes, changesOf(config, knobs));
    list.configs.push_back({std::move(changes), config.json()});
  }
  return list;
}

} // namespace heddle
