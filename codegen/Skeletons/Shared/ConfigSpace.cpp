#include "codegen/Skeletons/Shared/ConfigSpace.h"

#include <algorithm>

namespace heddle {
namespace {

/// Moves the indices of the chosen knobs to the next combination; false after the last one.
bool advance(ConfigSpace::Point &point, const std::vector<size_t> &chosen, const std::vector<Knob> &knobs) {
  for (size_t i = chosen.size(); i-- > 0;) {
    if (++point[chosen[i]] < knobs[chosen[i]].values.size())
      return true;
    point[chosen[i]] = 0;
  }
  return false;
}

} // namespace

ConfigSpace::ConfigSpace(const Skeleton &skeleton, const KernelRequest &request)
    : skeleton(skeleton), request(request), base(skeleton.defaultConfig(request)), knobList(skeleton.knobs(request)) {
  for (size_t i = 0; i < knobList.size(); ++i) {
    places.push_back(*base.fields().find(knobList[i].name)); // a knob is a field
    defaults.push_back(base[places.back()]);
    groups.resize(std::max<size_t>(groups.size(), knobList[i].group + 1));
    groups[knobList[i].group].knobs.push_back(i);
  }
  for (Group &group : groups)
    judge(group);
}

void ConfigSpace::judge(Group &group) const {
  Point point(knobList.size(), 0);
  do {
    KernelConfig config = base;
    for (size_t knob : group.knobs)
      set(config, knob, point[knob]);
    config = skeleton.derived(request, std::move(config));
    std::optional<Verdict> &verdict = group.verdicts.emplace_back();
    const std::vector<Constraint> &constraints = skeleton.constraints();
    for (size_t i = 0; i < constraints.size() && !verdict; ++i)
      if (std::optional<std::string> reason = constraints[i].reason(request, config))
        verdict = Verdict{i, {std::string(constraints[i].name), std::move(*reason), config.summary()}};
  } while (advance(point, group.knobs, knobList));
}

size_t ConfigSpace::placeIn(const Group &group, const Point &point) const {
  size_t place = 0;
  for (size_t knob : group.knobs)
    place = place * knobList[knob].values.size() + point[knob];
  return place;
}

void ConfigSpace::set(KernelConfig &config, size_t knob, uint32_t index) const {
  config[places[knob]] = knobList[knob].values[index];
}

const Rejection *ConfigSpace::refusal(const Point &point) const {
  const Verdict *first = nullptr;
  for (const Group &group : groups)
    if (const std::optional<Verdict> &verdict = group.verdicts[placeIn(group, point)])
      if (!first || verdict->constraint < first->constraint)
        first = &*verdict;
  return first ? &first->rejection : nullptr;
}

KernelConfig ConfigSpace::configAt(const Point &point) const {
  KernelConfig config = base;
  for (size_t knob = 0; knob < knobList.size(); ++knob)
    set(config, knob, point[knob]);
  return skeleton.derived(request, std::move(config));
}

size_t ConfigSpace::changesFromDefault(const Point &point) const {
  size_t changes = 0;
  for (size_t knob = 0; knob < knobList.size(); ++knob)
    changes += knobList[knob].values[point[knob]] != defaults[knob];
  return changes;
}

ConfigSpace::Point ConfigSpace::pointAt(uint64_t number) const {
  Point point(knobList.size(), 0);
  for (size_t knob = knobList.size(); knob-- > 0; number /= knobList[knob].values.size())
    point[knob] = uint32_t(number % knobList[knob].values.size());
  return point;
}

void ConfigSpace::forEach(const std::function<void(const Point &, const Rejection *)> &visit) const {
  std::vector<size_t> all(knobList.size());
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = i;
  Point point(knobList.size(), 0);
  do
    visit(point, refusal(point));
  while (advance(point, all, knobList));
}

} // namespace heddle
