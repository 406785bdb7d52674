// Owns the list behind `heddle explain --configs`: for each skeleton what is feasible and which rules refuse the rest.
// Everything is text here: who prints it need not know the fields of a configuration.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace heddle {
struct LaunchPlan;
struct KernelRequest;
} // namespace heddle

namespace heddle::views {

struct ConfigChoice {
  std::string json, line; ///< KernelConfig::json, spelled
  bool isDefault = false;
};

/// How often a rule refused a configuration, and the first one.
struct RefusingRule {
  int64_t count = 0;
  std::string reason, config;
};

struct SkeletonChoices {
  std::string name;
  std::string refusal; ///< why the skeleton does not apply; empty if it does
  int64_t feasibleCount = 0;
  std::vector<ConfigChoice> nearDefault;       ///< feasible: the default and what differs from it in one knob
  std::map<std::string, RefusingRule> refused; ///< by the name of the rule
};

struct ConfigChoices {
  std::string arch;
  std::vector<SkeletonChoices> skeletons; ///< the preferred one first
};

ConfigChoices configChoices(const KernelRequest &request);

/// The launch of the default configuration. unsupported: no skeleton applies.
Result<LaunchPlan> defaultLaunchPlan(const KernelRequest &request);
/// The same with the passes of the request as kernels of their own. unsupported: the configuration is not feasible.
Result<LaunchPlan> chainedLaunchPlan(const KernelRequest &request);

} // namespace heddle::views
