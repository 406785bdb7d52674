#include "compiler/Views/ConfigChoices.h"
#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/ConfigSpace.h"
#include "codegen/Target/FindArch.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle::views {

static void listConfigs(const Skeleton &skeleton, const KernelRequest &request, SkeletonChoices &choices) {
  const ConfigSpace space(skeleton, request);
  const KernelConfig preferred = skeleton.defaultConfig(request);
  space.forEach([&](const ConfigSpace::Point &point, const Rejection *rejection) {
    if (!rejection) {
      ++choices.feasibleCount;
      if (space.changesFromDefault(point) <= 1) {
        const KernelConfig config = space.configAt(point);
        choices.nearDefault.push_back({config.json(), config.spelled(), config == preferred});
      }
      return;
    }
    RefusingRule &rule = choices.refused[rejection->constraint];
    if (rule.count++ == 0) {
      rule.reason = rejection->reason;
      rule.config = rejection->config;
    }
  });
}

ConfigChoices configChoices(const KernelRequest &request) {
  ConfigChoices list{archName(*request.arch), {}};
  for (const Skeleton *skeleton : skeletonsOf(request.kind)) {
    SkeletonChoices &choices = list.skeletons.emplace_back();
    choices.name = skeleton->name();
    Status applies = skeleton->appliesTo(request);
    if (applies.isOk())
      listConfigs(*skeleton, request, choices);
    else
      choices.refusal = applies.message();
  }
  return list;
}

Result<LaunchPlan> defaultLaunchPlan(const KernelRequest &request) {
  HEDDLE_ASSIGN(const Skeleton *skeleton, chooseSkeleton(request));
  return skeleton->defaultPlan(request);
}

Result<LaunchPlan> chainedLaunchPlan(const KernelRequest &request) {
  HEDDLE_ASSIGN(const Skeleton *skeleton, chooseSkeleton(request));
  KernelConfig config = skeleton->defaultConfig(request);
  HEDDLE_TRY(config.set(kChainedField, kChainedMib[1]));
  HEDDLE_TRY(validateConfig(request, config).status());
  return skeleton->planCall(request, config);
}

} // namespace heddle::views
