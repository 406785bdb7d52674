// The launch of forward kernels that copy through tensor maps: the plan against the device's parameter block, maps that
// name exactly the rows of each residue class, grids.
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"
#include "tests/unit/support/PlanSlots.h"
#include "tests/unit/support/Sm90Requests.h"

#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>
#include <map>
#include <random>
#include <set>

using namespace heddle;
using namespace heddle::test;

namespace {

// The parameter block of sm90_params.cuh for two run-time sizes and two rates of keys and queries.
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
  for (Role role : {Role::q, Role::k, Role::v}) {
    const LaunchSymbol first = strideOf(role, StrideDim::batch);
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
  const int64_t rowBytes = 2 * symbols[strideOf(Role::k, StrideDim::row)];
  if (residue >= valueOf(map.dims[2], symbols))
    return rows;
  for (int64_t number = 0; number < valueOf(map.dims[1], symbols); ++number) {
    const int64_t at = number * valueOf(map.strideBytes[0], symbols) + residue * valueOf(map.strideBytes[1], symbols);
    rows.insert(at % rowBytes == 0 ? at / rowBytes : -1);
  }
  return rows;
}

} // namespace

TEST_CASE("the slots of the plan are the fields of the parameter block") {
  KernelRequest request = requestFor(64, 64);
  request.variants = kLattices;
  request.paramCount = 2;
  request.qOrigin = QOriginRule::given;
  const Sm90Config config = defaultFor(request);
  const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, config);
  CHECK(plan.validate().isOk());
  CHECK(plan.launches.front().paramBytes == sizeof(HostParams));
  CHECK(plan.launches.front().paramBytes == tensorMapParamBytes(request));
  for (const SlotSpec &slot : plan.launches.front().slots)
    if (slot.kind == SlotSpec::Kind::tensorMap)
      CHECK(slot.offset == 128 * slot.tensorMap);
  std::map<std::string, size_t> expected = commonOffsets<HostParams>();
  expected.insert({
      {"region0", offsetof(HostParams, workspace)},
      {"out_stride_row", offsetof(HostParams, outStride) + 8},
      {"out_stride_head", offsetof(HostParams, outStride) + 16},
      {workItems(request, config).str(), offsetof(HostParams, items)},
      {rasterPairs(request, config).str(), offsetof(HostParams, raster)},
  });
  const std::map<std::string, int64_t> offsets = slotOffsets(plan);
  REQUIRE(offsets.size() == expected.size());
  checkOffsets(offsets, expected);
}

TEST_CASE("maps come by operand, rate and kind") {
  KernelRequest request = requestFor(96, 64, DType::fp16);
  request.variants = kLattices;
  const Sm90Config config = defaultFor(request);
  const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, config);
  const MapRates rates = MapRates::of(request.variants);
  CHECK(rates.query == std::vector<int64_t>{1, 4});
  CHECK(rates.key == std::vector<int64_t>{1, 4});
  CHECK(rates.mapsPerRate() == 2);
  REQUIRE(plan.launches.front().tensorMaps.size() == 12);
  REQUIRE(rates.mapCount() == 12);
  const char *const sources[] = {"q", "k", "v"};
  for (size_t i = 0; i < plan.launches.front().tensorMaps.size(); ++i) {
    CAPTURE(i);
    const TensorMapSpec &map = plan.launches.front().tensorMaps[i];
    CHECK(map.source.str() == sources[i / 4]);
    CHECK(map.dtype == DType::fp16);
    CHECK(map.swizzleBytes == 128);
    CHECK(map.dims[0] == LaunchExpr(i / 4 == 2 ? 64 : 96));
    CHECK(map.dims[3] == LaunchExpr(i / 4 == 0 ? LaunchSymbol::heads : LaunchSymbol::kvHeads));
    CHECK(map.dims[4] == LaunchExpr(LaunchSymbol::batch));
    CHECK(map.box == std::vector<LaunchExpr>{64, i / 4 == 0 ? config.blockM : config.blockN, 1, 1, 1});
  }
  request.variants = {VariantRates()};
  CHECK(sm90ForwardSkeleton().planLaunch(request, defaultFor(request)).launches.front().tensorMaps.size() == 3);
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
        CHECK(rowsOf(plan.launches.front().tensorMaps[base + slot * perRate + isLong], residue, symbols) == expected);
      }
    for (const TensorMapSpec &map : plan.launches.front().tensorMaps)
      for (const LaunchExpr &dim : map.dims)
        CHECK(valueOf(dim, symbols) >= 1);
  }
}

TEST_CASE("the grid fits the way in which items are dealt out") {
  KernelRequest request = requestFor(64, 64);
  request.variants = kLattices;
  for (const auto &[grid, softmax] : {std::pair{0, 0}, {1, 0}, {2, 1}, {3, 0}, {3, 1}}) {
    Sm90Config config = defaultFor(request);
    config.blockM = 128;
    config.grid = grid;
    config.softmax = softmax;
    config = sm90ForwardSkeleton().derived(request, config);
    const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, config);
    CHECK(plan.validate().isOk());
    for (int64_t seqlen : {0, 1, 513, 4096, 100000}) {
      const LaunchSymbols symbols = symbolsFor(seqlen);
      const int64_t quarter = (seqlen + 3) / 4;
      const int64_t items = 12 * std::max((seqlen + 127) / 128, 4 * ((quarter + 127) / 128));
      CHECK(valueOf(workItems(request, config), symbols) == items);
      const auto geometry = evaluateGeometry(plan.launches.front(), symbols);
      REQUIRE(geometry.isOk());
      CHECK(geometry->grid[0] == (grid == 0 ? items : std::min<int64_t>(items, 132)));
      CHECK(geometry->block == 384);
      // A counter; anchored consumers also keep an item's successor in the chain, after four words.
      const int64_t dealtBytes = config.softmax == 1 ? 16 + 4 * items : 4;
      CHECK(evaluateWorkspace(plan, symbols)->totalBytes == (grid == 3 ? dealtBytes : 0));
    }
    config.minBlocks = 2;
    const auto twice =
        evaluateGeometry(sm90ForwardSkeleton().planLaunch(request, config).launches.front(), symbolsFor(100000));
    REQUIRE(twice.isOk());
    CHECK(twice->grid[0] == (grid == 0 ? 12 * 784 : 264));
    REQUIRE(plan.launches.front().clears.size() == (grid == 3 ? 1 : 0));
    if (grid == 3) {
      CHECK(plan.launches.front().clears[0].target.str() == "region0");
      CHECK(plan.launches.front().clears[0].words == LaunchExpr(1));
      CHECK(plan.launches.front().clears[0].value == 0);
    }
  }
}

TEST_CASE("the workspace of parts holds their state, and only its words are cleared") {
  KernelRequest request = requestFor(64, 96);
  Sm90Config config = defaultFor(request);
  config.grid = 1;
  config.blockM = 192;
  config = sm90ForwardSkeleton().derived(request, config);
  const int64_t words = 4 + 256 * 16 + 2 * 256; // counters, arrivals of the warps of each slot, entries
  // of each row: 96 sums, and what each of 4 lanes keeps of maximum and sum
  const int64_t stateBytes = 192 * (96 + 2 * 4) * 4;
  for (const auto &[splitLast, splitTiles] : {std::pair{1, 0}, {0, 96}}) {
    config.splitLast = splitLast;
    config.splitTiles = splitTiles;
    const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, config);
    REQUIRE(plan.launches.front().clears.size() == 1);
    CHECK(plan.launches.front().clears[0].words == LaunchExpr(words));
    // A block that finds the queue full needs two slots of its own.
    const int64_t slots = 256 + (splitTiles ? 2 * 132 : 0);
    CHECK(evaluateWorkspace(plan, symbolsFor(4096))->totalBytes == 4 * words + slots * stateBytes);
  }
}

TEST_CASE("as many heads run side by side as share the given memory, with their groups") {
  const KernelRequest request = requestFor(128, 64);
  Sm90Config config = defaultFor(request);
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

TEST_CASE("a parameter block beyond what a launch takes does not apply, a large one asks for a newer driver") {
  KernelRequest request = requestFor(64, 64);
  request.paramCount = kMaxArguments;
  for (int64_t rate = 2; tensorMapParamBytes(request) <= kMaxParamBytes; ++rate)
    request.variants.push_back({rate, {rate}});
  CHECK_FALSE(sm90ForwardSkeleton().appliesTo(request).isOk());
  request.variants.pop_back();
  CHECK(sm90ForwardSkeleton().appliesTo(request).isOk());
  const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, defaultFor(request));
  CHECK(plan.validate().isOk());
  CHECK(plan.minDriver() == 12010);
  CHECK(LaunchPlan::parse(plan.str())->str() == plan.str());
  CHECK(sm90ForwardSkeleton().planLaunch(requestFor(64, 64), defaultFor(request)).minDriver() == 0);
}

TEST_CASE("the stored text of a dilated pattern's plan") {
  KernelRequest request = requestFor(64, 64);
  request.variants = {{4, {4}}};
  request.paramCount = 1;
  Sm90Config config = defaultFor(request);
  config.blockM = 128;
  config.blockN = 80;
  config.stages = 2;
  config.queryStages = 1;
  config.grid = 3;
  config.rasterMib = 16;
  config = sm90ForwardSkeleton().derived(request, config);
  CHECK(sm90ForwardSkeleton().planLaunch(request, config).str() == R"(heddle-plan 3
kind forward
roles q k v out lse carry_out carry_lse
q_origin start
key_origin_step 1
round_rows 0
region schedule add(16,mul(mul(mul(batch,heads),mul(4,ceildiv(ceildiv(seqlen_q,4),128))),4)) 0 0
launch heddle_kernel
grid min(mul(mul(batch,heads),mul(4,ceildiv(ceildiv(seqlen_q,4),128))),sm_count) 1 1
block 384
shared 58368
params 896
clear region0 0 1 0
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
slot 800 ptr region0
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

TEST_CASE("beside key-major values k has a map of its even rows and one of the odd ones, v one of rows of keys") {
  KernelRequest request = requestFor(64, 64, DType::e4m3);
  request.kind.hasKeyMajorValues = true;
  const Sm90Config config = defaultFor(request);
  const LaunchPlan plan = sm90ForwardSkeleton().planLaunch(request, config);
  CHECK(plan.validate().isOk());
  REQUIRE(plan.launches.front().tensorMaps.size() == 4);
  for (int64_t seqlen : {1, 2, 3, 64, 129}) {
    LaunchSymbols symbols = symbolsFor(seqlen);
    const int64_t row = symbols[strideOf(Role::k, StrideDim::row)];
    for (int64_t half : {0, 1}) {
      const TensorMapSpec &map = plan.launches.front().tensorMaps[size_t(1 + half)];
      CHECK(valueOf(map.box[1], symbols) * 2 == config.blockN);
      CHECK(valueOf(map.dims[2], symbols) == 1);
      const int64_t first = valueOf(map.offsetBytes, symbols) / row, rows = valueOf(map.dims[1], symbols);
      CHECK(first == (seqlen > 1 ? half : 0));
      CHECK(valueOf(map.strideBytes[0], symbols) == 2 * row);
      CHECK(first + 2 * (rows - 1) < seqlen); // no row beyond the sequence
      if (seqlen > 1)
        CHECK(first + 2 * rows >= seqlen); // and none lacks
    }
    const TensorMapSpec &values = plan.launches.front().tensorMaps[3];
    CHECK(valueOf(values.dims[0], symbols) == seqlen);
    CHECK(valueOf(values.dims[1], symbols) == 64);
    CHECK(valueOf(values.box[0], symbols) == 128);
    CHECK(valueOf(values.strideBytes[0], symbols) == symbols[strideOf(Role::v, StrideDim::row)]);
  }
  request.variants = kLattices;
  CHECK(sm90ForwardSkeleton().appliesTo(request).message().find("where keys have no stride") != std::string::npos);
}
