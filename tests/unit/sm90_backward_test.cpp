// The Hopper backward skeleton of floats without a GPU: what its plan writes and reads, what it refuses, and that its default
// and its fallback configurations are feasible for every request that it serves.
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Target/FindArch.h"
#include "runtime/Core/LaunchPlan.h"
#include "tests/unit/support/SkeletonConfigs.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

const Skeleton &skeleton() { return sm90BackwardSkeleton(); }

KernelRequest requestOf(int64_t headDim, int64_t valueDim, Precision precision = Precision::exact) {
  KernelRequest request;
  request.arch = *findGpuArch("sm_90a");
  request.kind = {KindBase::backward};
  request.headDim = headDim, request.valueDim = valueDim;
  request.elements = CallElements(DType::fp32, DType::fp32, precision);
  return request;
}

LaunchPlan planOf(const KernelRequest &request) {
  return skeleton().planLaunch(request, skeleton().defaultConfig(request));
}

} // namespace

TEST_CASE("every configuration of fp32 that is tried first or later is feasible, and has a plan") {
  for (int64_t headDim = 8; headDim <= 128; headDim += 8)
    for (int64_t valueDim : {int64_t(8), headDim, int64_t(128)})
      for (Precision precision : {Precision::exact, Precision::tf32})
        for (bool hasLists : {false, true}) {
          KernelRequest request = requestOf(headDim, valueDim, precision);
          request.hasScores = request.balance.hasLongRows = request.isDetached = hasLists;
          request.kind.isDeterministic = hasLists && headDim % 16 == 0;
          CAPTURE(request.str());
          checkTriedConfigs(skeleton(), request, [&](const KernelConfig &config) {
            const Status status = skeleton().planLaunch(request, config).validate();
            CHECK_MESSAGE(status.isOk(), status.message());
          });
        }
}

TEST_CASE("walks of fp32 read rows of fp16 that a launch before makes in the workspace") {
  for (Precision precision : {Precision::exact, Precision::tf32}) {
    const KernelRequest request = requestOf(40, 72, precision);
    const LaunchPlan plan = planOf(request);
    REQUIRE(plan.launches.size() == 4);
    CHECK(plan.launches[0].entry == "heddle_raise_rows");
    CHECK(plan.launches[1].entry == "heddle_backward_preprocess");
    for (size_t walk : {size_t(2), size_t(3)}) {
      CHECK(plan.launches[walk].tensorMaps.size() == 9); // rows, statistics and factors of queries, factors of keys
      for (const TensorMapSpec &map : plan.launches[walk].tensorMaps)
        CHECK(map.source.kind == PointerSource::Kind::region);
    }
    LaunchSymbols symbols;
    symbols[LaunchSymbol::batch] = 2, symbols[LaunchSymbol::heads] = 4, symbols[LaunchSymbol::kvHeads] = 2;
    symbols[LaunchSymbol::seqlenQ] = 250, symbols[LaunchSymbol::seqlenK] = 512, symbols[LaunchSymbol::smCount] = 132;
    const Result<WorkspaceLayout> layout = evaluateWorkspace(plan, symbols);
    REQUIRE(layout.isOk());
    const int64_t queries = 2 * 4 * 250, keys = 2 * 2 * 512, statistics = 2 * 4 * 256 * 4;
    const int64_t bytes = precision == Precision::exact ? 4 : 2; // of an element, in rows of 64 and of 128
    const int64_t wanted[] = {queries * 64 * bytes,
                              queries * 128 * bytes,
                              keys * 64 * bytes,
                              keys * 128 * bytes,
                              statistics,
                              statistics,
                              keys * 16,
                              statistics,
                              statistics};
    REQUIRE(plan.regions.size() == std::size(wanted));
    for (size_t region = 0; region < std::size(wanted); ++region)
      CHECK(layout->bytes[region] == wanted[region]);
    CHECK(skeleton().kernels(request, skeleton().defaultConfig(request)).find("heddle_raise_rows") !=
          std::string::npos);
  }
  KernelRequest packed = requestOf(64, 64);
  packed.elements = CallElements(DType::bf16);
  CHECK(skeleton().kernels(packed, skeleton().defaultConfig(packed)).find("heddle_raise_rows") == std::string::npos);
}

TEST_CASE("what fp32 cannot have on Hopper is said") {
  CHECK(skeleton().appliesTo(requestOf(136, 64)).message() ==
        "sm90_backward: serves head dims that are multiples of 8 up to 128, not 136 of fp32");
  const auto reasonFor = [](const KernelRequest &request,
                            std::initializer_list<std::pair<const char *, int64_t>> changes) {
    KernelConfig config = skeleton().defaultConfig(request);
    for (const auto &[field, value] : changes)
      REQUIRE(config.set(field, value).isOk());
    const auto rejection = skeleton().whyInfeasible(request, config);
    return rejection ? rejection->constraint + ": " + rejection->reason : "";
  };
  const char *const raised =
      "raised: rows of fp32 have powers of two of their own, which d_q in sums of key tiles does not "
      "allow, expected reduce=2 and block_m=64";
  CHECK(reasonFor(requestOf(40, 40), {{"reduce", 0}}) == raised);
  CHECK(reasonFor(requestOf(40, 40), {{"block_m", 128}}) == raised);
  CHECK(reasonFor(requestOf(128, 40), {{"block_n", 128}}) ==
        "tiles: block_m and block_n are 64 and 128, expected 64 for head dims above 64");
  CHECK(reasonFor(requestOf(40, 40), {{"block_n", 64}, {"long_split", 4}}) ==
        "teams: blocks share no tiles of 64 keys, expected long_split=1");
  CHECK(reasonFor(requestOf(128, 128), {{"stages", 3}}).find("smem: ") == 0);
}
