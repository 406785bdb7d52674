//===- Skeleton.cpp - what follows from knobs and constraints -------------------------------===//
#include "codegen/Skeletons/Skeleton.h"
#include "codegen/Config/KernelConfig.h"

#include <cassert>

namespace heddle {

std::optional<Rejection> Skeleton::whyInfeasible(const KernelRequest &request, const KernelConfig &config) const {
  if (config.skeleton != name())
    return Rejection{"skeleton", "expected " + std::string(name()) + ", got '" + config.skeleton + "'",
                     config.summary()};
  for (const Constraint &constraint : constraints())
    if (std::optional<std::string> reason = constraint.reason(request, config))
      return Rejection{std::string(constraint.name), std::move(*reason), config.summary()};
  return std::nullopt;
}

std::vector<KernelConfig> Skeleton::spareConfigs(const KernelRequest &) const { return {}; }

std::vector<KernelConfig> Skeleton::allConfigs(const KernelRequest &request) const {
  std::vector<KernelConfig> configs = {defaultConfig(request)};
  for (const Knob &knob : knobs(request)) {
    std::vector<KernelConfig> wider;
    for (const KernelConfig &config : configs) {
      for (int64_t value : knob.values) {
        wider.push_back(config);
        const Status status = wider.back().set(knob.name, value);
        assert(status.isOk() && "a knob is a field");
        (void)status;
      }
    }
    configs = std::move(wider);
  }
  for (KernelConfig &config : configs)
    deriveFields(request, config);
  return configs;
}

std::vector<KernelConfig> Skeleton::feasibleConfigs(const KernelRequest &request) const {
  std::vector<KernelConfig> feasible;
  for (KernelConfig &config : allConfigs(request))
    if (!whyInfeasible(request, config))
      feasible.push_back(std::move(config));
  return feasible;
}

} // namespace heddle
