// The portable backward skeleton without a GPU: its launch plan against the device's parameter block, what its workspace
// holds, and that its default and its fallback configurations are feasible for every request that it serves.
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/ScheduleFacts.h"
#include "codegen/Target/GpuArch.h"
#include "runtime/Core/TileReach.h"
#include "tests/unit/support/PlanSlots.h"
#include "tests/unit/support/SkeletonConfigs.h"

#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

// The parameter block of portable_backward_params.cuh for two run-time sizes, as the host compiler lays it out.
struct HostParams {
  const void *q, *k, *v, *dOut;
  void *rowGradient, *valueGradient;
  const float *lse, *delta;
  float *branchSums, *queryGradient;
  int64_t qStride[3], kStride[3], vStride[3], dOutStride[3], rowGradientStride[3], valueGradientStride[3];
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t raster;
  int32_t param[2];
};

const Skeleton &skeleton() { return portableBackwardSkeleton(); }

KernelRequest requestOf(int64_t dim = 64) {
  KernelRequest request;
  request.kind = {KindBase::backward};
  request.headDim = request.valueDim = dim;
  return request;
}

LaunchPlan defaultPlan(const KernelRequest &request) {
  return skeleton().planLaunch(request, skeleton().defaultConfig(request));
}

LaunchSymbols someCall() {
  LaunchSymbols symbols;
  symbols[LaunchSymbol::batch] = 2;
  symbols[LaunchSymbol::heads] = 6;
  symbols[LaunchSymbol::kvHeads] = 3;
  symbols[LaunchSymbol::seqlenQ] = 1000;
  symbols[LaunchSymbol::seqlenK] = 700;
  return symbols;
}

std::vector<std::string> entriesOf(const LaunchPlan &plan) {
  std::vector<std::string> entries;
  for (const KernelLaunch &launch : plan.launches)
    entries.push_back(launch.entry);
  return entries;
}

} // namespace

TEST_CASE("the slots of the plan are the fields of the parameter block, in both walks") {
  KernelRequest request = requestOf();
  request.paramCount = 2;
  request.isDetached = true;
  request.variants = request.transposed = {{1, {1, 1}}};
  request.qOrigin = QOriginRule::given;
  const LaunchPlan plan = defaultPlan(request);
  CHECK(plan.validate().isOk());
  for (size_t walk : {1, 2}) {
    const KernelLaunch &launch = plan.launches[walk];
    const std::string rows = walk == 1 ? "d_q" : "d_k"; // deltas come from a walk over key tiles
    CHECK(launch.paramBytes == sizeof(HostParams));
    CHECK(launch.slots.size() == 10 + 18 + 8 + 1 + 2);
    checkOffsets(slotOffsets(launch), {
                                          {"q", offsetof(HostParams, q)},
                                          {"k", offsetof(HostParams, k)},
                                          {"v", offsetof(HostParams, v)},
                                          {"d_out", offsetof(HostParams, dOut)},
                                          {rows, offsetof(HostParams, rowGradient)},
                                          {"d_v", offsetof(HostParams, valueGradient)},
                                          {"region0", offsetof(HostParams, lse)},
                                          {"region1", offsetof(HostParams, delta)},
                                          {"region3", offsetof(HostParams, branchSums)},
                                          {"region2", offsetof(HostParams, queryGradient)},
                                          {"q_stride_batch", offsetof(HostParams, qStride)},
                                          {"k_stride_row", offsetof(HostParams, kStride) + 8},
                                          {"v_stride_head", offsetof(HostParams, vStride) + 16},
                                          {"d_out_stride_batch", offsetof(HostParams, dOutStride)},
                                          {rows + "_stride_batch", offsetof(HostParams, rowGradientStride)},
                                          {"d_v_stride_head", offsetof(HostParams, valueGradientStride) + 16},
                                          {"batch", offsetof(HostParams, batch)},
                                          {"kv_heads", offsetof(HostParams, kvHeads)},
                                          {"seqlen_k", offsetof(HostParams, seqlenK)},
                                          {"q_origin", offsetof(HostParams, qOrigin)},
                                          {"k_origin", offsetof(HostParams, kOrigin)},
                                          {"scale_log2", offsetof(HostParams, scaleLog2)},
                                          {"param0", offsetof(HostParams, param)},
                                          {"param1", offsetof(HostParams, param) + 4},
                                      });
  }
}

TEST_CASE("detached branches add sums for their deltas first; all that adds begins with zeros") {
  KernelRequest request = requestOf(128);
  request.variants = request.transposed = {{1, {1, 1, 4}}};
  const std::vector<std::string> whole = {"heddle_backward_preprocess", "heddle_kernel", "heddle_convert_dq"};
  const std::vector<std::string> detached = {"heddle_backward_preprocess", "heddle_branch_deltas", "heddle_kernel",
                                             "heddle_convert_dq"};
  const int64_t rows = 2 * 6 * 1024; // in tiles of 32, of one class or of four
  for (bool isDetached : {false, true}) {
    request.isDetached = isDetached;
    const LaunchPlan plan = defaultPlan(request);
    CHECK(LaunchPlan::parse(plan.str())->str() == plan.str());
    CHECK(entriesOf(plan) == (isDetached ? detached : whole));
    CHECK(plan.regions.size() == (isDetached ? 4 : 3));
    CHECK(*plan.regions[0].bytes.evaluate(someCall()) == 2 * rows * 4);
    CHECK(*plan.regions[2].bytes.evaluate(someCall()) == rows * 128 * 4);
    for (size_t region = 2; region < plan.regions.size(); ++region) {
      const size_t walk = region == 2 && isDetached ? 2 : 1;
      const ClearSpec &clear = plan.launches[walk].clears.front();
      CHECK(clear.target == PointerSource::region(int64_t(region)));
      CHECK(*clear.words.evaluate(someCall()) * 4 == *plan.regions[region].bytes.evaluate(someCall()));
    }
    if (isDetached)
      CHECK(*plan.regions[3].bytes.evaluate(someCall()) == 2 * 3 * rows * 4);
  }
}

TEST_CASE("plans of detached branches that add to gradients want all keys") {
  for (bool accumulates : {false, true})
    for (bool isDetached : {false, true}) {
      KernelRequest request = requestOf(128);
      request.variants = request.transposed = {{1, {1, 1, 4}}};
      request.kind.adds = accumulates ? Adds::all : Adds::none, request.isDetached = isDetached;
      const bool wantsAll = isDetached && accumulates;
      CHECK(defaultPlan(request).serves.keyOriginStep == (wantsAll ? 0 : 1));
    }
}

TEST_CASE("where bits must not depend on the run, d_q has a walk of its own and nothing is added up in memory") {
  KernelRequest request = requestOf(128);
  request.kind.isDeterministic = true;
  for (bool isDetached : {false, true}) {
    request.isDetached = isDetached;
    const KernelConfig config = skeleton().defaultConfig(request);
    CHECK(skeleton().schedule(config).addedInAnyOrder.empty());
    const LaunchPlan plan = skeleton().planLaunch(request, config);
    CHECK(plan.validate().isOk());
    std::vector<std::string> entries = {"heddle_backward_preprocess", "heddle_kernel", "heddle_query_walk"};
    if (isDetached)
      entries.insert(entries.begin() + 1, "heddle_branch_deltas");
    CHECK(entriesOf(plan) == entries);
    CHECK(*plan.launches.back().grid[0].evaluate(someCall()) == 2 * 6 * 16);
  }
  KernelConfig sums = skeleton().defaultConfig(request);
  REQUIRE(sums.set("query_walk", 0).isOk());
  CHECK(skeleton().whyInfeasible(request, sums)->reason.find("expected query_walk=1") != std::string::npos);
}

TEST_CASE("squares that are kept or dropped: under a band, and in classes that heads share") {
  const auto says = [](const KernelRequest &request, const std::string &what) {
    return skeleton().traits(request, skeleton().defaultConfig(request)).find(what + ";") != std::string::npos;
  };
  KernelRequest request = requestOf();
  CHECK(says(request, "kSquare = 1"));
  request.grain = 64;
  CHECK((says(request, "kSquare = 64") && says(request, "kSquaresHaveBand = 0")));
  request.variants = request.transposed = {{1, {1}}, {2, {2}}};
  CHECK((says(request, "kSquare = 32") && says(request, "kTilesAreWhole = 0")));
  request.variants = request.transposed = {{2, {2}}, {3, {3}}};
  CHECK(says(request, "kSquare = 1")); // 64 rows at a rate are no multiple of six
  request = requestOf();
  request.bandedGrain = 64;
  CHECK(
      (says(request, "kSquare = 64") && says(request, "kSquaresHaveBand = 1") && says(request, "kTilesAreWhole = 0")));
  request.qOrigin = QOriginRule::end;
  CHECK(says(request, "kSquare = 1"));
}

TEST_CASE("a block for every key tile of a kv head, with keys in classes where they have a rate") {
  for (const auto &[variants, most] :
       std::vector<std::pair<std::vector<VariantRates>, int64_t>>{{{{1, {1}}}, 6},
                                                                  {{{4, {4}}}, 8},
                                                                  {{{1, {1}}, {3, {2}}}, 6},
                                                                  {{{1, {1}}, {8, {2}}}, 8},
                                                                  {{{4, {1}}, {6, {2}}}, 12}}) {
    KernelRequest request = requestOf();
    request.transposed = variants;
    const LaunchPlan plan = defaultPlan(request);
    const auto geometry = evaluateGeometry(plan.launches[1], someCall());
    REQUIRE(geometry.isOk());
    CHECK(geometry->grid[0] == 2 * 3 * most);
  }
}

TEST_CASE("defaults and fallback configurations are feasible for all that is served, on every architecture") {
  for (const GpuArch &arch : gpuArchs())
    for (int64_t headDim = 8; headDim <= 256; headDim += 8)
      for (int64_t valueDim : {int64_t(8), headDim, int64_t(128), int64_t(256)})
        for (bool hasScores : {false, true}) {
          KernelRequest request = requestOf(headDim);
          request.arch = &arch;
          request.valueDim = valueDim;
          request.hasScores = hasScores;
          CAPTURE(request.str());
          checkTriedConfigs(skeleton(), request, [&](const KernelConfig &config) {
            CHECK(skeleton().planSmem(request, config).totalBytes() <= portableSmemBytes());
          });
        }
}

TEST_CASE("defaults of fp32 are feasible for all that is served, on every architecture") {
  for (const GpuArch &arch : gpuArchs())
    for (int64_t headDim = 8; headDim <= 128; headDim += 8)
      for (int64_t valueDim : {int64_t(8), headDim, int64_t(128)})
        for (Precision precision : {Precision::exact, Precision::tf32}) {
          KernelRequest request = requestOf(headDim);
          request.arch = &arch;
          request.valueDim = valueDim;
          request.hasScores = true;
          request.elements = CallElements(DType::fp32, DType::fp32, precision);
          CAPTURE(request.str());
          checkTriedConfigs(skeleton(), request, [](const KernelConfig &) {});
        }
  KernelRequest tooWide = requestOf(136);
  tooWide.elements = CallElements(DType::fp32);
  CHECK(skeleton().appliesTo(tooWide).message() ==
        "portable_backward: serves head dims that are multiples of 8 up to 128, not 136 of fp32");
}

TEST_CASE("what is not served, and what is infeasible, is said") {
  KernelRequest tooWide = requestOf(264), wideOut = requestOf();
  CHECK(skeleton().appliesTo(tooWide).message() ==
        "portable_backward: serves head dims that are multiples of 8 up to 256, not 264");
  wideOut.elements = CallElements(DType::bf16, DType::fp32);
  CHECK(skeleton().appliesTo(wideOut).message() == "portable_backward: serves out and d_out of the type of q only");
  KernelRequest request = requestOf(128);
  const auto reasonFor = [&](std::initializer_list<std::pair<const char *, int64_t>> changes) {
    KernelConfig config = skeleton().defaultConfig(request);
    for (const auto &[field, value] : changes)
      REQUIRE(config.set(field, value).isOk());
    const auto rejection = skeleton().whyInfeasible(request, config);
    return rejection ? rejection->constraint + ": " + rejection->reason : "";
  };
  CHECK(reasonFor({{"block_n", 96}}) == "tiles: block_n is 96, expected a multiple of 16 keys for each of 4 warps");
  CHECK(reasonFor({{"block_m", 48}}) ==
        "tiles: block_m is 48, expected a multiple of 16 queries, so many times as divide 4 warps");
  CHECK(reasonFor({{"warps", 1}, {"block_n", 16}, {"block_m", 16}}) == "");
  CHECK(reasonFor({{"block_n", 128}}).find("registers: need at least") == 0);
  CHECK(reasonFor({{"block_n", 128}, {"warps", 8}, {"block_m", 64}}) ==
        "portable_smem: need 148480 B, the least of all GPUs is 101376 B");
  CHECK(reasonFor({{"min_blocks", 3}}).find("registers: need at least") == 0);
  request = requestOf(256);
  CHECK(reasonFor({}) == "");
  CHECK(reasonFor({{"warps", 3}}) == "tiles: block_n is 32, expected a multiple of 16 keys for each pair of 3 warps");
  CHECK(reasonFor({{"block_m", 32}}) == "portable_smem: need 102912 B, the least of all GPUs is 101376 B");
}

TEST_CASE("no tile of calls that may lie over ranks has more keys than windows of ranks hold around what is kept") {
  for (const KindBase base : {KindBase::forward, KindBase::backward})
    for (const GpuArch &arch : gpuArchs()) {
      KernelRequest request = requestOf();
      request.kind = {base};
      request.arch = &arch;
      const Result<const Skeleton *> found = chooseSkeleton(request);
      REQUIRE_MESSAGE(found, found.status().message());
      CAPTURE(std::string((*found)->name()));
      const std::vector<ConfigField> &fields = (*found)->fields().list;
      const auto keys =
          std::find_if(fields.begin(), fields.end(), [](const auto &field) { return field.name == "block_n"; });
      REQUIRE(keys != fields.end());
      CHECK(keys->most <= kMostKeysOfTile);
    }
}

TEST_CASE("Hopper's own skeleton comes first, the portable one serves the others") {
  KernelRequest request = requestOf();
  for (const GpuArch &arch : gpuArchs()) {
    request.arch = &arch;
    CHECK((*chooseSkeleton(request))->name() == (arch.features.hasWgmma ? "sm90_backward" : "portable_backward"));
    CHECK(whyPassedOver(request, **chooseSkeleton(request)) == "");
  }
}
