//===- ConfigSample.cpp - feasible configurations of a skeleton -----------===//
#include "compiler/Driver/ConfigSample.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/ConfigSpace.h"
#include "compiler/Driver/PreparedPattern.h"
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
  const ConfigSpace space(*chosen, request);
  std::vector<ConfigSpace::Point> points;
  space.forEach([&](const ConfigSpace::Point &point, const Rejection *rejection) {
    if (!rejection)
      points.push_back(point);
  });
  ConfigList list;
  list.skeleton = std::string(chosen->name());
  list.feasible = static_cast<int64_t>(points.size());
  if (sample) {
    std::mt19937_64 random{sample->seed};
    tuner::shuffleFrom(points, 0, random);
    points.resize(std::min<size_t>(points.size(), sample->count));
  }
  for (const ConfigSpace::Point &point : points) {
    const KernelConfig config = space.configAt(point);
    HEDDLE_ASSIGN(std::string changes, changesOf(config, space.knobs()));
    list.configs.push_back({std::move(changes), config.json()});
  }
  return list;
}

} // namespace heddle
