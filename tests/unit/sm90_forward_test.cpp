// The Hopper forward skeleton without a GPU: constraints and their reasons, defaults for every head dim, shared memory
// and constants.
#include "codegen/Config/SmemLayout.h"
#include "codegen/Skeletons/Shared/WarpgroupShapes.h"
#include "codegen/Target/GpuArch.h"
#include "runtime/Core/LaunchPlan.h"
#include "tests/unit/support/Sm90Requests.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <set>

using namespace heddle;
using namespace heddle::test;

TEST_CASE("the skeleton serves Hopper, both half types and every multiple of 8 up to 256") {
  const Skeleton &skeleton = sm90ForwardSkeleton();
  const auto refusal = [&](const KernelRequest &request) { return skeleton.appliesTo(request).message(); };
  CHECK(refusal(requestFor(64, 64)) == "");
  CHECK(refusal(requestFor(60, 64)) == "sm90_forward: serves head dims that are multiples of 8 up to 256, not 60");
  CHECK(refusal(requestFor(64, 264)) == "sm90_forward: serves head dims that are multiples of 8 up to 256, not 264");
  CHECK(refusal(requestFor(64, 64, DType::fp32)) == "");
  CHECK(refusal(tf32RequestFor(64, 64)) == "");
  CHECK(refusal(tf32RequestFor(64, 136)) ==
        "sm90_forward: serves head dims that are multiples of 8 up to 128, not 136 of fp32");
  KernelRequest few = requestFor(64, 64, DType::fp32);
  few.balance.queries = 64;
  CHECK(refusal(few) ==
        "sm90_forward: makes pairs of all keys for exact products, which so few queries do not pay for");
  for (const GpuArch &arch : gpuArchs()) {
    KernelRequest request = requestFor(64, 64);
    request.arch = &arch;
    CHECK(skeleton.appliesTo(request).isOk() == arch.features.hasWgmma);
    CHECK(skeleton.servesArch(arch) == arch.features.hasWgmma);
  }
}

TEST_CASE("the default is feasible for every pair of head dims, type and kind of pattern") {
  const std::vector<std::vector<VariantRates>> patterns = {{VariantRates()}, kLattices};
  for (DType dtype : {DType::bf16, DType::fp16})
    for (const std::vector<VariantRates> &variants : patterns)
      for (int64_t headDim = 8; headDim <= 256; headDim += 8)
        for (int64_t valueDim = 8; valueDim <= 256; valueDim += 8) {
          KernelRequest request = requestFor(headDim, valueDim, dtype);
          request.variants = variants;
          request.balance.hasLongRows = headDim % 16 == 0;
          const auto skeleton = validateConfig(request, defaultFor(request));
          if (!skeleton.isOk())
            FAIL_CHECK(request.str() << ": " << skeleton.status().message());
        }
}

TEST_CASE("the default for tf32 is feasible for every pair of head dims and kind of pattern") {
  for (const std::vector<VariantRates> &variants : {std::vector<VariantRates>(1), kLattices})
    for (int64_t headDim = 8; headDim <= 128; headDim += 8)
      for (int64_t valueDim = 8; valueDim <= 128; valueDim += 8) {
        KernelRequest request = tf32RequestFor(headDim, valueDim);
        request.variants = variants;
        request.balance.hasLongRows = headDim % 16 == 0;
        request.balance.queries = headDim % 24 == 0 ? 64 : 0;
        const auto skeleton = validateConfig(request, defaultFor(request));
        if (!skeleton.isOk())
          FAIL_CHECK(request.str() << ": " << skeleton.status().message());
      }
}

TEST_CASE("the default for exact fp32 is feasible for every pair of head dims and kind of pattern") {
  for (const std::vector<VariantRates> &variants : {std::vector<VariantRates>(1), kLattices})
    for (int64_t headDim = 8; headDim <= 128; headDim += 8)
      for (int64_t valueDim = 8; valueDim <= 128; valueDim += 8) {
        KernelRequest request = requestFor(headDim, valueDim, DType::fp32);
        request.variants = variants;
        request.balance.hasLongRows = headDim % 16 == 0;
        request.hasScores = headDim % 24 == 0;
        request.hasLists = valueDim % 24 == 0;
        const auto skeleton = validateConfig(request, defaultFor(request));
        if (!skeleton.isOk())
          FAIL_CHECK(request.str() << ": " << skeleton.status().message());
      }
}

TEST_CASE("exact fp32 is multiplied as pairs that a launch before makes in the workspace") {
  const KernelRequest request = requestFor(40, 72, DType::fp32);
  const LaunchPlan plan = sm90ForwardSkeleton().planCall(request, defaultFor(request));
  REQUIRE(plan.launches.size() == 2);
  CHECK(plan.validate().isOk());
  CHECK(plan.launches[0].entry == "heddle_pair_rows");
  CHECK(plan.launches[1].entry == "heddle_kernel");
  CHECK(plan.launches[1].tensorMaps.size() == 4);
  for (const TensorMapSpec &map : plan.launches[1].tensorMaps) {
    CHECK(map.source.kind == PointerSource::Kind::region);
    CHECK(!map.isTf32);
  }
  LaunchSymbols symbols;
  symbols[LaunchSymbol::batch] = 2, symbols[LaunchSymbol::heads] = 4, symbols[LaunchSymbol::kvHeads] = 2;
  symbols[LaunchSymbol::seqlenQ] = 256, symbols[LaunchSymbol::seqlenK] = 512, symbols[LaunchSymbol::smCount] = 132;
  const Result<WorkspaceLayout> layout = evaluateWorkspace(plan, symbols);
  REQUIRE(layout.isOk());
  const int64_t queries = 2 * 4 * 256, keys = 2 * 2 * 512;
  const int64_t wanted[] = {queries * 96 * 2, keys * 96 * 2, keys * 256 * 2, queries * 4,
                            keys * 16}; // of 48 and 128 columns
  for (size_t region = 0; region < 5; ++region)
    CHECK(layout->bytes[region] == wanted[region]);
  CHECK(sm90ForwardSkeleton().kernels(request, defaultFor(request)).find("heddle_pair_rows") != std::string::npos);
  const KernelRequest packed = requestFor(40, 72);
  CHECK(sm90ForwardSkeleton().kernels(packed, defaultFor(packed)).find("heddle_pair_rows") == std::string::npos);
}

TEST_CASE("copies of floats round them to tf32, and those of other elements do not") {
  const auto roundedMaps = [](const KernelRequest &request) {
    const LaunchPlan plan = sm90ForwardSkeleton().planCall(request, defaultFor(request));
    const std::vector<TensorMapSpec> &maps = plan.launches.front().tensorMaps;
    return std::count_if(maps.begin(), maps.end(), [](const TensorMapSpec &map) { return map.isTf32; });
  };
  CHECK(roundedMaps(tf32RequestFor(64, 64)) == 3);
  CHECK(roundedMaps(requestFor(64, 64)) == 0);
}

TEST_CASE("long rows are shared in parts by default where parts can be merged, else dealt out one by one") {
  for (int64_t valueDim : {64, 192, 200, 256}) {
    KernelRequest request = requestFor(128, valueDim, DType::bf16);
    request.balance.hasLongRows = true;
    Sm90Config config = defaultFor(request);
    CHECK((config.splitTiles > 0) == (valueDim <= 192));
    CHECK(config.rasterReversed == 0);
    CHECK(config.grid == 3);
    config.splitTiles = 32;
    CHECK(sm90ForwardSkeleton().whyInfeasible(request, config).has_value() == (valueDim > 192));
    request.balance.longRowsAreLast = true;
    CHECK(defaultFor(request).rasterReversed == 1);
  }
}

TEST_CASE("every constraint refuses something, and says why") {
  struct Witness {
    const char *constraint;
    DType dtype;
    void (*spoil)(Sm90Config &);
    const char *reason;
  };
  const DType bf16 = DType::bf16, fp16 = DType::fp16;
  const Witness witnesses[] = {
      {"ranges", bf16, [](Sm90Config &c) { c.stages = 7; }, "stages is 7, expected 1 to 6"},
      {"ranges", bf16, [](Sm90Config &c) { c.blockM = int64_t(1) << 62; }, "block_m is 4611686018427387904"},
      {"query_tile", bf16, [](Sm90Config &c) { c.blockM = 96; },
       "block_m is 96, expected a multiple of 64 rows, one warpgroup for each 64"},
      {"query_tile", bf16, [](Sm90Config &c) { c.warps = 8; },
       "warps is 8, block_m=192 wants 16: block_m / 16 that consume and 4 that produce"},
      {"key_tile", bf16, [](Sm90Config &c) { c.blockN = 40; }, "block_n is 40, expected a multiple of 16"},
      {"threads", bf16, [](Sm90Config &c) { c.blockM = 512, c.warps = 36; },
       "need 1152 threads, sm_90a allows 1024 per block"},
      {"threads", bf16, [](Sm90Config &c) { c.minBlocks = 4, c.blockM = 256, c.warps = 20; },
       "4 blocks of 640 threads, sm_90a allows 2048 threads and 32 blocks per SM"},
      {"smem_blocks", bf16, [](Sm90Config &c) { c.minBlocks = 3; },
       "3 blocks need 350208 B, an SM of sm_90a has 233472 B"},
      {"register_split", bf16, [](Sm90Config &c) { c.minBlocks = 2, c.consumerRegisters = 80; },
       "producer_registers=32 and 3 times consumer_registers=80 make 272, 2 times 512 threads start with 64: 256 "
       "together"},
      {"boxes", bf16, [](Sm90Config &c) { c.blockM = 320, c.warps = 24; },
       "block_m is 320, one copy through a tensor map takes at most 256 rows"},
      {"smem", bf16, [](Sm90Config &c) { c.stages = 6; }, "need 246784 B, sm_90a allows 232448 B"},
      {"register_split", bf16, [](Sm90Config &c) { c.producerRegisters = 28; },
       "producer_registers=28 and consumer_registers=160, expected multiples of 8"},
      {"register_split", bf16, [](Sm90Config &c) { c.producerRegisters = 136; },
       "producer_registers is 136, 512 threads start with 128 and can only shrink"},
      {"register_split", bf16, [](Sm90Config &c) { c.consumerRegisters = 120; },
       "consumer_registers is 120, 512 threads start with 128 and can only grow"},
      {"register_split", bf16, [](Sm90Config &c) { c.producerRegisters = 40; },
       "producer_registers=40 and 3 times consumer_registers=160 make 520, 512 threads start with 128: 512 together"},
      {"registers", bf16, [](Sm90Config &c) { c.blockN = 96; },
       "scores and weights of 96 keys and 128 outputs need at least 166 registers per thread, consumer_registers is "
       "160"},
      {"threshold", fp16, [](Sm90Config &c) { c.rescaleThreshold = 16; },
       "rescale_threshold is 16, weights in fp16 stay finite up to 15"},
      {"anchored", fp16, [](Sm90Config &c) { c.softmax = 1; },
       "anchored weights need the range of fp32, not that of fp16"},
      {"grid", bf16, [](Sm90Config &c) { c.grid = 2; }, "no order has the number 2"},
      {"splits", bf16, [](Sm90Config &c) { c.splitLast = 1, c.grid = 0; },
       "a last round to split is known only where blocks take items at a stride"},
      {"splits", bf16, [](Sm90Config &c) { c.splitLast = 1, c.splitTiles = 64, c.grid = 1; },
       "items are cut for one reason, split_last or split_tiles"},
      {"splits", bf16, [](Sm90Config &c) { c.splitTiles = 64, c.grid = 0; },
       "parts of long items are shared by blocks that stay, which a block for every item does not"},
      {"turns", bf16, [](Sm90Config &c) { c.blockM = 64, c.warps = 8, c.turnTaking = 1, c.consumerRegisters = 240; },
       "turns need at least two consuming warpgroups, block_m=64 has one"},
      {"flush", bf16, [](Sm90Config &c) { c.flushTiles = 4, c.stages = 1; },
       "sums of products of bf16 are fp32, there is nothing to flush"},
      {"flush", DType::e4m3, [](Sm90Config &c) { c.flushTiles = 41; },
       "flush_tiles=41 of 64 keys are 2624, expected at most 2560, of whose sum 3% are cut: flush_tiles=40"},
      {"flush", bf16, [](Sm90Config &c) { c.totals = 1; },
       "sums of products of bf16 are fp32, there is nothing to flush"},
      {"flush", DType::e4m3, [](Sm90Config &c) { c.flushTiles = 0; },
       "flush_tiles=0 leaves sums of long rows to tensor cores, which cut them: expected 1 to 40"},
      {"turned", bf16, [](Sm90Config &c) { c.turnValues = 1; },
       "values are turned over once where they are bytes that lie row by row, keys have no stride, and a call is"},
      {"chained", bf16, [](Sm90Config &c) { c.chainedMib = 32; },
       "the pattern is computed in one pass: its passes are not known"},
      {"ranges", bf16, [](Sm90Config &c) { c.documentTiles = 2; }, "document_tiles is 2, expected 0 to 1"},
      {"document_tiles", bf16, [](Sm90Config &c) { c.documentTiles = 1; },
       "tiles cannot begin where documents do: the documents of the pattern are not known"},
  };
  std::set<std::string> refused;
  for (const Witness &witness : witnesses) {
    CAPTURE(witness.reason);
    const KernelRequest request = requestFor(128, 128, witness.dtype);
    Sm90Config config = defaultFor(request);
    REQUIRE(config.blockM == 192);
    config.producerRegisters = 32;
    config.blockN = 64;
    config.consumerRegisters = 160;
    config.stages = 2;
    config.queryStages = 1;
    config.turnTaking = 0;
    REQUIRE(!sm90ForwardSkeleton().whyInfeasible(request, config));
    witness.spoil(config);
    const auto rejection = sm90ForwardSkeleton().whyInfeasible(request, config);
    REQUIRE(rejection.has_value());
    CHECK(rejection->constraint == witness.constraint);
    CHECK_MESSAGE(rejection->reason.find(witness.reason) == 0, rejection->reason);
    refused.insert(rejection->constraint);
  }
  CHECK(refused.size() == sm90ForwardSkeleton().constraints().size());
}

TEST_CASE("changing one knob leaves the fields that follow from it right") {
  const KernelRequest request = requestFor(64, 64);
  const Skeleton &skeleton = sm90ForwardSkeleton();
  struct Split {
    int64_t blockM, producer, warps, consumer, minBlocks = 1;
  };
  for (const Split &split :
       {Split{64, 24, 8, 240}, Split{128, 24, 12, 240}, Split{128, 56, 12, 224}, Split{192, 32, 16, 160},
        Split{256, 32, 20, 112}, Split{256, 40, 20, 104}, Split{64, 24, 8, 232, 2}, Split{128, 32, 12, 104, 2}}) {
    Sm90Config config = skeleton.defaultConfig(request);
    config.blockM = split.blockM;
    config.blockN = 48;
    config.stages = 2;
    config.minBlocks = split.minBlocks;
    config.producerRegisters = split.producer;
    config.queryStages = 1;
    config.turnTaking = 0;
    config = skeleton.derived(request, config);
    CHECK(config.warps == split.warps);
    CHECK(config.consumerRegisters == split.consumer);
    CHECK_FALSE(skeleton.whyInfeasible(request, config));
  }
  Sm90Config wild;
  for (int64_t value : {int64_t(-1), int64_t(0), int64_t(1), int64_t(1) << 62}) {
    wild.blockM = wild.blockN = wild.producerRegisters = value;
    wild = skeleton.derived(request, wild);
    CHECK(skeleton.whyInfeasible(request, wild).has_value());
  }
}

TEST_CASE("every value of every knob is feasible with some head dim") {
  const Skeleton &skeleton = sm90ForwardSkeleton();
  for (const Knob &knob : skeleton.knobs(requestFor(64, 64)))
    for (int64_t value : knob.values) {
      bool isFeasible = false;
      for (int64_t blockM : {64, 128, 192, 256}) {
        const KernelRequest request = requestFor(64, 64);
        Sm90Config config = defaultFor(request);
        config.blockM = blockM;
        config.queryStages = 1;
        config.turnTaking = 0;
        config.grid = 1;
        KernelConfig changed = config;
        REQUIRE(changed.set(knob.name, value).isOk());
        isFeasible |= !skeleton.whyInfeasible(request, skeleton.derived(request, changed));
      }
      CHECK_MESSAGE(isFeasible, knob.name << "=" << value);
    }
}

TEST_CASE("tiles lie at multiples of 1024 bytes, each large enough") {
  for (int64_t headDim : {8, 64, 72, 128, 200, 256})
    for (int64_t valueDim : {8, 64, 136, 256}) {
      const KernelRequest request = requestFor(headDim, valueDim);
      const Sm90Config config = defaultFor(request);
      const SmemLayout layout = sm90ForwardSkeleton().planSmem(request, config);
      const auto columns = [](int64_t dim) { return (dim + 63) / 64; };
      REQUIRE(layout.regions().size() == 4);
      CHECK(layout.find("barriers")->offsetBytes == 0);
      CHECK(layout.find("barriers")->bytes() == 1024);
      CHECK(layout.find("q")->stageBytes == columns(headDim) * config.blockM * 128);
      CHECK(layout.find("k")->stageBytes == columns(headDim) * config.blockN * 128);
      CHECK(layout.find("v")->stageBytes == columns(valueDim) * config.blockN * 128);
      CHECK(layout.find("k")->stages == config.stages);
      int64_t end = 0;
      for (const SmemRegion &region : layout.regions()) {
        CHECK(region.offsetBytes == end);
        CHECK(region.offsetBytes % 1024 == 0);
        CHECK(region.stageBytes % 1024 == 0);
        end = region.endBytes();
      }
      CHECK(sm90ForwardSkeleton().planLaunch(request, config).launches.front().sharedBytes == LaunchExpr(end));
    }
}

TEST_CASE("the traits hold the rates and where tiles lie") {
  KernelRequest request = requestFor(192, 128);
  request.variants = {{1, {1}}, {2, {2}}, {6, {2}}};
  const std::string traits = sm90ForwardSkeleton().traits(request, defaultFor(request));
  for (const char *line :
       {"kHeadDim = 192;", "kValueDim = 128;", "kQueryRateCount = 3;", "kKeyRateCount = 2;", "kMapsPerRate = 2;",
        "kQueryRates[3] = {1, 2, 6};", "kKeyRates[2] = {1, 2};", "kSmemBarriers = 0;", "kSmemQ = 1024;",
        "kGrid = ", "kSoftmax = 0;", "kQueryStages = ", "kTurnTaking = ", "kConsumerRegisters = ", "kRasterMib = "})
    CHECK_MESSAGE(traits.find(std::string("  static constexpr int ") + line) != std::string::npos, line);
}

TEST_CASE("the source lists the shapes of products that the kernel uses, each size by its own registers") {
  KernelRequest request = requestFor(192, 128);
  const Sm90Config config = defaultFor(request);
  const std::string shapes = warpgroupShapes({config.blockN, 128});
  CHECK(sm90ForwardSkeleton().traits(request, config).find("};\n" + shapes) != std::string::npos);
  CHECK(warpgroupShapes({8}) ==
        "#define HEDDLE_WARPGROUP_SHAPES(SHAPE) \\\n  SHAPE(8, \"%0, %1, %2, %3\", \"%4\", \"%5\", \"%6\", \"%7\", "
        "\"%8\", \"%9\", \"+f\"(d[0][0]), \"+f\"(d[0][1]), \"+f\"(d[0][2]), \"+f\"(d[0][3]))\n");
  const std::string largest = warpgroupShapes({256});
  for (const char *part : {"SHAPE(256, \"%0, ", ", %127\", \"%128\", ", "\"%133\", \"+f\"(d[0][0])", "(d[31][3]))\n"})
    CHECK_MESSAGE(largest.find(part) != std::string::npos, part);
}

TEST_CASE("a chain of scores has no anchored softmax, and says why") {
  const Skeleton &skeleton = sm90ForwardSkeleton();
  KernelRequest request = requestFor(64, 64);
  Sm90Config anchored = skeleton.defaultConfig(request);
  CHECK(anchored.softmax == 1);
  request.hasScores = true;
  auto refusal = skeleton.whyInfeasible(request, anchored);
  REQUIRE(refusal);
  CHECK(std::string(refusal->constraint) == "anchored");
  CHECK_FALSE(skeleton.whyInfeasible(request, skeleton.defaultConfig(request)));
}

TEST_CASE("tiles are whole, and key 0 stands at the first of one, where block_n divides the grain") {
  const Skeleton &skeleton = sm90ForwardSkeleton();
  KernelRequest request = requestFor(64, 64);
  Sm90Config config = skeleton.defaultConfig(request);
  config.blockN = 64;
  auto isWhole = [&] { return skeleton.traits(request, config).find("kTilesAreWhole = 1") != std::string::npos; };
  CHECK_FALSE(isWhole());
  CHECK(skeleton.planLaunch(request, config).serves.keyOriginStep == 1);
  request.grain = 128;
  CHECK(isWhole());
  CHECK(skeleton.planLaunch(request, config).serves.keyOriginStep == 64);
  request.variants = {{2, {2}}, {1, {1}}};
  CHECK(skeleton.planLaunch(request, config).serves.keyOriginStep == 128);
  config.blockN = 48;
  CHECK_FALSE(isWhole());
  config.blockN = 64;
  request.grain = 32; // consumers own 64 rows
  CHECK_FALSE(isWhole());
  request.grain = 128;
  request.qOrigin = QOriginRule::given;
  CHECK_FALSE(isWhole());
}

TEST_CASE("what tiles keep is what lies in the band where block_n divides the banded grain") {
  const Skeleton &skeleton = sm90ForwardSkeleton();
  KernelRequest request = requestFor(64, 64);
  request.bandedGrain = 128;
  Sm90Config config = skeleton.defaultConfig(request);
  config.blockN = 64;
  auto says = [&](const char *line) { return skeleton.traits(request, config).find(line) != std::string::npos; };
  CHECK(says("kTilesAreWhole = 2"));
  CHECK(skeleton.planLaunch(request, config).serves.keyOriginStep == 64);
  request.grain = 64;
  CHECK(says("kTilesAreWhole = 1"));
  request.grain = 1;
  config.blockN = 48;
  CHECK(says("kTilesAreWhole = 0"));
  config.blockN = 64;
  request.qOrigin = QOriginRule::end;
  CHECK(says("kTilesAreWhole = 0"));
}

TEST_CASE("calls of few queries get few rows, and their keys are cut in parts where these merge") {
  for (int64_t dim : {64, 128, 192, 256})
    for (int64_t queries : {0, 1, 64, 65, 200, 256, 257, 100000}) {
      CAPTURE(dim);
      CAPTURE(queries);
      KernelRequest request = requestFor(dim, dim);
      request.balance.hasLongRows = true;
      const int64_t usual = defaultFor(request).blockM;
      request.balance.queries = queries;
      const Sm90Config config = defaultFor(request);
      CHECK_FALSE(sm90ForwardSkeleton().whyInfeasible(request, config));
      const bool areFew = queries > 0 && queries <= 256;
      CHECK(config.splitLast == (areFew && dim <= 192));
      CHECK((config.splitTiles > 0) == (!areFew && dim <= 192));
      CHECK(config.blockM == (queries > 0 ? std::min(usual, (queries + 63) / 64 * 64) : usual));
      if (config.splitLast) // blocks beyond the items have parts to compute
        CHECK(sm90ForwardSkeleton().planLaunch(request, config).launches.front().grid[0].str().find("64") !=
              std::string::npos);
    }
}

TEST_CASE("the warp that goes through lists has the registers for it") {
  for (DType dtype : {DType::bf16, DType::e4m3})
    for (int64_t dim : {64, 128}) {
      KernelRequest request = requestFor(dim, dim);
      request.elements = CallElements(dtype);
      request.hasLists = true;
      const Sm90Config config = defaultFor(request);
      CHECK_FALSE(sm90ForwardSkeleton().whyInfeasible(request, config));
      const bool hasFourConsumers = config.blockM == 256; // of which all take less, and nothing spilled
      CHECK(config.producerRegisters == (hasFourConsumers ? 32 : 56));
    }
}

TEST_CASE("only patterns of lists have memory for what the planning warp notes of them, behind the tiles") {
  const Skeleton &skeleton = sm90ForwardSkeleton();
  KernelRequest request = requestFor(64, 64);
  const Sm90Config config = skeleton.defaultConfig(request);
  CHECK(skeleton.traits(request, config).find("kSmemCells") == std::string::npos);
  const int64_t tiles = skeleton.planSmem(request, config).totalBytes();
  request.hasLists = true;
  const SmemLayout layout = skeleton.planSmem(request, config);
  REQUIRE(layout.find("cells") != nullptr);
  CHECK(layout.find("cells")->offsetBytes == tiles);
  CHECK(skeleton.traits(request, config).find("kSmemCells = " + std::to_string(tiles)) != std::string::npos);
}
