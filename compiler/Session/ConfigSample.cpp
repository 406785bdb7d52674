#include "compiler/Session/ConfigSample.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "compiler/Session/PreparedPattern.h"
#include "tuner/Space/Shuffle.h"

namespace heddle {

static Result<std::string> changesOf(const KernelConfig &config, const std::vector<Knob> &knobs) {
  std::string text = "skeleton=" + config.skeleton();
  for (const Knob &knob : knobs) {
    HEDDLE_ASSIGN(int64_t value, config.get(knob.name));
    text += "," + knob.name + "=" + std::to_string(value);
  }
  return text;
}

ConfigList::ConfigList(const Skeleton &skeleton, const KernelRequest &request)
    : space(skeleton, request), skeletonName(skeleton.name()) {
  uint64_t number = 0;
  space.forEach([&](const ConfigSpace::Point &, const Rejection *rejection) {
    if (!rejection)
      points.push_back(number);
    ++number;
  });
}

Result<ConfigList> ConfigList::of(const PreparedPattern &prepared, const KernelShape &shape,
                                  const std::string &skeleton) {
  const KernelRequest request = makeRequest(prepared, shape);
  HEDDLE_ASSIGN(const Skeleton *chosen, skeletonFor(request, skeleton));
  return ConfigList(*chosen, request);
}

Status ConfigList::visitFirst(const std::vector<uint64_t> &numbers, int64_t most,
                              const std::function<void(const ListedConfig &)> &visit) const {
  for (size_t i = 0; i < numbers.size() && int64_t(i) < most; ++i) {
    const KernelConfig config = space.configAt(space.pointAt(numbers[i]));
    HEDDLE_ASSIGN(std::string changes, changesOf(config, space.knobs()));
    visit({std::move(changes), config.json()});
  }
  return {};
}

Status ConfigList::forEach(int64_t most, const std::function<void(const ListedConfig &)> &visit) const {
  return visitFirst(points, most, visit);
}

Status ConfigList::forEach(const SampleSize &sample, const std::function<void(const ListedConfig &)> &visit) const {
  std::vector<uint64_t> shuffled = points;
  std::mt19937_64 random{sample.seed};
  tuner::shuffleFrom(shuffled, 0, random);
  return visitFirst(shuffled, sample.count, visit);
}

} // namespace heddle
