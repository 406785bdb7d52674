// The configurations that a skeleton tries for a request, and that they are feasible. Used by the tests of skeletons.
#pragma once

#include "codegen/Config/KernelConfig.h"
#include "codegen/Skeletons/Shared/Skeleton.h"

#include <doctest/doctest.h>

namespace heddle::test {

/// check(config) of the fallbacks and the default, of a request that the skeleton serves; each of them is feasible.
template <class Check>
void checkTriedConfigs(const Skeleton &skeleton, const KernelRequest &request, const Check &check) {
  REQUIRE(skeleton.appliesTo(request).isOk());
  std::vector<KernelConfig> configs = skeleton.fallbackConfigs(request);
  configs.push_back(skeleton.defaultConfig(request));
  for (const KernelConfig &config : configs) {
    const auto rejection = skeleton.whyInfeasible(request, config);
    CHECK_MESSAGE(!rejection, rejection->str());
    check(config);
  }
}

} // namespace heddle::test
