#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Config/ChainedLaunch.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "codegen/Target/GpuArch.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {

std::string_view Skeleton::name() const { return fields().skeleton; }

std::string Skeleton::deviceFile() const {
  const std::string wanted = "/" + std::string(name()) + ".cuh";
  for (const EmbeddedFile &file : skeletonSources())
    if (file.name.size() > wanted.size() && file.name.substr(file.name.size() - wanted.size()) == wanted)
      return std::string(file.name);
  return wanted.substr(1); // none: reported by the compiler
}

std::string Skeleton::kernels(const KernelRequest &request, const KernelConfig &config) const {
  std::string text = "using Kernel = heddle::" + deviceConstantName(name()).substr(1) + "<KernelTraits, Pattern>;\n";
  for (const auto &[name, type, clusterBlocks] : entries(request, config)) {
    const std::string cluster =
        clusterBlocks ? " __cluster_dims__(" + std::to_string(clusterBlocks) + ", 1, 1)" : std::string();
    text += "\nextern \"C\" __global__ void __launch_bounds__(" + type + "::kThreads, " + type + "::kMinBlocks)" +
            cluster + "\n    " + name + "(const __grid_constant__ " + type + "::Params p) {\n  " + type +
            "::run(p);\n}\n";
  }
  return text;
}

Status Skeleton::appliesTo(const KernelRequest &request) const {
  HEDDLE_TRY(request.validate());
  Status status;
  if (kind() != request.kind.base)
    status = Status::unsupported("serves the kind " + Kind{kind()}.name() + ", not " + request.kind.name());
  else if (!servesArch(*request.arch))
    status = Status::unsupported("needs " + std::string(instructions()) + ", which " + std::string(request.arch->name) +
                                 " lacks");
  else
    status = checkRequest(request);
  return status.isOk() ? status : Status(status.code(), std::string(name()) + ": " + status.message());
}

std::optional<Rejection> Skeleton::whyInfeasible(const KernelRequest &request, const KernelConfig &config) const {
  if (&config.fields() != &fields())
    return Rejection{"skeleton", "expected " + std::string(name()) + ", got '" + config.skeleton() + "'",
                     config.summary()};
  for (const Constraint &constraint : constraints())
    if (std::optional<std::string> reason = constraint.reason(request, config))
      return Rejection{std::string(constraint.name), std::move(*reason), config.summary()};
  return std::nullopt;
}

std::vector<KernelRequest> Skeleton::kernelsOf(const KernelRequest &request, const KernelConfig &config) {
  if (!config.valueOf(kChainedField))
    return {request};
  std::vector<KernelRequest> kernels;
  for (size_t i = 0; i < request.passes.size(); ++i)
    kernels.push_back(request.passRequest(i));
  return kernels;
}

LaunchPlan Skeleton::planCall(const KernelRequest &request, const KernelConfig &config) const {
  std::vector<LaunchPlan> plans;
  for (const KernelRequest &kernel : kernelsOf(request, config))
    plans.push_back(planLaunch(kernel, config));
  const int64_t mib = config.valueOf(kChainedField);
  return mib ? chainedPlan(plans, roundStep(request, config.valueOf("block_m")), mib) : std::move(plans.front());
}

LaunchPlan Skeleton::defaultPlan(const KernelRequest &request) const {
  return planCall(request, defaultConfig(request));
}

std::vector<KernelConfig> Skeleton::fallbackConfigs(const KernelRequest &) const { return {}; }

KernelConfig Skeleton::derived(const KernelRequest &, KernelConfig config) const { return config; }

KernelConfig Skeleton::takenBack(KernelConfig config) const { return config; }

} // namespace heddle
