//===- operand_kernels_test.cpp - kernels of patterns that read tensors -----===//
// Where their pointers and lengths lie in parameter blocks, and that NVRTC agrees.
//===----------------------------------------------------------------------===//
#include "codegen/Config/KernelRequest.h"
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Nvrtc/KernelSource.h"
#include "codegen/Nvrtc/NvrtcLibrary.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Session/PreparedPattern.h"
#include "runtime/Core/LaunchPlan.h"
#include "support/FirstSource.h"
#include "support/ServedShapes.h"

#include <doctest/doctest.h>

#include <cstddef>

using namespace heddle;
using namespace heddle::test;

namespace {

// Two tensors, a size between them; the length of the second is asked for.
PreparedPattern preparedOf(const std::string &biasType, const std::string &tableType) {
  auto file = PatternFile::parse(
      "attn.pattern @p(%bias: " + biasType + ", %reach: i32 {attn.default = 5 : i32}, %table: " + tableType +
          ") {\n%m = attn.causal\n%s = attn.scaled\n%u = attn.bias %s, %bias : " + biasType +
          "\n%t = attn.relative %u, %table at [%reach] : " + tableType + "\nattn.softmax union(%m) of %t\n}",
      "test.mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  auto prepared = preparePattern(**file);
  REQUIRE(prepared.isOk());
  return prepared.take();
}

KernelShape shapeForAll() { return shapeServedBy("sm90_forward"); }

} // namespace

TEST_CASE("pointers come first in the parameter block, and words of tensors without a length are nobody's") {
  struct HostOperands {
    const void *operand[2];
  };
  struct PortableParams {
    const void *operand[2];
    const void *q;
  };
  const PreparedPattern prepared = preparedOf("memref<1x?x?x?xbf16>", "memref<?x?xf32>");
  const KernelRequest request = makeRequest(prepared, shapeForAll());
  CHECK(request.str().find(" operand0 operand2=length") != std::string::npos);
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    CAPTURE(skeleton->name());
    const LaunchPlan plan = skeleton->defaultPlan(request);
    CHECK(plan.validate().isOk());
    CHECK(plan.usedParams() == std::vector<bool>{false, true, true});
    REQUIRE(plan.launches.front().slots.size() > 3);
    CHECK(plan.launches.front().slots[0].pointer.str() == "operand0");
    CHECK(plan.launches.front().slots[0].offset == int64_t(offsetof(HostOperands, operand)));
    CHECK(plan.launches.front().slots[1].pointer.str() == "operand2");
    CHECK(plan.launches.front().slots[1].offset == 8);
    const bool startsWithMaps = plan.launches.front().slots[2].kind == SlotSpec::Kind::tensorMap;
    CHECK(plan.launches.front().slots[2].offset == (startsWithMaps ? 64 : int64_t(offsetof(PortableParams, q))));
    CHECK(LaunchPlan::parse(plan.str())->launches.front().slots.size() == plan.launches.front().slots.size());
  }
}

TEST_CASE("NVRTC compiles them for both families, and its parameter block has the size of the plan") {
  if (!NvrtcLibrary::shared()) {
    MESSAGE("skipped: no NVRTC");
    return;
  }
  const PreparedPattern prepared = preparedOf("memref<1x?x?x?xbf16>", "memref<?x?xf16>");
  const KernelRequest request = makeRequest(prepared, shapeForAll());
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    CAPTURE(skeleton->name());
    auto source = test::firstSource(prepared, shapeForAll(), "skeleton=" + std::string(skeleton->name()));
    REQUIRE(source.isOk());
    source->text += "static_assert(sizeof(Kernel::Params) == " +
                    std::to_string(skeleton->defaultPlan(request).launches.front().paramBytes) + ", \"layout\");\n";
    auto ptx = compile(*source, shapeForAll().archName());
    CHECK_MESSAGE(ptx.isOk(), ptx.status().message());
  }
}
