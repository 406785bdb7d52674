// The Hopper forward skeleton without a GPU: constraints and their reasons, defaults for every head dim, the launch
// plan against the device's parameter block, and tensor maps that name exactly the rows of each residue class.
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Config/TensorMapLaunch.h"
#include "codegen/Skeletons/Registry.h"
#include "codegen/Target/GpuArch.h"

#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>
#include <map>
#include <random>
#include <set>

using namespace heddle;

namespace {

const std::vector<VariantRates> kLattices = {{1, {1, 1}}, {4, {1, 4}}};

KernelRequest requestFor(int64_t headDim, int64_t valueDim, DType dtype = DType::bf16) {
  KernelRequest request;
  request.arch = *findGpuArch("sm_90a");
  request.headDim = headDim;
  request.valueDim = valueDim;
  request.dtype = dtype;
  return request;
}

KernelConfig defaultFor(const KernelRequest &request) { return sm90ForwardSkeleton().defaultConfig(request); }

// `KernelParams` of sm90_params.cuh for two run-time sizes and two rates of keys and queries.
struct alignas(64) HostMap {
  char bytes[128];
};

struct HostParams {
  HostMap maps[12];
  void *out;
  float *lse;
  const float *carryOut;
  const float *carryLse;
  uint32_t *workspace;
  int64_t outStride[3];
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t items;
  int32_t raster;
  int32_t param[2];
};

LaunchSymbols symbolsFor(int64_t seqlen) {
  LaunchSymbols symbols;
  symbols[LaunchSymbol::batch] = 2;
  symbols[LaunchSymbol::heads] = 6;
  symbols[LaunchSymbol::kvHeads] = 3;
  symbols[LaunchSymbol::seqlenQ] = symbols[LaunchSymbol::seqlenK] = seqlen;
  symbols[LaunchSymbol::smCount] = 132;
  const int64_t rowStride = 6 * 64, heads = 64;
  for (LaunchSymbol first : {LaunchSymbol::qStrideBatch, LaunchSymbol::kStrideBatch, LaunchSymbol::vStrideBatch}) {
    symbols.values[int(first)] = seqlen * rowStride;
    symbols.values[int(first) + 1] = rowStride;
    symbols.values[int(first) + 2] = heads;
  }
  return symbols;
}

int64_t valueOf(const LaunchExpr &expr, const LaunchSymbols &symbols) {
  const auto value = expr.evaluate(symbols);
  REQUIRE_MESSAGE(value.isOk(), value.status().message());
  return *value;
}

// Rows of the sequence that coordinates (row number, residue) of a map read; the rest is zeros.
std::set<int64_t> rowsOf(const TensorMapSpec &map, int64_t residue, const LaunchSymbols &symbols) {
  std::set<int64_t> rows;
  const int64_t rowBytes = 2 * symbols[LaunchSymbol::kStrideRow];
  if (residue >= valueOf(map.dims[2], symbols))
    return rows;
  for (int64_t number = 0; number < valueOf(map.dims[1], symbols); ++number) {
    const int64_t at = number * valueOf(map.strideBytes[0], symbols) + residue * valueOf(map.strideBytes[1], symbols);
    rows.insert(at % rowBytes == 0 ? at / rowBytes : -1);
  }
  return rows;
}

} // namespace

TEST_CASE("the skeleton serves Hopper, both half types and every multiple of 8 up to 256") {
  const Skeleton &skeleton = sm90ForwardSkeleton();
  const auto refusal = [&](const KernelRequest &request) { return skeleton.appliesTo(request).message(); };
  CHECK(refusal(requestFor(64, 64)) == "");
  CHECK(refusal(requestFor(60, 64)) == "sm90_forward: serves head dims that are multiples of 8 up to 256, not 60");
  CHECK(refusal(requestFor(64, 264)) == "sm90_forward: serves head dims that are multiples of 8 up to 256, not 264");
  CHECK(refusal(requestFor(64, 64, DType::fp32)) == "sm90_forward: serves bf16 and fp16, not fp32");
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
          const auto skeleton = validateConfig(request, defaultFor(request));
          if (!skeleton.isOk())
            FAIL_CHECK(request.str() << ": " << skeleton.status().message());
        }
}

TEST_CASE("every constraint refuses something, and says why") {
  struct Witness {
    const char *constraint;
    DType dtype;
    void (*spoil)(KernelConfig &);
    const char *reason;
  };
  const DType bf16 = DType::bf16, fp16 = DType::fp16;
  const Witness witnesses[] = {
      {"ranges", bf16, [](KernelConfig &c) { c.stages = 7; }, "stages is 7, expected 1 to 6"},
      {"ranges", bf16, [](KernelConfig &c) { c.overlapScores = 0; }, "overlap_scores is 0, expected 1"},
      {"ranges", bf16, [](KernelConfig &c) { c.rasterHeads = 8; }, "raster_heads is 8, expected 0"},
      {"ranges", bf16, [](KernelConfig &c) { c.blockM = int64_t(1) << 62; }, "block_m is 4611686018427387904"},
      {"query_tile", bf16, [](KernelConfig &c) { c.blockM = 96; },
       "block_m is 96, expected a multiple of 64 rows, one warpgroup for each 64"},
      {"query_tile", bf16, [](KernelConfig &c) { c.warps = 8; },
       "warps is 8, block_m=192 wants 16: block_m / 16 that consume and 4 that produce"},
      {"key_tile", bf16, [](KernelConfig &c) { c.blockN = 40; }, "block_n is 40, expected a multiple of 16"},
      {"key_tile", bf16, [](KernelConfig &c) { c.chunkN = 16; }, "chunk_n is 16, expected block_n=64"},
      {"threads", bf16, [](KernelConfig &c) { c.blockM = 512, c.warps = 36; },
       "need 1152 threads, sm_90a allows 1024 per block"},
      {"boxes", bf16, [](KernelConfig &c) { c.blockM = 320, c.warps = 24; },
       "block_m is 320, one copy through a tensor map takes at most 256 rows"},
      {"smem", bf16, [](KernelConfig &c) { c.stages = 6; }, "need 246784 B, sm_90a allows 232448 B"},
      {"register_split", bf16, [](KernelConfig &c) { c.producerRegisters = 28; },
       "producer_registers=28 and consumer_registers=160, expected multiples of 8"},
      {"register_split", bf16, [](KernelConfig &c) { c.producerRegisters = 136; },
       "producer_registers is 136, 512 threads start with 128 and can only shrink"},
      {"register_split", bf16, [](KernelConfig &c) { c.consumerRegisters = 120; },
       "consumer_registers is 120, 512 threads start with 128 and can only grow"},
      {"register_split", bf16, [](KernelConfig &c) { c.producerRegisters = 40; },
       "producer_registers=40 and 3 times consumer_registers=160 make 520, 512 threads start with 128: 512 together"},
      {"registers", bf16, [](KernelConfig &c) { c.blockN = c.chunkN = 96; },
       "scores and weights of 96 keys and 128 outputs need at least 166 registers per thread, consumer_registers is "
       "160"},
      {"threshold", fp16, [](KernelConfig &c) { c.rescaleThreshold = 16; },
       "rescale_threshold is 16, weights in fp16 stay finite up to 15"},
      {"anchored", fp16, [](KernelConfig &c) { c.softmax = 1; }, "anchored weights need the range of bf16, not fp16"},
      {"anchored", bf16, [](KernelConfig &c) { c.softmax = 1, c.grid = 3; },
       "items that are computed again must be known in advance, which a dynamic grid does not allow"},
      {"turns", bf16, [](KernelConfig &c) { c.blockM = 64, c.warps = 8, c.turnTaking = 1, c.consumerRegisters = 240; },
       "turns need at least two consuming warpgroups, block_m=64 has one"},
  };
  std::set<std::string> refused;
  for (const Witness &witness : witnesses) {
    CAPTURE(witness.reason);
    const KernelRequest request = requestFor(128, 128, witness.dtype);
    KernelConfig config = defaultFor(request);
    REQUIRE(config.blockM == 192);
    config.producerRegisters = 32;
    config.blockN = config.chunkN = 64;
    config.consumerRegisters = 160;
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
    int64_t blockM, producer, warps, consumer;
  };
  for (const Split &split : {Split{64, 24, 8, 240}, Split{128, 24, 12, 240}, Split{128, 56, 12, 224},
                             Split{192, 32, 16, 160}, Split{256, 32, 20, 112}, Split{256, 40, 20, 104}}) {
    KernelConfig config = skeleton.defaultConfig(request);
    config.blockM = split.blockM;
    config.blockN = 48;
    config.producerRegisters = split.producer;
    skeleton.deriveFields(request, config);
    CHECK(config.chunkN == 48);
    CHECK(config.warps == split.warps);
    CHECK(config.consumerRegisters == split.consumer);
    CHECK_FALSE(skeleton.whyInfeasible(request, config));
  }
  KernelConfig wild;
  for (int64_t value : {int64_t(-1), int64_t(0), int64_t(1), int64_t(1) << 62}) {
    wild.blockM = wild.blockN = wild.producerRegisters = value;
    skeleton.deriveFields(request, wild);
    CHECK(skeleton.whyInfeasible(request, wild).has_value());
  }
}

TEST_CASE("every value of every knob is feasible with some head dim") {
  const Skeleton &skeleton = sm90ForwardSkeleton();
  for (const Knob &knob : skeleton.knobs(requestFor(64, 64)))
    for (int64_t value : knob.values) {
      bool isFeasible = false;
      for (int64_t blockM : {128, 192, 256}) {
        const KernelRequest request = requestFor(64, 64);
        KernelConfig config = defaultFor(request);
        config.blockM = blockM;
        REQUIRE(config.set(knob.name, value).isOk());
        skeleton.deriveFields(request, config);
        isFeasible |= !skeleton.whyInfeasible(request, config);
      }
      CHECK_MESSAGE(isFeasible, knob.name << "=" << value);
    }
}

TEST_CASE("tiles lie at multiples of 1024 bytes, each large enough") {
  for (int64_t headDim : {8, 64, 72, 128, 200, 256})
    for (int64_t valueDim : {8, 64, 136, 256}) {
      const KernelRequest request = requestFor(headDim, valueDim);
      const KernelConfig config = defaultFor(request);
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
      CHECK(sm90ForwardSkeleton().planLaunch(request, config).sharedBytes == LaunchExpr(end));
    }
}

TEST_CASE("the slots of the plan are the fields of the parameter block") {
  KernelRequest request = requestFor(64, 64);
  request.variants = kLattices;
  request.paramCount = 2;
  request.qOrigin = QOriginRule::given;
  const KernelConfig config = defaultFor(request);
  const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, config);
  CHECK(plan.validate().isOk());
  CHECK(plan.paramBytes == sizeof(HostParams));
  CHECK(plan.paramBytes == tensorMapParamBytes(request));
  std::map<std::string, int64_t> offsets;
  for (const SlotSpec &slot : plan.slots) {
    const bool isScale = slot.kind == SlotSpec::Kind::f32;
    if (slot.kind == SlotSpec::Kind::tensorMap)
      CHECK(slot.offset == 128 * slot.tensorMap);
    else if (slot.kind == SlotSpec::Kind::ptr)
      offsets[slot.pointer.str()] = slot.offset;
    else
      offsets[isScale ? "scale_log2" : slot.expr.str()] = slot.offset;
  }
  const std::map<std::string, size_t> expected = {
      {"out", offsetof(HostParams, out)},
      {"lse", offsetof(HostParams, lse)},
      {"carry_out", offsetof(HostParams, carryOut)},
      {"carry_lse", offsetof(HostParams, carryLse)},
      {"workspace", offsetof(HostParams, workspace)},
      {"out_stride_batch", offsetof(HostParams, outStride)},
      {"out_stride_row", offsetof(HostParams, outStride) + 8},
      {"out_stride_head", offsetof(HostParams, outStride) + 16},
      {"batch", offsetof(HostParams, batch)},
      {"heads", offsetof(HostParams, heads)},
      {"kv_heads", offsetof(HostParams, kvHeads)},
      {"seqlen_q", offsetof(HostParams, seqlenQ)},
      {"seqlen_k", offsetof(HostParams, seqlenK)},
      {"q_origin", offsetof(HostParams, qOrigin)},
      {"k_origin", offsetof(HostParams, kOrigin)},
      {"scale_log2", offsetof(HostParams, scaleLog2)},
      {workItems(request, config).str(), offsetof(HostParams, items)},
      {rasterPairs(request, config).str(), offsetof(HostParams, raster)},
      {"param0", offsetof(HostParams, param)},
      {"param1", offsetof(HostParams, param) + 4},
  };
  REQUIRE(offsets.size() == expected.size());
  for (const auto &field : expected) {
    CAPTURE(field.first);
    CHECK(offsets[field.first] == static_cast<int64_t>(field.second));
  }
}

TEST_CASE("maps come by operand, rate and kind") {
  KernelRequest request = requestFor(96, 64, DType::fp16);
  request.variants = kLattices;
  const KernelConfig config = defaultFor(request);
  const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, config);
  const MapRates rates = MapRates::of(request.variants);
  CHECK(rates.query == std::vector<int64_t>{1, 4});
  CHECK(rates.key == std::vector<int64_t>{1, 4});
  CHECK(rates.mapsPerRate() == 2);
  REQUIRE(plan.tensorMaps.size() == 12);
  REQUIRE(rates.mapCount() == 12);
  const char *const sources[] = {"q", "k", "v"};
  for (size_t i = 0; i < plan.tensorMaps.size(); ++i) {
    CAPTURE(i);
    const TensorMapSpec &map = plan.tensorMaps[i];
    CHECK(map.source.str() == sources[i / 4]);
    CHECK(map.dtype == DType::fp16);
    CHECK(map.swizzleBytes == 128);
    CHECK(map.dims[0] == LaunchExpr(i / 4 == 2 ? 64 : 96));
    CHECK(map.dims[3] == LaunchExpr(i / 4 == 0 ? LaunchSymbol::heads : LaunchSymbol::kvHeads));
    CHECK(map.dims[4] == LaunchExpr(LaunchSymbol::batch));
    CHECK(map.box == std::vector<LaunchExpr>{64, i / 4 == 0 ? config.blockM : config.blockN, 1, 1, 1});
  }
  request.variants = {VariantRates()};
  CHECK(sm90ForwardSkeleton().planLaunch(request, defaultFor(request)).tensorMaps.size() == 3);
}

TEST_CASE("the maps name exactly the rows of every residue class, for any length and rate") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t rate = 1 + random() % 12, seqlen = random() % (trial % 3 ? 50 : 5000);
    CAPTURE(rate);
    CAPTURE(seqlen);
    KernelRequest request = requestFor(64, 64);
    request.variants = {{rate, {1}}, {1, {rate}}};
    const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, defaultFor(request));
    const LaunchSymbols symbols = symbolsFor(seqlen);
    const MapRates rates = MapRates::of(request.variants);
    const int64_t perRate = rates.mapsPerRate(), slot = rate == 1 ? 0 : 1;
    const int64_t bases[] = {0, perRate * int64_t(rates.query.size()),
                             perRate * int64_t(rates.query.size() + rates.key.size())};
    for (int64_t base : bases)
      for (int64_t residue = 0; residue < rate; ++residue) {
        std::set<int64_t> expected;
        for (int64_t row = residue; row < seqlen; row += rate)
          expected.insert(row);
        // A class without rows is never asked for.
        if (expected.empty())
          continue;
        const bool isLong = perRate == 2 && residue < seqlen % rate;
        CHECK(rowsOf(plan.tensorMaps[base + slot * perRate + isLong], residue, symbols) == expected);
      }
    for (const TensorMapSpec &map : plan.tensorMaps)
      for (const LaunchExpr &dim : map.dims)
        CHECK(valueOf(dim, symbols) >= 1);
  }
}

TEST_CASE("the grid fits the way in which items are dealt out") {
  KernelRequest request = requestFor(64, 64);
  request.variants = kLattices;
  for (int64_t grid : {0, 1, 2, 3}) {
    KernelConfig config = defaultFor(request);
    config.blockM = 128;
    config.grid = grid;
    sm90ForwardSkeleton().deriveFields(request, config);
    const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, config);
    CHECK(plan.validate().isOk());
    for (int64_t seqlen : {0, 1, 513, 4096, 100000}) {
      const LaunchSymbols symbols = symbolsFor(seqlen);
      const int64_t quarter = (seqlen + 3) / 4;
      const int64_t items = 12 * std::max((seqlen + 127) / 128, 4 * ((quarter + 127) / 128));
      CHECK(valueOf(workItems(request, config), symbols) == items);
      const auto geometry = evaluateGeometry(plan, symbols);
      REQUIRE(geometry.isOk());
      CHECK(geometry->grid[0] == (grid == 0 ? items : std::min<int64_t>(items, 132)));
      CHECK(geometry->block == 384);
      CHECK(geometry->workspaceBytes == (grid == 3 ? 4 : 0));
    }
    REQUIRE(plan.clears.size() == (grid == 3 ? 1 : 0));
    if (grid == 3) {
      CHECK(plan.clears[0].target.str() == "workspace");
      CHECK(plan.clears[0].words == LaunchExpr(1));
      CHECK(plan.clears[0].value == 0);
    }
  }
}

TEST_CASE("as many heads run side by side as share the given memory, with their groups") {
  const KernelRequest request = requestFor(128, 64);
  KernelConfig config = defaultFor(request);
  const auto pairs = [&](int64_t mib, int64_t seqlen) {
    config.rasterMib = mib;
    return valueOf(rasterPairs(request, config), symbolsFor(seqlen));
  };
  // 8192 rows of K and V take 3 MiB; a K and V head serves 2 query heads; there are 12 pairs.
  CHECK(pairs(3, 8192) == 2);
  CHECK(pairs(8, 8192) == 4);
  CHECK(pairs(9, 8192) == 6);
  CHECK(pairs(2, 8192) == 1);
  CHECK(pairs(0, 8192) == 1);
  CHECK(pairs(16, 16) == 12);
  CHECK(pairs(16, 0) == 12);
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

TEST_CASE("a parameter block beyond what every driver takes does not apply") {
  KernelRequest request = requestFor(64, 64);
  request.paramCount = (kMaxParamBytes - tensorMapParamBytes(request)) / 4;
  while (tensorMapParamBytes(request) <= kMaxParamBytes)
    ++request.paramCount;
  CHECK_FALSE(sm90ForwardSkeleton().appliesTo(request).isOk());
  --request.paramCount;
  CHECK(sm90ForwardSkeleton().appliesTo(request).isOk());
  const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, defaultFor(request));
  CHECK(plan.validate().isOk());
  CHECK(LaunchPlan::parse(plan.str())->str() == plan.str());
}

TEST_CASE("the stored text of a dilated pattern's plan") {
  KernelRequest request = requestFor(64, 64);
  request.variants = {{4, {4}}};
  request.paramCount = 1;
  KernelConfig config = defaultFor(request);
  config.blockM = 128;
  config.blockN = 80;
  config.stages = 2;
  config.queryStages = 1;
  config.grid = 3;
  config.rasterMib = 16;
  sm90ForwardSkeleton().deriveFields(request, config);
  CHECK(sm90ForwardSkeleton().planLaunch(request, config).str() == R"(heddle-plan 1
entry heddle_kernel
grid min(mul(mul(batch,heads),mul(4,ceildiv(ceildiv(seqlen_q,4),128))),sm_count) 1 1
block 384
shared 58368
workspace 4
params 896
clear workspace 0 1 0
tensor_map q bf16 offset 0 swizzle 128 dims 64 max(floordiv(seqlen_q,4),1) 4 heads batch strides mul(q_stride_row,8) mul(q_stride_row,2) mul(q_stride_head,2) mul(q_stride_batch,2) box 64 128 1 1 1
tensor_map q bf16 offset 0 swizzle 128 dims 64 max(ceildiv(seqlen_q,4),1) max(mod(seqlen_q,4),1) heads batch strides mul(q_stride_row,8) mul(q_stride_row,2) mul(q_stride_head,2) mul(q_stride_batch,2) box 64 128 1 1 1
tensor_map k bf16 offset 0 swizzle 128 dims 64 max(floordiv(seqlen_k,4),1) 4 kv_heads batch strides mul(k_stride_row,8) mul(k_stride_row,2) mul(k_stride_head,2) mul(k_stride_batch,2) box 64 80 1 1 1
tensor_map k bf16 offset 0 swizzle 128 dims 64 max(ceildiv(seqlen_k,4),1) max(mod(seqlen_k,4),1) kv_heads batch strides mul(k_stride_row,8) mul(k_stride_row,2) mul(k_stride_head,2) mul(k_stride_batch,2) box 64 80 1 1 1
tensor_map v bf16 offset 0 swizzle 128 dims 64 max(floordiv(seqlen_k,4),1) 4 kv_heads batch strides mul(v_stride_row,8) mul(v_stride_row,2) mul(v_stride_head,2) mul(v_stride_batch,2) box 64 80 1 1 1
tensor_map v bf16 offset 0 swizzle 128 dims 64 max(ceildiv(seqlen_k,4),1) max(mod(seqlen_k,4),1) kv_heads batch strides mul(v_stride_row,8) mul(v_stride_row,2) mul(v_stride_head,2) mul(v_stride_batch,2) box 64 80 1 1 1
slot 0 tensor_map 0
slot 128 tensor_map 1
slot 256 tensor_map 2
slot 384 tensor_map 3
slot 512 tensor_map 4
slot 640 tensor_map 5
slot 768 ptr out
slot 776 ptr lse
slot 784 ptr carry_out
slot 792 ptr carry_lse
slot 800 ptr workspace
slot 808 i64 out_stride_batch
slot 816 i64 out_stride_row
slot 824 i64 out_stride_head
slot 832 i32 batch
slot 836 i32 heads
slot 840 i32 kv_heads
slot 844 i32 seqlen_q
slot 848 i32 seqlen_k
slot 852 i32 0
slot 856 i32 k_origin
slot 860 f32 scale_log2
slot 864 i32 mul(mul(batch,heads),mul(4,ceildiv(ceildiv(seqlen_q,4),128)))
slot 868 i32 max(min(mul(floordiv(16777216,mul(max(seqlen_k,1),256)),floordiv(heads,kv_heads)),mul(batch,heads)),1)
slot 872 i32 param0
)");
}
