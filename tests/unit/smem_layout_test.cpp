// Shared-memory plans: alignment, overlap, and the total that the portable skeleton states.
#include "codegen/Skeletons/Forward/PortableConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Skeletons/Shared/ConfigSpace.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Target/GpuArch.h"
#include "runtime/Core/LaunchPlan.h"

#include <doctest/doctest.h>

using namespace heddle;

TEST_CASE("regions are placed behind each other on aligned offsets") {
  SmemLayout layout;
  CHECK(layout.totalBytes() == 0);
  CHECK(layout.append("q", 100) == 0);
  CHECK(layout.append("k", 128, 3) == 128);
  CHECK(layout.append("v", 1, 2) == 512);
  CHECK(layout.totalBytes() == 768);
  REQUIRE(layout.find("k") != nullptr);
  CHECK(layout.find("k")->bytes() == 384);
  CHECK(layout.find("k")->endBytes() == 512);
  CHECK(layout.find("o") == nullptr);
}

TEST_CASE("every feasible configuration has a plan without overlap that fits its GPU") {
  const Skeleton &skeleton = portableForwardSkeleton();
  for (const char *name : {"sm_80", "sm_86", "sm_90a"}) {
    KernelRequest request;
    request.arch = *findGpuArch(name);
    request.headDim = 128;
    const ConfigSpace space(skeleton, request);
    space.forEach([&](const ConfigSpace::Point &point, const Rejection *rejection) {
      if (rejection)
        return;
      const KernelConfig config = space.configAt(point);
      const SmemLayout layout = skeleton.planSmem(request, config);
      int64_t end = 0;
      bool isDisjoint = true;
      for (const SmemRegion &region : layout.regions()) {
        isDisjoint &= region.offsetBytes >= end && region.offsetBytes % SmemLayout::kAlignmentBytes == 0;
        end = region.endBytes();
      }
      if (!isDisjoint || end != layout.totalBytes() || end > request.arch->smemPerBlockBytes)
        FAIL_CHECK(config.summary());
    });
  }
}

TEST_CASE("the portable plan has the size that the device file states") {
  const Skeleton &skeleton = portableForwardSkeleton();
  for (int64_t headDim : {64, 128})
    for (int64_t valueDim : {64, 128})
      for (int64_t stages : {1, 2, 3}) {
        KernelRequest request;
        request.headDim = headDim;
        request.valueDim = valueDim;
        PortableConfig config = skeleton.defaultConfig(request);
        config.blockM = 192;
        config.blockN = 48;
        config.stages = stages;
        const SmemLayout layout = skeleton.planSmem(request, config);
        CHECK(layout.totalBytes() == 192 * headDim * 2 + stages * 48 * 2 * (headDim + valueDim));
        CHECK(skeleton.planLaunch(request, config).launches.front().sharedBytes == LaunchExpr(layout.totalBytes()));
      }
}
