// Kernels, of gradients above all, without a GPU: their whole text, launched as their plan says, on the host, a thread
// at a time; results against the definition. Slow machines afford a part of the library here, HEDDLE_TEST_ALL=1 takes
// more, tests/device runs all of it.
#include "support/Places.h"
#include "support/KernelOnHost.h"

#include <cstdlib>

using namespace heddle;
using namespace heddle::test;

namespace {

/// NaN of every type, where each element must be written, else what gradients are added to.
RoleTensors resultsBeforeRun(const Kernel &kernel, const Call &call) {
  RoleTensors results = resultsBefore(call.inputs, kernel.dtype);
  for (const RoleSpec &role : rolesOf(kBackward, Access::write))
    if (!kernel.kind.addsTo(role.role))
      std::fill(results.of(role.role).data.begin(), results.of(role.role).data.end(), std::byte(0xff));
  return results;
}

/// CUDA promises no order in which blocks start, and bits that do not depend on the run depend on none.
void checkOrderOfBlocks(const Kernel &kernel, const HostKernel &compiledKernel, const Call &call,
                        const RoleTensors &expected) {
  RoleTensors results = resultsBeforeRun(kernel, call);
  compiledKernel.run(hostCall(call, results, {}), BlockOrder::descending);
  for (Role role : {Role::dQ, Role::dK, Role::dV})
    CHECK(results.of(role).data == expected.of(role).data);
}

void check(const Kernel &kernel, const std::vector<AttentionSizes> &shapes, bool hasDLse = false) {
  INFO(kernel.pattern << kernel.changes << " d " << kernel.headDim << " " << std::string(dtypeName(kernel.dtype)));
  const Compiled forward(fileOf(kernel));
  const std::unique_ptr<HostKernel> compiledKernel = compiled(kernel, *forward.file);
  for (AttentionSizes sizes : shapes) {
    sizes.headDim = kernel.headDim, sizes.valueDim = kernel.valueDim;
    Call call(forward, sizes, kernel.dtype, hasDLse, kernel.kind);
    if (kernel.ofArguments)
      call.askForArguments();
    RoleTensors results = resultsBeforeRun(kernel, call);
    std::vector<HostTensor> ofArguments;
    if (kernel.ofArguments)
      ofArguments = call.argumentTensors();
    for (HostTensor &tensor : ofArguments)
      std::fill(tensor.data.begin(), tensor.data.end(), std::byte(0xff));
    compiledKernel->run(hostCall(call, results, ofArguments));
    if (kernel.kind.isDeterministic && ofArguments.empty())
      checkOrderOfBlocks(kernel, *compiledKernel, call, results);
    const oracle::KindReport report = oracle::verifyCall(call.kindCall(), results, 40, ofArguments);
    CHECK(report.roles.size() == 3 + ofArguments.size());
    for (const oracle::RoleReport &role : report.roles) {
      INFO("q " << sizes.seqlenQ << " k " << sizes.seqlenK << ": " << role.name() << " " << role.worst.head << " "
                << role.worst.row);
      CHECK(role.maxError <= role.allowedError);
    }
  }
}

/// What resembles another check, and what is large.
void checkAlso(const Kernel &kernel, const std::vector<AttentionSizes> &shapes, bool hasDLse = false) {
  if (std::getenv("HEDDLE_TEST_ALL"))
    check(kernel, shapes, hasDLse);
}

} // namespace

TEST_CASE("gradients by the portable kernel: lengths, groups of heads, batches, a gradient of lse") {
  check({"causal"}, {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 150, 2, 2)}, true);
}

TEST_CASE("gradients by the portable kernel: head dims and types") {
  check({"causal", 128, 128, DType::fp16, "", "sm_90"}, {sizesOf(100, 100, 2, 1)});
  check({"causal", 40, 24, DType::fp16}, {sizesOf(100, 70, 2, 2)});
  check({"full", 8, 120, DType::bf16}, {sizesOf(70, 70, 2, 2)});
}

TEST_CASE("gradients by the portable kernel: pairs of warps share the keys of wide heads") {
  check({"causal", 256, 256}, {sizesOf(70, 50, 2, 1)}, true);
  checkAlso({"sliding_window", 192, 128, DType::fp16, "", "sm_90"}, {sizesOf(60, 60, 2, 2)});
  checkAlso({"full", 136, 200}, {sizesOf(40, 50, 2, 2)});
  checkAlso({"softcap", 8, 144, DType::bf16, ",block_m=16,block_n=64,warps=8"}, {sizesOf(50, 70, 2, 1)});
  check({"longnet_tiny", 136, 136, DType::fp16}, {sizesOf(60, 60, 2, 2)});
}

TEST_CASE("gradients by the portable kernel: configurations") {
  for (const char *changes :
       {",block_m=16,block_n=64,warps=4", ",block_m=32,stages=3", ",block_m=32,warps=4,walk_in_memory=1"})
    check({"sliding_window", 64, 64, DType::bf16, changes}, {sizesOf(150, 150, 2, 1)});
}

TEST_CASE("gradients by the portable kernel: rates, lists, tensors, scores, sinks, documents") {
  for (const char *pattern : {"bigbird", "document"})
    check({pattern}, {sizesOf(150, 150, 4, 2)});
  for (const char *pattern : {"block_csr", "bias", "relative_bias", "softcap", "sink"})
    checkAlso({pattern}, {sizesOf(150, 150, 4, 2)});
  checkAlso({"dilated"}, {sizesOf(150, 170, 4, 4)});
  check({"dilated"}, {sizesOf(150, 170, 6, 2)}); // heads of a group have different key rates
  for (const char *pattern : {"dilated", "block_dilated_heads"})
    checkAlso({pattern}, {sizesOf(150, 300, 6, 2), sizesOf(150, 170, 6, 1), sizesOf(300, 150, 12, 4)});
  check({"tree_decode"}, {sizesOf(16, 150, 2, 1)});
}

TEST_CASE("gradients by both kernels: squares of lists, cut by a band, of keys that heads share at different rates") {
  for (const char *arch : {"sm_80", kHopper}) {
    check({"block_topk", 64, 64, DType::bf16, "", arch}, {sizesOf(200, 230, 2, 1)});
    for (const char *pattern : {"block_topk", "bigbird_causal", "block_thinned"})
      checkAlso({pattern, 64, 64, DType::bf16, "", arch}, {sizesOf(200, 230, 4, 1)});
  }
  checkAlso({"block_topk", 128, 128, DType::bf16, ",block_m=64,block_n=64,reduce=2", kHopper},
            {sizesOf(230, 200, 2, 2)});
  checkAlso({"block_csr", 64, 64, DType::bf16, ",block_m=16,block_n=64,warps=4"}, {sizesOf(300, 300, 1, 1)});
}

TEST_CASE("gradients by both kernels: more than 64 classes of rows") {
  const std::string text = "attn.pattern @p() {\n%c = attn.causal\n%a = attn.dilate %c by 67 rule(every)\n"
                           "%b = attn.dilate %c by 134 at 3\nattn.softmax lse(%a, %b)\n}";
  REQUIRE(parsed(text)->analysis().variants[0].forward.rowRate == 134);
  check({text, 64, 64, DType::bf16, "", kHopper}, {sizesOf(140, 140, 1, 1)});
  for (const char *arch : {"sm_80", kHopper})
    checkAlso({text, 64, 64, DType::bf16, "", arch}, {sizesOf(150, 200, 2, 1)});
}

TEST_CASE("gradients by both kernels: more rows name a key than a warp asks at a time") {
  const std::string text = "attn.pattern @p(%offsets: memref<?x?x?xi32>, %indices: memref<?xi32>) {\n"
                           "%l = attn.csr %offsets, %indices : memref<?x?x?xi32>, memref<?xi32>\n"
                           "%m = attn.blocks %l by [2]\nattn.softmax union(%m)\n}";
  for (const char *arch : {"sm_80", kHopper})
    check({text, 64, 64, DType::bf16, "", arch}, {sizesOf(170, 90, 2, 1)});
}

TEST_CASE("gradients by the portable kernel: detached branches have deltas of their own") {
  check({"longnet"}, {sizesOf(200, 150, 2, 1)}, true);
  checkAlso({"longnet_tiny", 128, 128, DType::fp16, "", "sm_120"}, {sizesOf(150, 150, 2, 2)});
}

TEST_CASE("gradients by Hopper's kernel: every way to the query gradient") {
  for (const char *changes : {",reduce=1", ",reduce=0,block_m=64", ",reduce=2,block_m=64,block_n=64"})
    check({"causal", 64, 64, DType::bf16, changes, kHopper}, {sizesOf(150, 200, 4, 2)}, true);
  check({"longnet", 64, 64, DType::fp16, "", kHopper}, {sizesOf(200, 150, 2, 1)});
}

TEST_CASE("gradients by Hopper's kernel: sums of the query gradient are added in the order of keys") {
  check({"causal", 64, 64, DType::bf16, ",reduce=3", kHopper, kDeterministic},
        {sizesOf(1, 1, 1, 1), sizesOf(150, 300, 2, 1, 2), sizesOf(300, 150, 1, 1)}, true);
  checkAlso({"full", 128, 40, DType::fp16, ",reduce=3", kHopper, kDeterministic}, {sizesOf(100, 170, 2, 1)});
  check({"dilated_window", 64, 128, DType::bf16, ",reduce=3,block_m=64", kHopper, kDeterministic},
        {sizesOf(700, 600, 2, 1)});
  checkAlso({"sliding_window", 128, 128, DType::bf16, ",reduce=3", kHopper}, {sizesOf(600, 650, 2, 2)});
  check({"document", 64, 64, DType::bf16, ",reduce=3", kHopper, kDeterministic}, {sizesOf(400, 400, 2, 1)});
  check({"causal", 40, 64, DType::bf16, ",reduce=3", kHopper, kAccumulateDeterministic}, {sizesOf(100, 300, 2, 2)});
  const std::string fromTheEnd = ",reduce=3,raster_reversed=1";
  check({"causal", 64, 64, DType::bf16, fromTheEnd, kHopper, kDeterministic}, {sizesOf(150, 300, 4, 2)}, true);
  checkAlso({"causal", 64, 64, DType::bf16, fromTheEnd, kHopper, kDeterministic},
            {sizesOf(1, 1, 1, 1), sizesOf(300, 150, 2, 2, 2)}, true);
  checkAlso({"dilated_window", 64, 128, DType::bf16, fromTheEnd + ",block_m=64", kHopper, kDeterministic},
            {sizesOf(700, 600, 2, 1)});
  checkAlso({"document", 64, 64, DType::bf16, fromTheEnd, kHopper, kDeterministic}, {sizesOf(400, 400, 2, 1)});
}

TEST_CASE("gradients by Hopper's kernel: two consumers share the keys of wide heads") {
  check({"causal", 256, 256, DType::bf16, "", kHopper}, {sizesOf(1, 1, 1, 1), sizesOf(280, 200, 2, 1)}, true);
  checkAlso({"causal", 256, 256, DType::bf16, ",reduce=2", kHopper}, {sizesOf(200, 280, 2, 1)});
  checkAlso({"bigbird", 256, 200, DType::bf16, ",producer_registers=56", kHopper}, {sizesOf(130, 130, 1, 1)});
  checkAlso({"softcap", 136, 136, DType::fp16, "", kHopper}, {sizesOf(150, 100, 1, 1)});
  checkAlso({"sliding_window", 136, 192, DType::fp16, ",stages=3", kHopper}, {sizesOf(150, 150, 2, 2)});
  checkAlso({"softcap", 40, 200, DType::bf16, ",reduce=2", kHopper}, {sizesOf(100, 170, 2, 2)});
  checkAlso({"longnet", 192, 128, DType::bf16, "", kHopper}, {sizesOf(150, 150, 2, 1)}, true);
}

namespace {

/// A chain on causal attention, or another mask; `arguments` of the pattern.
std::string chainText(const std::string &arguments, const std::string &chain, const std::string &mask = "causal") {
  return "attn.pattern @p(" + arguments + ") {\n%m = attn." + mask + "\n%s = attn.scaled\n" + chain +
         "\nattn.softmax union(%m) of %t\n}";
}

std::string biasText(const std::string &extents, const std::string &mask = "causal") {
  const std::string type = "memref<" + extents + ">";
  return chainText("%bias: " + type, "%t = attn.bias %s, %bias : " + type, mask);
}

/// Calls are parts: a bias has columns for the first 290 of a whole of 300 keys.
std::string partOfBiasText(const std::string &extents) {
  const std::string type = "memref<" + extents + ">";
  return "attn.pattern @p(%bias: " + type +
         ", %q: i32 {attn.whole = \"queries\", attn.min = 300 : i32}, %k: i32 {attn.whole = \"keys\", attn.min "
         "= 300 : i32}, %c: i32 {attn.whole = \"columns\", attn.min = 290 : i32}) q_origin(given) {\n%m = attn.window "
         "[60, 20]\n%s = attn.scaled\n%t = attn.bias %s, %bias : " +
         type + "\nattn.softmax union(%m) of %t\n}";
}

void checkArguments(const std::string &pattern, const std::vector<AttentionSizes> &shapes, bool hasDLse = false,
                    const char *arch = "sm_80") {
  Kernel kernel{pattern, 64, 64, DType::bf16, "", arch};
  kernel.ofArguments = true;
  check(kernel, shapes, hasDLse);
}

void checkArgumentsAlso(const std::string &pattern, const std::vector<AttentionSizes> &shapes, bool hasDLse = false,
                        const char *arch = "sm_80") {
  if (std::getenv("HEDDLE_TEST_ALL"))
    checkArguments(pattern, shapes, hasDLse, arch);
}

constexpr Role kOfKeys[] = {Role::k, Role::v, Role::dK, Role::dV};

/// As what rings of shards do: the keys in parts, one call after the other with lse and out of all keys.
template <class Run> RoleTensors inParts(const Call &whole, const std::vector<int64_t> &lengths, const Run &run) {
  RoleTensors sums = resultsBefore(whole.inputs, whole.inputs.dtype());
  for (int64_t part = 0, first = 0; part < int64_t(lengths.size()); first += lengths[size_t(part++)]) {
    Call call = whole;
    call.shape.kOrigin = first;
    call.shape.seqlenK = call.inputs.sizes.seqlenK = lengths[size_t(part)];
    for (Role role : kOfKeys)
      call.inputs.of(role) = keysOf(whole.inputs.of(role), first, call.shape.seqlenK);
    call.inputs.dQ = sums.dQ;
    const RoleTensors results = run(call);
    sums.dQ = results.dQ;
    for (Role role : {Role::dK, Role::dV})
      std::copy(results.of(role).data.begin(), results.of(role).data.end(),
                sums.of(role).data.begin() + first * sums.of(role).data.size() / sums.of(role).shape[1]);
  }
  return sums;
}

/// In fp32, so that rounding hardly tells parts from one call.
template <class Run> void checkParts(const Call &call, const std::vector<int64_t> &lengths, const Run &run) {
  const RoleTensors parts = inParts(call, lengths, run), whole = run(call);
  for (const oracle::RoleReport &role : oracle::verifyCall(call.kindCall(), parts, 60).roles) {
    INFO(role.name() << " " << role.worst.head << " " << role.worst.row);
    CHECK(role.maxError <= role.allowedError);
    double difference = 0;
    for (int64_t i = 0; i < whole.of(role.role).elements(); ++i)
      difference = std::max(difference, std::abs(double(parts.of(role.role).get(i)) - whole.of(role.role).get(i)));
    CHECK(difference < 1e-4);
  }
}

} // namespace

TEST_CASE("gradients of arguments by the portable kernel: biases, whatever pairs share an element") {
  for (const char *extents : {"1x?x?x?xbf16", "?x1x?x1xf32"})
    checkArguments(biasText(extents), {sizesOf(150, 130, 4, 2)}, true);
  for (const char *extents : {"?x?x?x?xf32", "1x1x?x?xf32", "1x?x1x?xf32", "1x?x1x1xf32"})
    checkArgumentsAlso(biasText(extents), {sizesOf(150, 130, 4, 2)}, true);
  checkArguments(biasText("1x?x?x?xf32", "window [40, 0]"), {sizesOf(1, 1, 2, 1), sizesOf(100, 170, 2, 2)});
  checkArguments(partOfBiasText("1x?x?x?xbf16"), {sizesOf(150, 130, 4, 2)}, true);
  checkArgumentsAlso(partOfBiasText("1x1x1x?xf32"), {sizesOf(100, 170, 4, 2)});
}

TEST_CASE("gradients of arguments by the portable kernel: tables by distance, near and far") {
  const auto table = [](const char *type, const char *offset) {
    return chainText(std::string("%table: memref<") + type + ">",
                     std::string("%t = attn.relative %s, %table at [") + offset + "] : memref<" + type + ">", "full");
  };
  checkArguments(table("?x255xf32", "127"), {sizesOf(150, 170, 4, 2)});
  checkArgumentsAlso(table("1x5xf32", "2"), {sizesOf(130, 300, 2, 1)});
  checkArgumentsAlso("relative_bias", {sizesOf(150, 150, 4, 2)});
}

TEST_CASE("gradients of arguments by the portable kernel: numbers, chains, sinks") {
  checkArgumentsAlso("softcap", {sizesOf(150, 130, 4, 2)});
  checkArguments(
      chainText("%slope: f32 {attn.default = 0.02 : f32}, %heat: f32 {attn.default = 1.5 : f32}",
                "%t = attn.score_map %s with %slope, %heat : f32, f32 {\n^bb0(%x: f32, %b: i32, %h: i32, %q: "
                "i32, %k: i32, %a: f32, %c: f32):\n%i = arith.subi %q, %k : i32\n%d = arith.sitofp %i : i32 to "
                "f32\n%e = arith.mulf %a, %d : f32\n%f = arith.divf %x, %c : f32\n%y = arith.subf %f, %e : "
                "f32\nattn.yield %y : f32\n}"),
      {sizesOf(150, 130, 4, 2)});
  checkArguments(chainText("%bias: memref<1x?x?x?xf32>, %cap: f32 {attn.default = 2.0 : f32, attn.min = 0.1 : f32}",
                           "%u = attn.bias %s, %bias : memref<1x?x?x?xf32>\n%t = attn.softcap %u by %cap"),
                 {sizesOf(100, 100, 2, 1)});
  checkArguments("sink", {sizesOf(150, 130, 4, 2), sizesOf(70, 90, 3, 1)}, true);
}

TEST_CASE("gradients of arguments by Hopper's kernel") {
  for (const char *pattern : {"bias", "sink"})
    checkArguments(pattern, {sizesOf(70, 70, 2, 1)}, true, kHopper);
  for (const char *pattern : {"relative_bias", "softcap"})
    checkArgumentsAlso(pattern, {sizesOf(70, 70, 2, 1)}, true, kHopper);
}

TEST_CASE("gradients of arguments by both kernels: tables by distance inside documents") {
  const std::string text =
      "attn.pattern @p(%cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %table: memref<?x31xf32>) q_origin(end) {\n"
      "%w = attn.causal\n%m = attn.documents %w at %cu_q, %cu_k : memref<?xi32>, memref<?xi32>\n%s = attn.scaled\n"
      "%t = attn.relative %s, %table at [15] : memref<?x31xf32>\nattn.softmax union(%m) of %t\n}";
  for (const char *arch : {"sm_80", kHopper})
    checkArguments(text, {sizesOf(150, 190, 2, 1)}, false, arch);
}

TEST_CASE("gradients of arguments by the portable kernel: wide heads, whose pairs two warps have") {
  Kernel kernel{"bias", 256, 136};
  kernel.ofArguments = true;
  check(kernel, {sizesOf(70, 70, 2, 1)});
  kernel.pattern = "softcap";
  checkAlso(kernel, {sizesOf(70, 70, 2, 1)});
}

TEST_CASE("gradients of arguments by the portable kernel: branches, detached and not, one number for score and sink") {
  const std::string two = "attn.pattern @p(%bias: memref<1x?x?x?xf32>, %l: f32 {attn.default = 0.4 : f32}) {\n%a = "
                          "attn.causal\n%b = attn.window [20, 0]\n%s = attn.scaled\n%t = attn.bias %s, %bias : "
                          "memref<1x?x?x?xf32>\nattn.softmax lse(%a, %b) of %t sink %l gradient(";
  checkArgumentsAlso(two + "full)\n}", {sizesOf(100, 130, 2, 1)}, true);
  checkArguments(two + "detached)\n}", {sizesOf(100, 130, 2, 1)}, true);
  checkArguments(
      "attn.pattern @p(%cap: f32 {attn.default = 2.0 : f32, attn.min = 0.1 : f32}) {\n%m = attn.causal\n%s = "
      "attn.scaled\n%t = attn.softcap %s by %cap\nattn.softmax union(%m) of %t sink %cap\n}",
      {sizesOf(100, 90, 2, 2)});
}

TEST_CASE("gradients of a part of the keys add up to those of all of them, on the CPU and by the portable kernel") {
  std::vector<std::string> patterns = {"alibi", "dilated"};
  if (std::getenv("HEDDLE_TEST_ALL"))
    patterns.insert(patterns.end(), {"causal", "sliding_window", "softcap", "block_window"});
  for (const std::string &pattern : patterns) {
    INFO(pattern);
    const Kernel kernel{pattern, 64, 64, DType::bf16, "", "sm_80", kAccumulate};
    const Compiled compiledPattern(loaded(test::places().patterns + "/" + pattern + ".mlir"));
    const std::unique_ptr<HostKernel> compiledKernel = compiled(kernel, *compiledPattern.file);
    AttentionSizes sizes = sizesOf(200, 200, 2, 2);
    sizes.headDim = sizes.valueDim = 64;
    const Call call(compiledPattern, sizes, kernel.dtype, true, kernel.kind);
    const auto onCpu = [](const Call &part) { return part.gradients(); };
    const auto byKernel = [&](const Call &part) {
      RoleTensors results = resultsBefore(part.inputs, kernel.dtype);
      compiledKernel->run(hostCall(part, results, {}));
      return results;
    };
    checkParts(call, {64, 128, 8}, onCpu);
    checkParts(call, {128, 72}, byKernel);
  }
}

TEST_CASE("gradients by the portable kernel are added to what is given: head dims, types, groups, detached branches") {
  check({"causal", 40, 24, DType::fp16, "", "sm_80", kAccumulate}, {sizesOf(100, 70, 4, 2, 2)}, true);
  checkAlso({"full", 8, 120, DType::bf16, "", "sm_90", kAccumulate}, {sizesOf(70, 70, 2, 2)});
  check({"longnet", 64, 64, DType::bf16, "", "sm_80", kAccumulate}, {sizesOf(200, 150, 2, 1)});
}

TEST_CASE("gradients by the portable kernel: a walk of its own for the query gradient, nothing is added in any order") {
  check({"causal", 64, 64, DType::bf16, "", "sm_80", kDeterministic},
        {sizesOf(1, 1, 1, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 150, 2, 2)}, true);
  checkAlso({"softcap", 128, 40, DType::fp16, "", "sm_90", kDeterministic}, {sizesOf(100, 70, 2, 1)});
  checkAlso({"sliding_window", 192, 136, DType::bf16, "", "sm_80", kDeterministic}, {sizesOf(60, 70, 2, 1)});
  check({"dilated", 64, 64, DType::bf16, "", "sm_80", kDeterministic}, {sizesOf(130, 140, 4, 2)});
  for (const char *pattern : {"block_thinned", "document"})
    checkAlso({pattern, 64, 64, DType::bf16, "", "sm_80", kDeterministic}, {sizesOf(130, 140, 4, 2)});
  checkAlso({"block_topk", 64, 64, DType::bf16, ",walk_in_memory=1", "sm_80", kDeterministic},
            {sizesOf(150, 150, 2, 2)});
  checkAlso({"longnet", 64, 64, DType::bf16, "", "sm_80", kDeterministic}, {sizesOf(150, 130, 2, 1)}, true);
  check({"longnet_tiny", 136, 136, DType::fp16, "", "sm_80", kAccumulateDeterministic}, {sizesOf(60, 60, 2, 2)});
}

TEST_CASE("gradients by Hopper's kernel are added to what is given, by every way to the query gradient") {
  check({"causal", 64, 40, DType::bf16, ",reduce=1", kHopper, kAccumulate}, {sizesOf(150, 200, 4, 2)});
  for (const char *changes : {",reduce=0,block_m=64", ",reduce=2,block_m=64"})
    checkAlso({"causal", 64, 40, DType::bf16, changes, kHopper, kAccumulate}, {sizesOf(150, 200, 4, 2)});
  check({"causal", 192, 136, DType::fp16, "", kHopper, kAccumulate}, {sizesOf(100, 130, 2, 2)});
}

TEST_CASE(
    "gradients by Hopper's kernel: heads that share keys have different key rates; nothing is added in any order") {
  check({"dilated", 64, 64, DType::bf16, "", kHopper}, {sizesOf(150, 300, 6, 2)});
  check({"dilated", 64, 64, DType::bf16, "", kHopper, kDeterministic}, {sizesOf(150, 170, 6, 2)});
}

TEST_CASE("rows whose scores are NaN have lse NaN by both kernels, in whatever pieces their keys come") {
  constexpr int64_t rows = 200, cut = 128, bad = 20;
  const Compiled compiledPattern(loaded(test::places().patterns + "/causal.mlir"));
  AttentionSizes sizes = sizesOf(rows, rows, 1, 1);
  sizes.headDim = sizes.valueDim = 64;
  Kernel tf32{"causal", 64, 64, DType::fp32, "", kHopper};
  tf32.precision = Precision::tf32;
  for (Kernel kernel : {Kernel{"causal"}, Kernel{"causal", 64, 64, DType::bf16, ",softmax=1", kHopper},
                        Kernel{"causal", 64, 64, DType::fp16, ",softmax=0", kHopper}, tf32,
                        Kernel{"causal", 64, 64, DType::fp32, "", kHopper}}) {
    kernel.kind = kForward;
    const std::unique_ptr<HostKernel> compiledKernel = compiled(kernel, *compiledPattern.file);
    for (Role role : {Role::q, Role::k}) {
      INFO(std::string(kernel.arch) << kernel.changes << " " << std::string(specOf(role).name));
      Call call(compiledPattern, sizes, kernel.dtype, false, kernel.kind);
      for (int64_t c = 0; c < 64; ++c)
        call.inputs.of(role).set(bad * 64 + c, NAN);
      for (int64_t i = 64 * 64; i < rows * 64; ++i) // later maxima are higher
        call.inputs.k.set(i, 4 * call.inputs.k.get(i));
      Call first = withKeys(call, 0, cut), second = withKeys(call, cut, rows - cut);
      const RoleTensors whole = forwardResults(*compiledKernel, call), before = forwardResults(*compiledKernel, first);
      second.inputs.carryOut = before.out, second.inputs.carryLse = before.lse;
      const RoleTensors pieces = forwardResults(*compiledKernel, second);
      for (int64_t row = 0; row < rows; ++row)
        for (const RoleTensors *results : {&whole, &before, &pieces}) {
          CHECK(std::isnan(results->lse.get(row)) == (role == Role::q ? row == bad : row >= bad));
          CHECK(std::isnan(results->out.get(row * 64)) == std::isnan(results->lse.get(row)));
        }
    }
  }
}

TEST_CASE("a value that is infinite makes its column infinite, and no other, by both kernels") {
  const Compiled compiledPattern(loaded(test::places().patterns + "/full.mlir"));
  AttentionSizes sizes = sizesOf(20, 20, 1, 1);
  sizes.headDim = sizes.valueDim = 64;
  for (Kernel kernel : {Kernel{"full"}, Kernel{"full", 64, 64, DType::bf16, "", kHopper}}) {
    INFO(std::string(kernel.arch));
    kernel.kind = kForward;
    Call call(compiledPattern, sizes, kernel.dtype, false, kernel.kind);
    call.inputs.v.set(0, INFINITY);
    const RoleTensors results = forwardResults(*compiled(kernel, *compiledPattern.file), call);
    for (int64_t row = 0; row < 20; ++row) {
      CHECK(results.out.get(row * 64) == INFINITY);
      CHECK(std::isfinite(results.out.get(row * 64 + 1)));
    }
  }
}

TEST_CASE("gradients by both kernels at very large scores: a key that has all the weight has a weight of 1") {
  const Compiled compiledPattern(loaded(test::places().patterns + "/causal.mlir"));
  AttentionSizes sizes = sizesOf(100, 100, 2, 1);
  sizes.headDim = sizes.valueDim = 64;
  for (const Kernel &kernel : {Kernel{"causal"}, Kernel{"causal", 64, 64, DType::fp16, "", "sm_80", kDeterministic},
                               Kernel{"causal", 64, 64, DType::fp16, ",reduce=1", kHopper},
                               Kernel{"causal", 64, 64, DType::bf16, ",reduce=2", kHopper, kDeterministic}}) {
    Kernel forward = kernel;
    forward.kind = kForward, forward.changes = "";
    const auto forwardKernel = compiled(forward, *compiledPattern.file);
    const auto backwardKernel = compiled(kernel, *compiledPattern.file);
    for (double scale : {1e3, 3e4, 1e6}) {
      INFO(std::string(kernel.arch) << kernel.changes << " scale " << scale);
      Call forwardCall(compiledPattern, sizes, kernel.dtype, false, forward.kind);
      Call call(compiledPattern, sizes, kernel.dtype, false, kernel.kind);
      forwardCall.scale = call.scale = scale;
      const RoleTensors softmax = forwardResults(*forwardKernel, forwardCall);
      CHECK(oracle::verifyCall(forwardCall.kindCall(), softmax, 100).isOk());
      call.inputs.lse = softmax.lse;
      for (int64_t i = 0; i < softmax.out.elements(); ++i)
        call.inputs.out.set(i, softmax.out.get(i));
      RoleTensors results = resultsBeforeRun(kernel, call);
      backwardKernel->run(hostCall(call, results, {}));
      for (const oracle::RoleReport &role : oracle::verifyCall(call.kindCall(), results, 100).roles) {
        INFO(role.name() << " " << role.worst.head << " " << role.worst.row);
        CHECK(role.maxError <= role.allowedError);
      }
    }
  }
}
