#include "compiler/Session/TuneSpace.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/ConfigSpace.h"

namespace heddle {

static tuner::Knob toTunerKnob(const Knob &knob, const ConfigField &field) {
  tuner::Knob result{knob.name, knob.help, {}, field.initial};
  for (int64_t value : knob.values)
    result.values.push_back({value, field.names.empty() ? "" : field.spelled(value)});
  return result;
}

Result<tuner::SearchSpace> searchSpaceOf(const Skeleton &skeleton, std::shared_ptr<const ConfigSpace> configs) {
  std::vector<tuner::Knob> dimensions;
  for (const Knob &knob : configs->knobs()) {
    HEDDLE_ASSIGN(const size_t place, skeleton.fields().find(knob.name));
    dimensions.push_back(toTunerKnob(knob, skeleton.fields().list[place]));
  }
  std::vector<std::string> names;
  for (const Constraint &constraint : skeleton.constraints())
    names.emplace_back(constraint.name);
  auto judge = [configs](const tuner::Point &point) -> std::optional<tuner::Refusal> {
    const Rejection *rejection = configs->refusal(point.index);
    return rejection ? std::optional(tuner::Refusal{rejection->constraint, rejection->reason}) : std::nullopt;
  };
  auto screen = [configs](const tuner::Point &point) -> const std::string * {
    const Rejection *rejection = configs->refusal(point.index);
    return rejection ? &rejection->constraint : nullptr;
  };
  return tuner::SearchSpace::create(std::string(skeleton.name()), std::move(dimensions), judge, names, screen);
}

TuneSpace::TuneSpace(PreparedPattern prepared, std::shared_ptr<const KernelRequest> kernel, const Skeleton &skeleton,
                     std::shared_ptr<const ConfigSpace> configs, tuner::SearchSpace points)
    : prepared(std::move(prepared)), kernel(std::move(kernel)), skeleton(skeleton), configs(std::move(configs)),
      points(std::move(points)) {
  blockKnob = this->points.knobIndex("block_n");
  chunkKnob = blockKnob ? this->points.knobIndex("chunk_n") : std::nullopt;
}

Result<std::shared_ptr<const TuneSpace>> TuneSpace::create(PreparedPattern prepared, const KernelShape &shape,
                                                           const std::string &skeletonName) {
  auto kernel = std::make_shared<const KernelRequest>(makeRequest(prepared, shape));
  HEDDLE_ASSIGN(const Skeleton *skeleton, skeletonFor(*kernel, skeletonName));
  auto configs = std::make_shared<const ConfigSpace>(*skeleton, *kernel);
  HEDDLE_ASSIGN(tuner::SearchSpace points, searchSpaceOf(*skeleton, configs));
  return std::shared_ptr<const TuneSpace>(
      new TuneSpace(std::move(prepared), std::move(kernel), *skeleton, std::move(configs), std::move(points)));
}

Result<CompiledVariant> TuneSpace::compile(const tuner::Point &point) const {
  return compileVariant(prepared, *kernel, configs->configAt(point.index));
}

KernelConfig TuneSpace::configAt(const tuner::Point &point) const { return configs->configAt(point.index); }

double TuneSpace::distanceFromDefault(const tuner::Point &point) const {
  const size_t changes = configs->changesFromDefault(point.index);
  if (!chunkKnob)
    return double(changes);
  const auto isOff = [&](size_t knob) { return configs->valueAt(point.index, knob) != configs->defaultOf(knob); };
  const bool isOutOfStep = configs->valueAt(point.index, *blockKnob) * configs->defaultOf(*chunkKnob) !=
                           configs->valueAt(point.index, *chunkKnob) * configs->defaultOf(*blockKnob);
  return double(changes) - isOff(*chunkKnob) + isOutOfStep;
}

std::string TuneSpace::defaultPoint() const {
  Result<std::string> text = pointOf(skeleton.defaultConfig(*kernel).str());
  return text ? text.take() : std::string();
}

Result<std::string> TuneSpace::pointOf(const std::string &stored) const {
  Result<KernelConfig> config = readConfig(stored);
  if (!config || config->skeleton() != skeleton.name())
    return std::string();
  std::string text;
  for (const Knob &knob : skeleton.knobs(*kernel)) {
    HEDDLE_ASSIGN(const size_t place, skeleton.fields().find(knob.name));
    text += (text.empty() ? "" : " ") + knob.name + "=" + skeleton.fields().list[place].spelled((*config)[place]);
  }
  return points.parse(text) ? text : std::string();
}

std::string TuneSpace::familyName() const { return std::string(skeleton.name()); }

} // namespace heddle
