// Kernels of fp32 without a GPU: their whole text on the host, a thread at a time, with tensor cores that see 11 bits of
// an operand and cut what they sum; results against the definition. HEDDLE_TEST_ALL=1 takes all of the library, and all
// of what resembles another check.
#include "support/KernelOnHost.h"

#include <cstdlib>

using namespace heddle;
using namespace heddle::test;

namespace {

Kernel forwardOf(const std::string &pattern, int64_t headDim = 64, int64_t valueDim = 64,
                 Precision precision = Precision::exact, const std::string &changes = "") {
  Kernel kernel{pattern, headDim, valueDim, DType::fp32, changes, "sm_80", kForward};
  kernel.precision = precision;
  return kernel;
}

constexpr Precision kOfFloats[] = {Precision::exact, Precision::tf32};

/// By Hopper's kernel, which multiplies numbers of tf32, or pairs of fp16.
Kernel hopperOf(const std::string &pattern, Precision precision, int64_t headDim = 64, int64_t valueDim = 64,
                const std::string &changes = "") {
  Kernel kernel = forwardOf(pattern, headDim, valueDim, precision, changes);
  kernel.arch = kHopper;
  return kernel;
}

/// A kernel and a pattern of which calls are made.
struct Forward {
  explicit Forward(const Kernel &kernel)
      : kernel(kernel), pattern(fileOf(kernel)), code(compiled(kernel, *pattern.file)) {}

  Call call(AttentionSizes sizes) const {
    sizes.headDim = kernel.headDim, sizes.valueDim = kernel.valueDim;
    Call made(pattern, sizes, DType::fp32, false, kForward);
    made.inputs.precision = kernel.precision;
    return made;
  }
  RoleTensors run(const Call &call) const { return forwardResults(*code, call); }

  Kernel kernel;
  Compiled pattern;
  std::unique_ptr<HostKernel> code;
};

void check(const Kernel &kernel, const std::vector<AttentionSizes> &shapes) {
  INFO(kernel.pattern << kernel.changes << " d " << kernel.headDim << " " << precisionName(kernel.precision));
  const Forward forward(kernel);
  for (const AttentionSizes &sizes : shapes) {
    const Call call = forward.call(sizes);
    const oracle::KindReport report = oracle::verifyCall(call.kindCall(), forward.run(call), 100);
    CHECK(report.roles.size() == 2);
    for (const oracle::RoleReport &role : report.roles) {
      INFO("q " << sizes.seqlenQ << " k " << sizes.seqlenK << ": " << role.name() << " " << role.worst.head << " "
                << role.worst.row);
      CHECK(role.maxError <= role.allowedError);
    }
  }
}

Kernel gradientsOf(const std::string &pattern, int64_t headDim = 64, int64_t valueDim = 64,
                   const Kind &kind = kBackward, Precision precision = Precision::exact,
                   const std::string &changes = "") {
  Kernel kernel{pattern, headDim, valueDim, DType::fp32, changes, "sm_80", kind};
  kernel.precision = precision;
  return kernel;
}

Kernel onHopper(Kernel kernel) {
  kernel.arch = kHopper;
  return kernel;
}

/// NaN where each element must be written, else what gradients are added to.
RoleTensors resultsBeforeRun(const Call &call) {
  RoleTensors results = resultsBefore(call.inputs, DType::fp32);
  for (Role role : {Role::dQ, Role::dK, Role::dV})
    if (!call.inputs.kind.addsTo(role))
      std::fill(results.of(role).data.begin(), results.of(role).data.end(), std::byte(0xff));
  return results;
}

/// As a forward call of the kernel's precision wrote them: its scores have the roundings of those of the gradients.
void takeFromForward(const Kernel &kernel, const AttentionSizes &sizes, Call &call) {
  const Forward forward(forwardOf(kernel.pattern, kernel.headDim, kernel.valueDim, kernel.precision));
  Call before = forward.call(sizes);
  before.inputs.q = call.inputs.q, before.inputs.k = call.inputs.k, before.inputs.v = call.inputs.v;
  RoleTensors results = forward.run(before);
  call.inputs.out = std::move(results.out), call.inputs.lse = std::move(results.lse);
}

void checkGradients(const Kernel &kernel, const std::vector<AttentionSizes> &shapes, bool hasDLse = false) {
  INFO(kernel.pattern << kernel.changes << " d " << kernel.headDim << " " << precisionName(kernel.precision));
  const Compiled pattern(fileOf(kernel));
  const std::unique_ptr<HostKernel> code = compiled(kernel, *pattern.file);
  for (AttentionSizes sizes : shapes) {
    sizes.headDim = kernel.headDim, sizes.valueDim = kernel.valueDim;
    Call call(pattern, sizes, DType::fp32, hasDLse, kernel.kind);
    call.inputs.precision = kernel.precision;
    if (kernel.precision != Precision::exact)
      takeFromForward(kernel, sizes, call);
    if (kernel.ofArguments)
      call.askForArguments();
    RoleTensors results = resultsBeforeRun(call);
    std::vector<HostTensor> ofArguments;
    if (kernel.ofArguments)
      ofArguments = call.argumentTensors();
    code->run(hostCall(call, results, ofArguments));
    for (const oracle::RoleReport &role : oracle::verifyCall(call.kindCall(), results, 40, ofArguments).roles) {
      INFO("q " << sizes.seqlenQ << " k " << sizes.seqlenK << ": " << role.name() << " " << role.worst.head << " "
                << role.worst.row);
      CHECK(role.maxError <= role.allowedError);
    }
  }
}

double errorOfOut(const Forward &forward, const Call &call) {
  return oracle::verifyCall(call.kindCall(), forward.run(call), 100).roles.front().maxError;
}

} // namespace

TEST_CASE("fp32 by Hopper's kernel: lengths, groups of heads, batches") {
  for (Precision precision : kOfFloats)
    check(hopperOf("causal", precision), {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 350, 2, 2)});
}

TEST_CASE("fp32 by Hopper's kernel: head dims are multiples of 8, those of values apart") {
  for (Precision precision : kOfFloats) {
    check(hopperOf("causal", precision, 128, 128), {sizesOf(100, 200, 2, 1)});
    check(hopperOf("causal", precision, 40, 24), {sizesOf(50, 70, 2, 2)});
    check(hopperOf("full", precision, 8, 120), {sizesOf(30, 150, 2, 2)});
    if (takesAll())
      check(hopperOf("full", precision, 96, 72), {sizesOf(70, 70, 2, 2)});
  }
}

TEST_CASE("fp32 by Hopper's kernel: tiles, rings of one slot, blocks that share parts") {
  for (Precision precision : kOfFloats)
    check(hopperOf("causal", precision, 64, 72, ",block_m=64,block_n=48,stages=1,turn_taking=0"),
          {sizesOf(70, 130, 1, 1)});
  check(hopperOf("causal", Precision::tf32, 64, 64, ",block_m=128,block_n=96,stages=2"), {sizesOf(150, 300, 2, 1)});
  check(hopperOf("causal", Precision::exact, 64, 64, ",block_m=192,block_n=48,stages=2"), {sizesOf(250, 300, 2, 1)});
  if (takesAll())
    check(hopperOf("full", Precision::tf32, 128, 128, ",block_n=32,stages=4"), {sizesOf(130, 150, 2, 1)});
}

TEST_CASE("fp32 by Hopper's kernel: the library's patterns") {
  std::vector<std::string> patterns = {"document", "longnet", "softcap", "sink", "block_csr"};
  if (takesAll()) {
    patterns.clear();
    for (const std::string &path : libraryPatterns())
      patterns.push_back(std::filesystem::path(path).stem().string());
  }
  for (Precision precision : kOfFloats)
    for (const std::string &pattern : patterns)
      check(hopperOf(pattern, precision),
            {pattern == "tree_decode" ? sizesOf(16, 150, 2, 1) : sizesOf(150, 150, 4, 2)});
}

TEST_CASE("tf32 by Hopper's kernel: a mean of ones is 1, as the weights are summed that it multiplies") {
  const Forward forward(hopperOf("causal", Precision::tf32, 64, 40));
  Call call = forward.call(sizesOf(150, 300, 2, 1));
  for (int64_t i = 0; i < call.inputs.v.elements(); ++i)
    call.inputs.v.set(i, 1);
  const RoleTensors results = forward.run(call);
  for (int64_t i = 0; i < results.out.elements(); ++i)
    REQUIRE(results.out.get(i) == 1);
}

TEST_CASE("exact by Hopper's kernel: rows have digits of their own, however large others are") {
  const Forward forward(hopperOf("causal", Precision::exact));
  for (Role role : {Role::q, Role::k, Role::v}) {
    INFO(std::string(specOf(role).name));
    Call call = forward.call(sizesOf(150, 150, 1, 1));
    HostTensor &tensor = call.inputs.of(role);
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.set(i, std::ldexp(tensor.get(i), role == Role::v ? int(i / 64 % 5) * 20 - 60 : int(i / 64 % 5) * 20 - 80));
    const oracle::KindReport report = oracle::verifyCall(call.kindCall(), forward.run(call), 150);
    for (const oracle::RoleReport &result : report.roles)
      CHECK(result.maxError <= result.allowedError);
  }
}

TEST_CASE("exact by Hopper's kernel: what a row does not keep is of any size") {
  const Forward forward(hopperOf("causal", Precision::exact));
  Call call = forward.call(sizesOf(100, 100, 1, 1));
  const RoleTensors before = forward.run(call);
  for (int64_t i = 90 * 64; i < 100 * 64; ++i) {
    call.inputs.k.set(i, 1e30f * call.inputs.k.get(i));
    call.inputs.v.set(i, 1e30f * call.inputs.v.get(i));
  }
  const RoleTensors after = forward.run(call);
  for (int64_t i = 0; i < 90 * 64; ++i)
    REQUIRE(after.out.get(i) == before.out.get(i));
}

TEST_CASE("fp32 by the portable kernel: lengths, groups of heads, batches") {
  check(forwardOf("causal"), {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 150, 2, 2)});
}

TEST_CASE("fp32 by the portable kernel: head dims are multiples of 8, those of values apart") {
  check(forwardOf("causal", 128, 128), {sizesOf(100, 100, 2, 1)});
  check(forwardOf("causal", 40, 24), {sizesOf(50, 70, 2, 2)});
  if (takesAll())
    check(forwardOf("full", 32, 32), {sizesOf(70, 70, 2, 2)});
  check(forwardOf("full", 8, 120), {sizesOf(30, 50, 2, 2)});
}

TEST_CASE("fp32 by the portable kernel: the library's patterns") {
  std::vector<std::string> patterns = {"document", "longnet", "softcap"};
  if (takesAll()) {
    patterns.clear();
    for (const std::string &path : libraryPatterns())
      patterns.push_back(std::filesystem::path(path).stem());
  }
  for (const std::string &pattern : patterns)
    check(forwardOf(pattern), {pattern == "tree_decode" ? sizesOf(16, 150, 2, 1) : sizesOf(150, 170, 6, 2)});
}

TEST_CASE("fp32 by the portable kernel: rows that keep nothing, first and last") {
  check(forwardOf("sliding_window"), {sizesOf(200, 60, 2, 1)});
  check(forwardOf("attn.pattern @p() {\n%m = attn.box [40, 60, 10, 20]\nattn.softmax union(%m)\n}"),
        {sizesOf(100, 90, 2, 1)});
}

TEST_CASE("fp32 by the portable kernel: configurations") {
  std::vector<const char *> configs = {",stages=1,block_n=16,chunk_n=16", ",warps=8,rescale_threshold=0,stages=3"};
  if (takesAll())
    configs.insert(configs.end(), {",overlap_scores=1,block_n=32,chunk_n=32,block_m=64", ",block_m=64"});
  for (const char *changes : configs)
    check(forwardOf("causal", 64, 64, Precision::exact, changes), {sizesOf(100, 120, 2, 1)});
}

TEST_CASE("products of operands rounded to tf32 keep their own rule, and exact ones are hundreds of times nearer") {
  const Forward exact(forwardOf("causal")), rounded(forwardOf("causal", 64, 64, Precision::tf32));
  const AttentionSizes sizes = sizesOf(150, 150, 2, 1);
  const double exactError = errorOfOut(exact, exact.call(sizes)),
               roundedError = errorOfOut(rounded, rounded.call(sizes));
  CHECK(exactError < 3e-6);
  CHECK(roundedError > 300 * exactError);
  CHECK(roundedError < 1e-2);
  check(forwardOf("causal", 64, 64, Precision::tf32), {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2)});
  check(forwardOf("longnet", 128, 128, Precision::tf32), {sizesOf(150, 130, 2, 1)});
}

TEST_CASE("exact fp32 is within twice the error of plain attention alone, without what rounding once changes") {
  for (int64_t dim : {64, 128}) {
    const Forward forward(forwardOf("full", dim, dim));
    for (int64_t seqlen : {130, 700}) {
      Call call = forward.call(sizesOf(130, seqlen, 1, 1));
      call.scale = 1 / std::sqrt(double(dim));
      const oracle::AttentionOracle definition = call.forward();
      const RoleTensors results = forward.run(call);
      double error = 0, plainError = 0;
      for (const oracle::RowId &id : oracle::sampleRows(call.inputs.sizes, 40)) {
        const auto [exact, plain] = definition.bothRows(id);
        for (int64_t c = 0; c < dim; ++c) {
          error = std::max(error, std::abs(results.out.get(id.row * dim + c) - exact.out[size_t(c)]));
          plainError = std::max(plainError, std::abs(plain.out[size_t(c)] - exact.out[size_t(c)]));
        }
      }
      INFO(dim << " " << seqlen);
      CHECK(error <= 2 * plainError);
      CHECK(error < 1e-6);
    }
  }
}

TEST_CASE("weights of fp32 add up to 1: where v is 1, out is") {
  const Forward exact(forwardOf("causal")), rounded(forwardOf("causal", 64, 64, Precision::tf32));
  for (const Forward *forward : {&exact, &rounded}) {
    Call call = forward->call(sizesOf(200, 200, 2, 1));
    for (int64_t i = 0; i < call.inputs.v.elements(); ++i)
      call.inputs.v.set(i, 1);
    const RoleTensors results = forward->run(call);
    const double allowed = forward == &exact ? 5e-7 : 3e-4;
    double largest = 0;
    for (int64_t i = 0; i < results.out.elements(); ++i)
      largest = std::max(largest, std::abs(results.out.get(i) - 1.0));
    CHECK(largest <= allowed);
  }
}

TEST_CASE("fp32 continues from the rows of an earlier call") {
  const Forward forward(forwardOf("full"));
  const Call whole = forward.call(sizesOf(70, 150, 2, 2));
  const RoleTensors before = forward.run(withKeys(whole, 0, 64));
  Call second = withKeys(whole, 64, 86);
  second.inputs.carryOut = before.out, second.inputs.carryLse = before.lse;
  const RoleTensors results = forward.run(second);
  for (const oracle::RoleReport &role : oracle::verifyCall(whole.kindCall(), results, 100).roles)
    CHECK(role.maxError <= role.allowedError);
}

TEST_CASE("fp32 that is NaN stays so in exactly the rows that see it") {
  for (Precision precision : {Precision::exact, Precision::tf32}) {
    const Forward forward(forwardOf("causal", 64, 64, precision));
    Call call = forward.call(sizesOf(100, 100, 1, 1));
    const uint32_t allBits = 0x7fffffff;
    std::memcpy(call.inputs.k.data.data() + 20 * 64 * 4, &allBits, 4);
    const RoleTensors results = forward.run(call);
    for (int64_t row = 0; row < 100; ++row)
      CHECK(std::isnan(results.lse.get(row)) == (row >= 20));
  }
}

TEST_CASE("gradients of fp32 by the portable kernel: lengths, groups of heads, batches, a gradient of lse") {
  checkGradients(gradientsOf("causal"), {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 150, 2, 2)}, true);
}

TEST_CASE("gradients of fp32 by the portable kernel: head dims") {
  if (takesAll())
    checkGradients(gradientsOf("causal", 128, 128), {sizesOf(100, 100, 2, 1)});
  checkGradients(gradientsOf("causal", 40, 24), {sizesOf(60, 70, 2, 2)});
  checkGradients(gradientsOf("full", 8, 120), {sizesOf(40, 50, 2, 2)});
}

TEST_CASE("gradients of fp32 by the portable kernel: branches with deltas of their own, derivatives of scores") {
  checkGradients(gradientsOf("longnet"), {sizesOf(150, 130, 2, 1)}, true);
  for (const char *pattern : takesAll() ? std::vector{"softcap", "relative_bias"} : std::vector{"softcap"}) {
    Kernel kernel = gradientsOf(pattern);
    kernel.ofArguments = true;
    checkGradients(kernel, {sizesOf(100, 100, 2, 1)});
  }
  std::vector<std::string> patterns = {"document"};
  if (takesAll())
    patterns = {"document", "dilated", "bigbird", "block_topk", "block_csr", "bias", "sink", "sliding_window", "alibi"};
  for (const std::string &pattern : patterns)
    checkGradients(gradientsOf(pattern), {sizesOf(150, 170, 6, 2)});
}

TEST_CASE("gradients of fp32 by the portable kernel: added to what is given, and in no order") {
  checkGradients(gradientsOf("causal", 64, 64, kAccumulate), {sizesOf(100, 70, 2, 1)});
  checkGradients(gradientsOf("causal", 64, 64, kDeterministic), {sizesOf(100, 70, 2, 1)}, true);
  checkGradients(gradientsOf("causal", 64, 64, kBackward, Precision::exact, ",block_m=32,stages=3,warps=2,block_n=32"),
                 {sizesOf(100, 70, 2, 1)});
}

TEST_CASE("gradients of fp32 with products of operands rounded to tf32 keep their own rule") {
  checkGradients(gradientsOf("causal", 64, 64, kBackward, Precision::tf32), {sizesOf(130, 90, 4, 2)});
  checkGradients(gradientsOf("full", 128, 128, kDeterministic, Precision::tf32), {sizesOf(60, 90, 2, 1)});
}

TEST_CASE("gradients of fp32 at very large scores: a key that has all the weight has a weight of 1") {
  Kernel kernel = gradientsOf("causal"), forward = forwardOf("causal");
  const Forward softmax(forward);
  const std::unique_ptr<HostKernel> code = compiled(kernel, *softmax.pattern.file);
  AttentionSizes sizes = sizesOf(100, 100, 2, 1);
  sizes.headDim = sizes.valueDim = 64;
  for (double scale : {1e3, 1e6}) {
    Call forwardCall(softmax.pattern, sizes, DType::fp32, false, kForward);
    Call call(softmax.pattern, sizes, DType::fp32, false, kBackward);
    forwardCall.scale = call.scale = scale;
    const RoleTensors made = softmax.run(forwardCall);
    call.inputs.lse = made.lse, call.inputs.out = made.out;
    RoleTensors results = resultsBeforeRun(call);
    code->run(hostCall(call, results, {}));
    for (const oracle::RoleReport &role : oracle::verifyCall(call.kindCall(), results, 100).roles) {
      INFO("scale " << scale << " " << role.name() << " " << role.worst.head << " " << role.worst.row);
      CHECK(role.maxError <= role.allowedError);
    }
  }
}

TEST_CASE("gradients of fp32 by Hopper's kernel: lengths, groups of heads, batches, a gradient of lse") {
  for (Precision precision : kOfFloats)
    checkGradients(onHopper(gradientsOf("causal", 64, 64, kBackward, precision)),
                   {sizesOf(1, 1, 2, 1), sizesOf(130, 90, 4, 2, 2), sizesOf(70, 350, 2, 2)},
                   precision == Precision::exact);
}

TEST_CASE("gradients of fp32 by Hopper's kernel: head dims are multiples of 8, those of values apart") {
  for (Precision precision : kOfFloats) {
    checkGradients(onHopper(gradientsOf("causal", 128, 128, kBackward, precision)), {sizesOf(100, 200, 2, 1)});
    checkGradients(onHopper(gradientsOf("causal", 40, 24, kBackward, precision)), {sizesOf(60, 70, 2, 2)});
    checkGradients(onHopper(gradientsOf("full", 8, 120, kBackward, precision)), {sizesOf(40, 150, 2, 2)});
    if (takesAll())
      checkGradients(onHopper(gradientsOf("full", 96, 72, kBackward, precision)), {sizesOf(150, 70, 2, 2)});
  }
}

TEST_CASE("gradients of fp32 by Hopper's kernel: branches with deltas of their own, derivatives of scores") {
  for (int64_t dim : {64, 128})
    checkGradients(onHopper(gradientsOf("longnet", dim, dim)), {sizesOf(150, 130, 2, 1)}, true);
  for (const char *pattern : takesAll() ? std::vector{"softcap", "relative_bias"} : std::vector{"softcap"}) {
    Kernel kernel = onHopper(gradientsOf(pattern));
    kernel.ofArguments = true;
    checkGradients(kernel, {sizesOf(100, 100, 2, 1)});
  }
  checkGradients(onHopper(gradientsOf("softcap", 128, 128)), {sizesOf(100, 100, 2, 1)});
  std::vector<std::string> patterns = {"document", "bigbird"};
  if (takesAll())
    patterns = {"document", "dilated", "bigbird", "block_topk", "block_csr", "bias", "sink", "sliding_window", "alibi"};
  for (const std::string &pattern : patterns)
    checkGradients(onHopper(gradientsOf(pattern)), {sizesOf(150, 170, 6, 2)});
}

TEST_CASE("gradients of fp32 by Hopper's kernel: added to what is given, the same bits in every run, configurations") {
  checkGradients(onHopper(gradientsOf("causal", 64, 64, kAccumulate)), {sizesOf(100, 70, 2, 1)});
  checkGradients(onHopper(gradientsOf("causal", 128, 128, kDeterministic)), {sizesOf(100, 70, 2, 1)}, true);
  checkGradients(onHopper(gradientsOf("causal", 64, 64, kBackward, Precision::exact, ",stages=2,block_n=64")),
                 {sizesOf(250, 130, 2, 1)});
  checkGradients(onHopper(gradientsOf("longformer", 64, 64, kBackward, Precision::exact, ",long_split=4")),
                 {sizesOf(2200, 64, 1, 1)});
}

TEST_CASE("gradients of fp32 by Hopper's kernel: rows have digits of their own, however large others are") {
  const Kernel kernel = onHopper(gradientsOf("causal"));
  const Compiled pattern(fileOf(kernel));
  const std::unique_ptr<HostKernel> code = compiled(kernel, *pattern.file);
  AttentionSizes sizes = sizesOf(150, 150, 1, 1);
  sizes.headDim = sizes.valueDim = 64;
  for (Role role : {Role::q, Role::k, Role::v, Role::dOut}) {
    INFO(std::string(specOf(role).name));
    Call call(pattern, sizes, DType::fp32, false, kBackward);
    HostTensor &tensor = call.inputs.of(role);
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.set(i, std::ldexp(tensor.get(i), int(i / 64 % 5) * 20 - 80));
    takeFromForward(kernel, sizes, call);
    RoleTensors results = resultsBeforeRun(call);
    code->run(hostCall(call, results, {}));
    for (const oracle::RoleReport &result : oracle::verifyCall(call.kindCall(), results, 150).roles)
      CHECK(result.maxError <= result.allowedError);
  }
}
