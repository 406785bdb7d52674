//===- document_tiles_test.cpp - the choice of documents' own query tiles -----===//
// Both skeletons: when there is the knob, what forbids it and the sentence that says so, text round trips, and grids
// that the numbers of rows and of documents give, up to what the recording driver sees of a call.
#include "codegen/Config/DocumentTiles.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Skeletons/Forward/Sm90Config.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Shared/ConfigSpace.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Target/GpuArch.h"
#include "device_fixture.h"

#include <algorithm>

using namespace heddle;

namespace {

/// Two tensors, of which the first one says how many documents there are.
KernelRequest documentRequest() {
  KernelRequest request;
  request.arch = *findGpuArch("sm_90a");
  request.headDim = request.valueDim = 64;
  request.paramCount = 2;
  request.operands = {{0, true}, {1, true}};
  request.hasDocuments = true;
  request.documents = max(LaunchExpr::param(0) - 1, 1);
  return request;
}

KernelConfig ownTiles(const Skeleton &skeleton, const KernelRequest &request) {
  KernelConfig config = skeleton.defaultConfig(request);
  REQUIRE(config.set("document_tiles", 1).isOk());
  return config;
}

bool hasKnob(const Skeleton &skeleton, const KernelRequest &request) {
  const std::vector<Knob> knobs = skeleton.knobs(request);
  return std::any_of(knobs.begin(), knobs.end(), [](const Knob &knob) { return knob.name == "document_tiles"; });
}

std::string refusal(const Skeleton &skeleton, const KernelRequest &request) {
  const auto rejection = skeleton.whyInfeasible(request, ownTiles(skeleton, request));
  return rejection ? rejection->constraint + ": " + rejection->reason : "";
}

struct Call {
  int64_t rows, documents;
};

int64_t gridOf(const LaunchPlan &plan, const Call &call) {
  const int64_t params[] = {call.documents + 1, call.documents};
  LaunchSymbols symbols;
  symbols[LaunchSymbol::batch] = 2;
  symbols[LaunchSymbol::heads] = symbols[LaunchSymbol::kvHeads] = 3;
  symbols[LaunchSymbol::seqlenQ] = symbols[LaunchSymbol::seqlenK] = call.rows;
  symbols[LaunchSymbol::headDim] = symbols[LaunchSymbol::valueDim] = 64;
  symbols[LaunchSymbol::smCount] = 132;
  symbols.params = params;
  symbols.paramCount = 2;
  const auto geometry = evaluateGeometry(plan.launches.front(), symbols);
  REQUIRE_MESSAGE(geometry.isOk(), geometry.status().message());
  return geometry->grid[0];
}

} // namespace

TEST_CASE("the knob is there where rows lie in documents, packed is the default, and configurations round-trip") {
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    CAPTURE(skeleton->name());
    KernelRequest request = documentRequest();
    CHECK(hasKnob(*skeleton, request));
    CHECK(skeleton->defaultConfig(request).valueOf("document_tiles") == 0);
    const KernelConfig config = ownTiles(*skeleton, request);
    CHECK(refusal(*skeleton, request) == "");
    CHECK(validateConfig(request, config).isOk());
    CHECK(readConfig(config.str())->valueOf("document_tiles") == 1);
    CHECK(config != skeleton->defaultConfig(request));
    CHECK(config.json().find("\"document_tiles\":1") != std::string::npos);
    CHECK(skeleton->traits(request, config).find("kDocumentTiles = 1;") != std::string::npos);
    CHECK(skeleton->traits(request, skeleton->defaultConfig(request)).find("kDocumentTiles = 0;") != std::string::npos);
    const ConfigSpace space(*skeleton, request);
    int64_t own = 0;
    space.forEach([&](const ConfigSpace::Point &point, const Rejection *rejection) {
      own += !rejection && space.configAt(point).valueOf("document_tiles") == 1;
    });
    CHECK(own > 0);
    request.hasDocuments = false;
    CHECK_FALSE(hasKnob(*skeleton, request));
  }
}

TEST_CASE("what forbids tiles of documents is a sentence") {
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    CAPTURE(skeleton->name());
    KernelRequest request = documentRequest();
    request.hasDocuments = false;
    CHECK(refusal(*skeleton, request) ==
          "document_tiles: tiles cannot begin where documents do: the documents of the pattern are not known");
    request.whyNoDocuments = "its rows do not lie in documents";
    CHECK(refusal(*skeleton, request) ==
          "document_tiles: tiles cannot begin where documents do: its rows do not lie in documents");
    request = documentRequest();
    request.variants = {{1, {1}}, {4, {4}}};
    CHECK_FALSE(hasKnob(*skeleton, request));
    CHECK(refusal(*skeleton, request) ==
          "document_tiles: a document's tiles are of neighbouring rows, and rows lie in 4 classes");
    request.variants = {{1, {1}}};
    request.passes = {{{{1, {1}}}, 1}, {{{1, {1}}}, 1}};
    CHECK(refusal(*skeleton, request) == "");
    KernelConfig chained = ownTiles(*skeleton, request);
    REQUIRE(chained.set("chained_mib", 32).isOk());
    const auto rejection = skeleton->whyInfeasible(request, chained);
    REQUIRE(rejection);
    CHECK(rejection->constraint == "document_tiles");
    CHECK(rejection->reason == "rounds of passes begin where tiles of all rows do, not where documents begin");
  }
}

TEST_CASE("a number of documents from arguments that there are not is refused") {
  KernelRequest request = documentRequest();
  CHECK(request.validate().isOk());
  request.documents = LaunchExpr::param(2);
  CHECK(request.validate().message() == "kernel request: expected a number of documents from 2 arguments, got param2");
}

TEST_CASE("grids have an item for each document beside those of full tiles") {
  const KernelRequest request = documentRequest();
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    CAPTURE(skeleton->name());
    KernelConfig packed = skeleton->defaultConfig(request);
    for (const char *field : {"grid", "split_last", "split_tiles"})
      if (packed.get(field))
        REQUIRE(packed.set(field, 0).isOk());
    KernelConfig own = packed;
    REQUIRE(own.set("document_tiles", 1).isOk());
    const int64_t blockM = own.valueOf("block_m");
    REQUIRE_FALSE(skeleton->whyInfeasible(request, own));
    const LaunchPlan plan = skeleton->planLaunch(request, own), before = skeleton->planLaunch(request, packed);
    CHECK(plan.validate().isOk());
    const auto parsed = LaunchPlan::parse(plan.str());
    REQUIRE(parsed.isOk());
    for (const Call &call : {Call{1, 1}, {1000, 1}, {1000, 7}, {128, 1000}, {32768, 200}}) {
      CHECK(gridOf(*parsed, call) == 6 * (call.rows / blockM + call.documents));
      CHECK(gridOf(before, call) == 6 * ((call.rows + blockM - 1) / blockM));
    }
    CHECK(gridOf(plan, {1000, 0}) == 6 * (1000 / blockM + 1)); // as the kernel counts
  }
}

TEST_CASE("persistent blocks stay as many with tiles of documents") {
  const Skeleton &skeleton = sm90ForwardSkeleton();
  const KernelRequest request = documentRequest();
  Sm90Config config = ownTiles(skeleton, request);
  config.softmax = config.splitTiles = 0;
  for (int64_t grid : {1, 2, 3}) {
    config.grid = grid;
    CHECK(gridOf(skeleton.planLaunch(request, config), {1000, 7}) ==
          std::min<int64_t>(132 * config.minBlocks, 6 * (1000 / config.blockM + 7)));
  }
}

TEST_CASE("a call gives its documents by the length of a tensor, and no grid is guessed without it") {
  test::startFake();
  KernelRequest request = documentRequest();
  request.valueDim = 128;
  const Skeleton &skeleton = portableForwardSkeleton();
  const KernelConfig config = ownTiles(skeleton, request);
  KernelRecord record = test::forwardRecord("documents");
  record.plan = skeleton.planLaunch(request, config).str();
  Device device = test::require(Device::open(0));
  Kernel kernel = test::require(Kernel::load(device, record));
  test::ForwardCall call; // 2 batch elements, 8 heads, 1000 rows
  std::vector<heddle_operand> operands = {{0, HEDDLE_OPERAND_INT, {}},
                                          {1, HEDDLE_OPERAND_INT, {}},
                                          {0, HEDDLE_OPERAND_POINTER, {}},
                                          {1, HEDDLE_OPERAND_POINTER, {}}};
  operands[1].value.i64 = 1;
  operands[2].value.ptr = operands[3].value.ptr = reinterpret_cast<void *>(0x60000);
  call.args.operands = operands.data();
  call.args.operand_count = operands.size();
  for (int64_t documents : {1, 7, 500}) {
    operands[0].value.i64 = documents + 1;
    fake::fakeCudaReset();
    test::require(test::require(kernel.prepare(call.args)).launch(nullptr));
    int count = 0;
    const auto *launches = fake::fakeCudaLaunches(&count);
    REQUIRE(count == 1);
    CHECK(launches[0].grid[0] == 2 * 8 * (1000 / config.valueOf("block_m") + documents));
  }
  operands.erase(operands.begin());
  call.args.operands = operands.data();
  call.args.operand_count = operands.size();
  CHECK(kernel.prepare(call.args).status().message().find("run-time size number 0 is missing") != std::string::npos);
}

TEST_CASE("tiles that begin anywhere are not whole") {
  for (const Skeleton *skeleton : skeletonsOf(Kind())) {
    KernelRequest request = documentRequest();
    request.grain = 1024;
    KernelConfig config = skeleton->defaultConfig(request);
    for (const char *field : {"block_n", "chunk_n"})
      if (config.get(field))
        REQUIRE(config.set(field, 64).isOk());
    CHECK(skeleton->traits(request, config).find("kTilesAreWhole = 1") != std::string::npos);
    REQUIRE(config.set("document_tiles", 1).isOk());
    CHECK(skeleton->traits(request, config).find("kTilesAreWhole = 0") != std::string::npos);
    CHECK(skeleton->planLaunch(request, config).serves.keyOriginStep == 1);
  }
}
