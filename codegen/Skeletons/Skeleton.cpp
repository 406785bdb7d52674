//===- Skeleton.cpp - what follows from knobs and constraints -------------------------------===//
#include "codegen/Skeletons/Skeleton.h"
#include "codegen/Config/KernelConfig.h"
#include "runtime/Core/LaunchPlan.h"

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

LaunchPlan Skeleton::defaultPlan(const KernelRequest &request) const { return planLaunch(request, defaultConfig(request)); }

std::vector<KernelConfig> Skeleton::spareConfigs(const KernelRequest &) const { return {}; }

} // namespace heddle
