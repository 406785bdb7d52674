// A skeleton whose knobs, constraints and kernel are those of another one, for calls of a kind of its own.
#pragma once

#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {

/// `of`: the accessor of the other skeleton, which is asked with requests of the sibling's kind, and whose configurations
/// have the same fields under another name. It may look at the kind; a sibling may have other launches.
template <KindBase own, const Skeleton &(*of)()> class Sibling : public Skeleton {
public:
  const ConfigFields &fields() const final { return names; }
  KindBase kind() const final { return own; }
  bool servesArch(const GpuArch &arch) const final { return of().servesArch(arch); }
  const char *instructions() const final { return of().instructions(); }
  std::vector<Knob> knobs(const KernelRequest &request) const final { return of().knobs(request); }
  const std::vector<Constraint> &constraints() const final {
    static const std::vector<Constraint> list = {{"ranges", "every field lies in its range", checkRanges},
                                                 {of().name(), "those of the skeleton whose kernel it is", whyNot}};
    return list;
  }
  KernelConfig defaultConfig(const KernelRequest &request) const final {
    return moved(of().defaultConfig(request), names);
  }
  std::vector<KernelConfig> fallbackConfigs(const KernelRequest &request) const final {
    std::vector<KernelConfig> configs;
    for (const KernelConfig &config : of().fallbackConfigs(request))
      configs.push_back(moved(config, names));
    return configs;
  }
  KernelConfig derived(const KernelRequest &request, KernelConfig config) const final {
    return moved(of().derived(request, ofOther(config)), names);
  }
  KernelConfig takenBack(KernelConfig config) const final { return moved(of().takenBack(ofOther(config)), names); }
  ScheduleFacts schedule(const KernelConfig &config) const final { return of().schedule(ofOther(config)); }
  SmemLayout planSmem(const KernelRequest &request, const KernelConfig &config) const final {
    return of().planSmem(request, ofOther(config));
  }
  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override {
    return of().planLaunch(request, ofOther(config));
  }
  std::string traits(const KernelRequest &request, const KernelConfig &config) const override {
    return of().traits(request, ofOther(config));
  }

protected:
  explicit Sibling(const char *name) : names{name, of().fields().list} {}

  static KernelConfig ofOther(const KernelConfig &config) { return moved(config, of().fields()); }

  Status checkRequest(const KernelRequest &request) const override {
    KernelRequest other = request;
    other.kind.base = of().kind();
    return of().appliesTo(other);
  }

private:
  static KernelConfig moved(const KernelConfig &config, const ConfigFields &fields) {
    KernelConfig same(fields);
    for (size_t place = 0; place < fields.list.size(); ++place)
      same[place] = config[place];
    return same;
  }
  static std::optional<std::string> whyNot(const KernelRequest &request, const KernelConfig &config) {
    const std::optional<Rejection> why = of().whyInfeasible(request, ofOther(config));
    return why ? std::optional(why->constraint + ": " + why->reason) : std::nullopt;
  }

  const ConfigFields names;
};

} // namespace heddle
