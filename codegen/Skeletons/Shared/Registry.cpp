#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Target/GpuArch.h"

#include <algorithm>

namespace heddle {

// Skeletons that are made for fewer architectures know them better.
static std::vector<const Skeleton *> listSkeletons() {
  std::vector<const Skeleton *> list = {
#define HEDDLE_SKELETON(accessor) &accessor(),
#include "codegen/Skeletons/Shared/heddle_skeletons.inc"
#undef HEDDLE_SKELETON
  };
  auto rank = [](const Skeleton *skeleton) {
    auto serves = [&](const GpuArch &arch) { return skeleton->servesArch(arch); };
    return std::make_pair(std::count_if(gpuArchs().begin(), gpuArchs().end(), serves), skeleton->name());
  };
  std::sort(list.begin(), list.end(), [&](const Skeleton *a, const Skeleton *b) { return rank(a) < rank(b); });
  return list;
}

const std::vector<const Skeleton *> &skeletons() {
  static const std::vector<const Skeleton *> list = listSkeletons();
  return list;
}

std::vector<const Skeleton *> skeletonsOf(const Kind &kind) {
  std::vector<const Skeleton *> list;
  for (const Skeleton *skeleton : skeletons())
    if (skeleton->kind() == kind.base)
      list.push_back(skeleton);
  return list;
}

std::vector<std::string> skeletonNames() {
  std::vector<std::string> names;
  for (const Skeleton *skeleton : skeletons())
    names.emplace_back(skeleton->name());
  return names;
}

std::vector<std::string> configFieldNames() {
  std::vector<std::string> names = {"skeleton"};
  for (const Skeleton *skeleton : skeletons())
    for (const ConfigField &field : skeleton->fields().list)
      if (std::find(names.begin(), names.end(), field.name) == names.end())
        names.push_back(field.name);
  return names;
}

const ConfigField *findConfigField(std::string_view field) {
  for (const Skeleton *skeleton : skeletons())
    for (const ConfigField &known : skeleton->fields().list)
      if (known.name == field)
        return &known;
  return nullptr;
}

Result<KernelConfig> readConfig(std::string_view text) {
  constexpr std::string_view kName = "skeleton=";
  size_t begin = text.find(kName);
  while (begin != std::string_view::npos && begin > 0 && text[begin - 1] != '\n')
    begin = text.find(kName, begin + 1);
  if (begin == std::string_view::npos)
    return Status::invalidArgument("configuration: field skeleton is missing");
  const std::string_view row = text.substr(begin, text.find('\n', begin) - begin);
  HEDDLE_ASSIGN(const Skeleton *skeleton, findSkeleton(row.substr(kName.size())));
  return KernelConfig::parse(skeleton->fields(), text);
}

Result<const Skeleton *> findSkeleton(std::string_view name) {
  std::string names;
  for (const Skeleton *skeleton : skeletons()) {
    if (skeleton->name() == name)
      return skeleton;
    names.append(names.empty() ? "" : ", ").append(skeleton->name());
  }
  return Status::notFound("no skeleton '" + std::string(name) + "'; there is " + names);
}

Result<const Skeleton *> chooseSkeleton(const KernelRequest &request) {
  HEDDLE_TRY(request.validate());
  std::string reasons;
  for (const Skeleton *skeleton : skeletonsOf(request.kind)) {
    const Status status = skeleton->appliesTo(request);
    if (status.isOk())
      return skeleton;
    reasons += (reasons.empty() ? "" : "; ") + status.message();
  }
  return Status::unsupported("no kernel for " + request.str() + ": " + reasons);
}

Result<const Skeleton *> skeletonFor(const KernelRequest &request, std::string_view name) {
  if (name.empty())
    return chooseSkeleton(request);
  HEDDLE_ASSIGN(const Skeleton *skeleton, findSkeleton(name));
  HEDDLE_TRY(skeleton->appliesTo(request));
  return skeleton;
}

std::string whyPassedOver(const KernelRequest &request, const Skeleton &chosen) {
  std::string reasons;
  for (const Skeleton *skeleton : skeletonsOf(request.kind)) {
    if (skeleton == &chosen)
      break;
    const Status status = skeleton->appliesTo(request);
    if (!status.isOk() && skeleton->servesArch(*request.arch))
      reasons += (reasons.empty() ? "" : "; ") + status.message();
  }
  return reasons;
}

Result<KernelConfig> defaultConfig(const KernelRequest &request) {
  HEDDLE_ASSIGN(const Skeleton *skeleton, chooseSkeleton(request));
  return skeleton->defaultConfig(request);
}

Result<const Skeleton *> validateConfig(const KernelRequest &request, const KernelConfig &config) {
  HEDDLE_TRY(request.validate());
  HEDDLE_ASSIGN(const Skeleton *skeleton, findSkeleton(config.skeleton()));
  HEDDLE_TRY(skeleton->appliesTo(request));
  if (const std::optional<Rejection> rejection = skeleton->whyInfeasible(request, config))
    return Status::unsupported(rejection->str());
  return skeleton;
}

} // namespace heddle
