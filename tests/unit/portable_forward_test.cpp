// The portable forward skeleton without a GPU: its launch plan against the device's parameter block
// and work items, and that its device file assembles for every architecture without spills.
#include "support/Places.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Skeletons/Forward/PortableConfig.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Config/SmemLayout.h"
#include "codegen/Nvrtc/Compiler.h"
#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Target/GpuArch.h"
#include "tests/unit/support/PlanSlots.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstddef>
#include <doctest/doctest.h>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

using namespace heddle;
using namespace heddle::test;

namespace {

// The parameter block of forward_params.cuh for two run-time sizes, as the host compiler lays it out.
struct HostParams {
  const void *q, *k, *v;
  void *out;
  float *lse;
  const float *carryOut;
  const float *carryLse;
  int64_t qStride[3], kStride[3], vStride[3], outStride[3];
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t param[2];
};

// What codegen/Emit writes for a pattern, by hand: causal, and two head groups on lattices, without words of kept
// columns.
const char *const kCausal = R"(
struct PatternContext { int32_t batch, head, heads, seqlenQ, seqlenK, qOrigin, kOrigin; int32_t param[1]; };
struct KeyRange { int32_t begin, end, fullBegin, fullEnd, reach; };
struct Pattern {
  using Context = PatternContext;
  using Range = KeyRange;
  static constexpr int kVariantCount = 1, kBranchCount = 1, kParamCount = 0;
  static __device__ __forceinline__ int variant(const PatternContext &c) { return 0; }
  static __device__ __forceinline__ int queryRate(int variant) { return 1; }
  static __device__ __forceinline__ int keyRate(int variant, int branch) { return 1; }
  static __device__ __forceinline__ int keyResidue(const PatternContext &c, int variant, int branch, int tileFirst) {
    return 0;
  }
  static __device__ __forceinline__ KeyRange nextRange(const PatternContext &c, int variant, int branch, int tileFirst,
                                                       int tileLast, int blockN, int from) {
    int last = min(tileLast - c.kOrigin, c.seqlenK - 1);
    int end = last < 0 ? 0 : last / blockN + 1;
    if (from >= end)
      return KeyRange{0x7fffffff, 0x7fffffff, 0, 0, 0x7fffffff};
    return KeyRange{from, end, from, min(end, max(tileFirst - c.kOrigin + 1, 0) / blockN), end};
  }
  static __device__ __forceinline__ bool keep(const PatternContext &c, int branch, int q, int k) { return k <= q; }
  static constexpr int kHasScore = 0;
  static constexpr int kHasSink = 0;
  static __device__ __forceinline__ float sink(const PatternContext &) { return 0; }
  static constexpr int kHasScoreDocument = 0;
  static __device__ __forceinline__ int scoreDocument(const PatternContext &c, int q) { return 0; }
  static __device__ __forceinline__ float score(const PatternContext &c, int q, int k, int, float score) { return score; }
  static constexpr bool kHasKeptColumns[] = {true};
  template <class Columns>
  static __device__ __forceinline__ uint32_t keptColumns(const PatternContext &c, int variant, int branch, int q, int k) {
    return Columns::below(max(min(q + 1, c.kOrigin + c.seqlenK) - k, 0));
  }
};
)";

const char *const kTwoLattices = R"(
struct PatternContext { int32_t batch, head, heads, seqlenQ, seqlenK, qOrigin, kOrigin; int32_t param[1]; };
struct KeyRange { int32_t begin, end, fullBegin, fullEnd, reach; };
struct Pattern {
  using Context = PatternContext;
  using Range = KeyRange;
  static constexpr int kVariantCount = 2, kBranchCount = 2, kParamCount = 1;
  static __device__ __forceinline__ int variant(const PatternContext &c) { return c.head * 2 >= c.heads; }
  static __device__ __forceinline__ int queryRate(int variant) { return variant ? 4 : 1; }
  static __device__ __forceinline__ int keyRate(int variant, int branch) { return variant && branch ? 4 : 1; }
  static __device__ __forceinline__ int keyResidue(const PatternContext &c, int variant, int branch, int tileFirst) {
    return tileFirst % keyRate(variant, branch);
  }
  static __device__ __forceinline__ KeyRange nextRange(const PatternContext &c, int variant, int branch, int tileFirst,
                                                       int tileLast, int blockN, int from) {
    int rate = keyRate(variant, branch);
    int begin = max(max((tileFirst - c.param[0]) / rate, 0) / blockN, from);
    int end = min(tileLast, c.seqlenK - 1) / rate / blockN + 1;
    if (begin >= end)
      return KeyRange{0x7fffffff, 0x7fffffff, 0, 0, 0x7fffffff};
    return KeyRange{begin, end, begin + 1, end - 1, end};
  }
  static __device__ __forceinline__ bool keep(const PatternContext &c, int branch, int q, int k) {
    return k <= q & (branch ? (q - k) % 4 == 0 : q - k < c.param[0]);
  }
  static constexpr int kHasScore = 0;
  static constexpr int kHasSink = 0;
  static __device__ __forceinline__ float sink(const PatternContext &) { return 0; }
  static constexpr int kHasScoreDocument = 0;
  static __device__ __forceinline__ int scoreDocument(const PatternContext &c, int q) { return 0; }
  static __device__ __forceinline__ float score(const PatternContext &c, int q, int k, int, float score) { return score; }
  static constexpr bool kHasKeptColumns[] = {false, false};
  template <class Columns>
  static __device__ __forceinline__ uint32_t keptColumns(const PatternContext &, int variant, int branch, int q, int k);
};
)";

KernelSource sourceFor(const KernelRequest &request, const KernelConfig &config, const char *pattern) {
  const Skeleton &skeleton = portableForwardSkeleton();
  KernelSource source;
  source.text = "#include \"Shared/prelude.cuh\"\n" + skeleton.traits(request, config) + pattern + "#include \"" +
                skeleton.deviceFile() + "\"\n" + skeleton.kernels(request, config);
  for (const EmbeddedFile &file : skeletonSources())
    source.headers.push_back({std::string(file.name), std::string(file.text)});
  return source;
}

KernelRequest requestFor(const GpuArch &arch, int64_t dim, DType dtype, const char *pattern) {
  KernelRequest request;
  if (pattern == kTwoLattices) {
    request.variants = {{1, {1, 1}}, {4, {1, 4}}};
    request.paramCount = 1;
  }
  request.arch = &arch;
  request.headDim = request.valueDim = dim;
  request.elements = CallElements(dtype);
  return request;
}

bool hasNvrtc() {
  const auto &library = NvrtcLibrary::shared();
  if (!library.isOk())
    MESSAGE("skipped: " << library.status().message());
  return library.isOk();
}

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace

TEST_CASE("the device files are embedded byte for byte under the names that they include") {
  std::map<std::string_view, std::string_view> files;
  for (const EmbeddedFile &file : skeletonSources()) {
    CHECK(files.emplace(file.name, file.text).second);
    std::ifstream stream(std::string(test::places().skeletons + "/") + std::string(file.name), std::ios::binary);
    const std::string onDisk{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    CHECK_MESSAGE(onDisk == file.text, file.name);
  }
  for (const Skeleton *skeleton : skeletonsOf(Kind()))
    CHECK(files.count(skeleton->deviceFile()) == 1);
  for (const EmbeddedFile &file : skeletonSources()) {
    const std::string_view text = file.text;
    for (size_t at = text.find("#include \""); at != std::string_view::npos; at = text.find("#include \"", at + 1)) {
      const std::string_view rest = text.substr(at + 10);
      CHECK_MESSAGE(files.count(rest.substr(0, rest.find('"'))) == 1, file.name);
    }
  }
}

TEST_CASE("the slots of the plan are the fields of the parameter block") {
  KernelRequest request;
  request.paramCount = 2;
  request.qOrigin = QOriginRule::given;
  const LaunchPlan plan =
      portableForwardSkeleton().planLaunch(request, portableForwardSkeleton().defaultConfig(request));
  CHECK(plan.validate().isOk());
  CHECK(plan.launches.front().paramBytes == sizeof(HostParams));
  std::map<std::string, size_t> expected = commonOffsets<HostParams>();
  expected.insert({
      {"q", offsetof(HostParams, q)},
      {"k", offsetof(HostParams, k)},
      {"v", offsetof(HostParams, v)},
      {"q_stride_batch", offsetof(HostParams, qStride)},
      {"q_stride_row", offsetof(HostParams, qStride) + 8},
      {"q_stride_head", offsetof(HostParams, qStride) + 16},
      {"k_stride_row", offsetof(HostParams, kStride) + 8},
      {"v_stride_head", offsetof(HostParams, vStride) + 16},
  });
  checkOffsets(slotOffsets(plan), expected);
  CHECK(plan.launches.front().slots.size() == 7 + 12 + 7 + 1 + 2);
}

TEST_CASE("a pattern without run-time sizes still fills the one element that the device declares") {
  const KernelRequest request;
  const LaunchPlan plan =
      portableForwardSkeleton().planLaunch(request, portableForwardSkeleton().defaultConfig(request));
  CHECK(plan.launches.front().paramBytes == 192);
  CHECK(plan.paramCount() == 0);
  CHECK(LaunchPlan::parse(plan.str()).isOk());
  CHECK(LaunchPlan::parse(plan.str())->str() == plan.str());
}

TEST_CASE("as many run-time sizes as a plan can name fit, one more does not apply") {
  KernelRequest request;
  request.paramCount = kMaxArguments;
  const LaunchPlan plan =
      portableForwardSkeleton().planLaunch(request, portableForwardSkeleton().defaultConfig(request));
  CHECK(plan.launches.front().paramBytes > 4 * kMaxArguments);
  CHECK(plan.validate().isOk());
  CHECK(LaunchPlan::parse(plan.str())->str() == plan.str());
  ++request.paramCount;
  CHECK_FALSE(portableForwardSkeleton().appliesTo(request).isOk());
}

TEST_CASE("the position of query 0 follows the rule") {
  LaunchSymbols symbols;
  symbols[LaunchSymbol::seqlenQ] = 100;
  symbols[LaunchSymbol::seqlenK] = 164;
  symbols[LaunchSymbol::qOrigin] = 7;
  CHECK(*qOriginExpr(QOriginRule::start).evaluate(symbols) == 0);
  CHECK(*qOriginExpr(QOriginRule::end).evaluate(symbols) == 64);
  CHECK(*qOriginExpr(QOriginRule::given).evaluate(symbols) == 7);
}

TEST_CASE("the grid has a block for every query tile of the head group with most, for any length") {
  const std::vector<std::vector<VariantRates>> groups = {
      {{1, {1}}}, {{1, {1}}, {2, {2}}, {4, {4}}}, {{3, {3}}, {5, {5}}}, {{6, {1}}}, {{2, {1}}, {2, {2}}}};
  for (const std::vector<VariantRates> &variants : groups)
    for (int64_t blockM : {64, 128, 192})
      for (int64_t seqlen : {0, 1, 2, 63, 64, 65, 127, 129, 383, 1000, 4097, 1048577}) {
        KernelRequest request;
        request.variants = variants;
        PortableConfig config = portableForwardSkeleton().defaultConfig(request);
        config.blockM = blockM;
        const LaunchPlan plan = portableForwardSkeleton().planLaunch(request, config);
        LaunchSymbols symbols;
        symbols[LaunchSymbol::batch] = 3;
        symbols[LaunchSymbol::heads] = 10;
        symbols[LaunchSymbol::seqlenQ] = seqlen;
        int64_t most = 0;
        for (const VariantRates &rates : variants)
          most = std::max(most, rates.queryRate * ceilDivide(ceilDivide(seqlen, rates.queryRate), blockM));
        const auto geometry = evaluateGeometry(plan.launches.front(), symbols);
        REQUIRE(geometry.isOk());
        CHECK(geometry->grid[0] == 30 * most);
        CHECK(geometry->grid[1] == 1);
        CHECK(geometry->block == config.threads());
        CHECK(geometry->isEmpty() == (seqlen == 0));
        CHECK(plan.regions.empty());
      }
}

namespace {

// One compilation of the matrix below. Compiled by several threads, judged by the test's own.
struct Variant {
  KernelRequest request;
  const char *pattern;
  Result<Cubin> cubin = Status::unavailable("not compiled");
  KernelConfig config = {};
  bool usesFallback = false;
};

/// Of every architecture; half of them, another half than of the architecture before it, without HEDDLE_TEST_ALL.
std::vector<Variant> shippedDefaults() {
  const bool takesAll = std::getenv("HEDDLE_TEST_ALL") != nullptr;
  std::vector<Variant> variants;
  size_t number = 0;
  const auto add = [&](const GpuArch &arch, int64_t dim, CallElements elements, const char *pattern) {
    if (takesAll || number % 2 == 0) {
      variants.push_back({requestFor(arch, dim, elements.q, pattern), pattern});
      variants.back().request.elements = elements;
    }
    ++number;
  };
  for (const GpuArch &arch : gpuArchs()) {
    for (int64_t dim : {64, 128}) {
      for (DType dtype : {DType::bf16, DType::fp16})
        for (const char *pattern : {kCausal, kTwoLattices})
          add(arch, dim, CallElements(dtype), pattern);
      if (takesAll || &arch == &baselineGpuArch()) { // fp32 takes the longest
        add(arch, dim, CallElements(DType::fp32), kCausal);
        add(arch, dim, CallElements(DType::fp32, DType::fp32, Precision::tf32), kCausal);
        add(arch, dim, CallElements(DType::fp32), kTwoLattices);
      }
    }
    ++number;
  }
  return variants;
}

bool isAccepted(const Variant &variant) { return variant.cubin.isOk() && checkVariant(*variant.cubin).isOk(); }

// As the driver does: fallback configurations where the compiler spills with the default.
void compileAll(std::vector<Variant> &variants) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < variants.size(); i = next++) {
      Variant &variant = variants[i];
      std::vector<KernelConfig> configs = portableForwardSkeleton().fallbackConfigs(variant.request);
      configs.insert(configs.begin(), portableForwardSkeleton().defaultConfig(variant.request));
      for (size_t tried = 0; tried < configs.size() && !isAccepted(variant); ++tried) {
        variant.config = configs[tried];
        variant.usesFallback = tried > 0;
        variant.cubin =
            compile(sourceFor(variant.request, variant.config, variant.pattern), variant.request.arch->name);
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace

TEST_CASE("the shipped defaults assemble for every architecture without spills") {
  if (!hasNvrtc())
    return;
  std::vector<Variant> variants = shippedDefaults();
  compileAll(variants);
  double slowestMs = 0;
  int fallbacks = 0;
  for (const Variant &variant : variants) {
    const PortableConfig config = variant.config;
    const std::string name = variant.request.str() + (variant.pattern == kCausal ? " causal" : " two lattices");
    CAPTURE(name);
    REQUIRE_MESSAGE(variant.cubin.isOk(), variant.cubin.status().message());
    const Status verdict = checkVariant(*variant.cubin);
    CHECK_MESSAGE(verdict.isOk(), verdict.message());
    CHECK(variant.cubin->registers() * config.threads() * config.minBlocks <= variant.request.arch->registersPerSm);
    CHECK(variant.cubin->usage.staticSharedBytes == 0);
    CHECK(variant.cubin->usage.stackFrameBytes == 0);
    slowestMs = std::max(slowestMs, variant.cubin->totalMs);
    fallbacks += variant.usesFallback;
  }
  CHECK(fallbacks <= 4);
  MESSAGE(variants.size() << " variants, " << fallbacks << " fallbacks, the slowest took " << slowestMs << " ms");
}
