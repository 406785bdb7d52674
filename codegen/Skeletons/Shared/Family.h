// A skeleton of one kind and one set of instructions.
#pragma once

#include "codegen/Config/ConfigView.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Target/GpuArch.h"

namespace heddle {

/// What a family is made of, as its refusals call it.
struct AsyncCopies {
  static constexpr const char *kName = "asynchronous copies";
  static bool areIn(const GpuFeatures &features) { return features.hasCpAsync; }
};
struct AnyInstructions {
  static constexpr const char *kName = "nothing";
  static bool areIn(const GpuFeatures &) { return true; }
};
struct WarpgroupProducts {
  static constexpr const char *kName = "warpgroup products and copies through tensor maps";
  static bool areIn(const GpuFeatures &features) { return features.hasWgmma && features.hasTma; }
};

/// Of kernels that keep nothing in shared memory.
template <class Config> SmemLayout noSmem(const KernelRequest &, const Config &) { return SmemLayout(); }

template <class Config, KindBase base, class Instructions,
          SmemLayout (*layoutOf)(const KernelRequest &, const Config &) = noSmem<Config>>
class Family : public Skeleton {
public:
  const ConfigFields &fields() const final { return configFields<Config>(); }
  KindBase kind() const final { return base; }
  bool servesArch(const GpuArch &arch) const final { return Instructions::areIn(arch.features); }
  const char *instructions() const final { return Instructions::kName; }
  SmemLayout planSmem(const KernelRequest &request, const KernelConfig &config) const final {
    return layoutOf(request, config);
  }
};

/// The one object of a family, as the registry lists it.
template <class OneFamily> const Skeleton &theOnly() {
  static const OneFamily family;
  return family;
}

} // namespace heddle
