// The Hopper forward skeleton for bytes, without a GPU: defaults, shared memory, what lies in the workspace.
#include "codegen/Config/SmemLayout.h"
#include "codegen/Target/GpuArch.h"
#include "runtime/Core/LaunchPlan.h"
#include "tests/unit/support/Sm90Requests.h"

#include <doctest/doctest.h>
#include <algorithm>

using namespace heddle;
using namespace heddle::test;

TEST_CASE("values of bytes that many rows keep are turned over once, into the workspace") {
  KernelRequest request = requestFor(128, 48, DType::e4m3);
  request.balance.hasManyTiles = true;
  const Sm90Config config = defaultFor(request);
  REQUIRE(config.turnValues == 1);
  const LaunchPlan plan = sm90ForwardSkeleton().planCall(request, config);
  CHECK(plan.validate().isOk());
  REQUIRE(plan.launches.size() == 1);
  REQUIRE(plan.launches[0].clears.size() == 2); // of the schedule, and of marks of what is there
  const ClearSpec &marks = plan.launches[0].clears[0];
  const TensorMapSpec &values = plan.launches[0].tensorMaps.back();
  CHECK(values.source.kind == PointerSource::Kind::region);
  LaunchSymbols symbols;
  symbols[LaunchSymbol::batch] = 2, symbols[LaunchSymbol::heads] = 4, symbols[LaunchSymbol::kvHeads] = 2;
  symbols[LaunchSymbol::seqlenQ] = 256, symbols[LaunchSymbol::smCount] = 132;
  for (const auto &[keys, pitch] : {std::pair<int64_t, int64_t>{0, 16}, {1, 16}, {16, 16}, {129, 144}}) {
    symbols[LaunchSymbol::seqlenK] = keys;
    const Result<WorkspaceLayout> layout = evaluateWorkspace(plan, symbols);
    REQUIRE(layout.isOk());
    CHECK(layout->bytes[size_t(values.source.index)] == 2 * 2 * 48 * pitch);
    CHECK(*values.strideBytes[0].evaluate(symbols) == pitch);
    const int64_t words = sm90::kFirstMark + 2 * 2 * (keys > 0);
    CHECK(*marks.words.evaluate(symbols) == words);
    CHECK(layout->bytes[size_t(marks.target.index)] == 4 * words);
  }
  const auto refuses = [&](const KernelRequest &other) {
    return sm90ForwardSkeleton().whyInfeasible(other, config).has_value();
  };
  CHECK(!refuses(request));
  KernelRequest keyMajor = request, strided = request;
  keyMajor.kind.hasKeyMajorValues = true, strided.variants = kLattices;
  CHECK(refuses(keyMajor));
  CHECK(refuses(strided));
  CHECK(refuses(requestFor(128, 48)));
  request.balance.hasManyTiles = false; // few rows keep each key, or nobody knows
  CHECK(defaultFor(request).turnValues == 0);
}

TEST_CASE("values are turned over once for calls of 8k queries and of any number, and not for fewer") {
  KernelRequest request = requestFor(128, 128, DType::e4m3);
  request.balance.hasManyTiles = true;
  for (const auto &call : {std::pair<int64_t, int64_t>(0, 1), {64, 0}, {512, 0}, {8191, 0}, {8192, 1}, {1 << 20, 1}}) {
    CAPTURE(call.first);
    const auto &[queries, isBefore] = call;
    request.balance.queries = queries;
    CHECK(defaultFor(request).turnValues == isBefore);
  }
}

TEST_CASE("values of small heads are turned over once where all rows keep as many keys") {
  for (bool areEqual : {false, true}) {
    KernelRequest request = requestFor(64, 64, DType::e4m3);
    request.balance.hasManyTiles = true;
    request.balance.hasEqualTiles = areEqual;
    CHECK(defaultFor(request).turnValues == areEqual);
    CHECK_FALSE(sm90ForwardSkeleton().whyInfeasible(request, defaultFor(request)));
  }
}

TEST_CASE("values of e4m3 lie twice, in a ring with a slot less, and totals behind them") {
  const KernelRequest request = requestFor(128, 128, DType::e4m3);
  const Sm90Config config = defaultFor(request);
  const SmemLayout layout = sm90ForwardSkeleton().planSmem(request, config);
  REQUIRE(layout.find("totals"));
  CHECK(layout.find("v")->stages == config.stages - 1);
  CHECK(layout.find("v")->stageBytes == (128 + 8) * 128);
  CHECK(layout.find("raw")->bytes() == 2 * config.blockN * 128);
  CHECK(layout.find("totals")->bytes() == config.blockM * (128 + 8) * 4);
  CHECK(layout.totalBytes() <= request.arch->smemPerBlockBytes);
}

TEST_CASE("e4m3: calls whose keys are cut, as they have few queries, move row_max with every maximum") {
  for (int64_t queries : {0, 1, 256, 257}) {
    KernelRequest request = requestFor(128, 128);
    request.elements = CallElements(DType::e4m3);
    request.balance.queries = queries;
    const Sm90Config config = defaultFor(request);
    CHECK_FALSE(sm90ForwardSkeleton().whyInfeasible(request, config));
    CHECK((config.rescaleThreshold == 0) == (queries > 0 && queries <= 256));
    CHECK((config.softmax == sm90::kSoftmaxOnline || queries == 0 || queries > 256));
  }
}

TEST_CASE("e4m3: tiles of any size go to totals after the same keys; short rows come from a counter, with totals in "
          "the workspace") {
  for (int64_t dim : {64, 96, 128, 192, 256})
    for (bool hasShortRows : {false, true}) {
      KernelRequest request = requestFor(dim, dim, DType::e4m3);
      request.balance.hasEqualTiles = request.balance.hasFewTiles = hasShortRows;
      const Sm90Config config = defaultFor(request);
      CHECK_FALSE(sm90ForwardSkeleton().whyInfeasible(request, config));
      CHECK(config.flushTiles * config.blockN <= 2304);
      CHECK((config.flushTiles + 1) * config.blockN > 2304);
      if (hasShortRows && (dim == 96 || dim == 128)) {
        CHECK(config.grid == sm90::kGridDynamic);
        CHECK(config.turnTaking == 0);
        request.variants = kLattices;
        const Sm90Config ofLattices = defaultFor(request);
        CHECK_FALSE(sm90ForwardSkeleton().whyInfeasible(request, ofLattices));
        CHECK(ofLattices.turnTaking == 0);
        CHECK(ofLattices.stages == 4);
      }
      CHECK(config.totals == (hasShortRows && (dim == 96 || dim == 128)));
      CHECK((sm90ForwardSkeleton().planSmem(request, config).find("totals") != nullptr) == !config.totals);
      const LaunchPlan plan = sm90ForwardSkeleton().planCall(request, config);
      CHECK(std::count_if(plan.regions.begin(), plan.regions.end(),
                          [](const WorkspaceRegion &region) { return region.name == "totals"; }) == config.totals);
    }
}

TEST_CASE("e4m3: heads lie beside each other where query tiles keep few neighbouring keys") {
  for (int64_t dim : {64, 128})
    for (bool hasShortRows : {false, true})
      for (bool hasDocuments : {false, true})
        for (bool areLattices : {false, true}) {
          KernelRequest request = requestFor(dim, dim, DType::e4m3);
          request.balance.hasEqualTiles = request.balance.hasFewTiles = hasShortRows;
          request.hasDocuments = hasDocuments;
          if (areLattices)
            request.variants = kLattices;
          const bool areNeighbours = hasDocuments || (hasShortRows && dim == 128 && !areLattices);
          CHECK(defaultFor(request).rasterMib == (areNeighbours ? 4096 : 16));
          request.elements = CallElements(DType::bf16);
          CHECK(defaultFor(request).rasterMib == 16);
        }
}

TEST_CASE("e4m3: no search trades what small weights are worth for time") {
  KernelRequest request = requestFor(128, 128, DType::e4m3);
  for (const Knob &knob : sm90ForwardSkeleton().knobs(request))
    if (knob.name == "rescale_threshold")
      CHECK(knob.values == std::vector<int64_t>{0, defaultFor(request).rescaleThreshold});
}
