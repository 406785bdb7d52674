// Forward kernels with k and v of e4m3 beside q of bf16 and fp16, without a GPU: their whole text on the host, results against the
// definition and against the processors.
#include "compiler/Io/RandomTensor.h"
#include "support/KernelOnHost.h"

using namespace heddle;
using namespace heddle::test;

namespace {

/// Another scale for each (batch, kv head).
HostTensor scalesOf(const AttentionSizes &sizes, float first) {
  HostTensor scales = HostTensor::zeros(DType::fp32, {sizes.batch, sizes.kvHeads});
  for (int64_t i = 0; i < scales.elements(); ++i)
    scales.set(i, first + float(i) / 8);
  return scales;
}

struct Forward {
  explicit Forward(const std::string &name, DType dtype = DType::bf16, int64_t headDim = 64, int64_t valueDim = 64,
                   const std::string &changes = "")
      : kernel{name, headDim, valueDim, dtype, changes, "sm_89", kForward, false, Precision::exact, DType::e4m3},
        pattern(fileOf(kernel)), code(compiled(kernel, *pattern.file)) {}

  Call call(int64_t seqlenQ, int64_t seqlenK, bool hasScales = true, int64_t batch = 1) const {
    AttentionSizes sizes;
    sizes.batch = batch, sizes.heads = 4, sizes.kvHeads = 2, sizes.seqlenQ = seqlenQ, sizes.seqlenK = seqlenK;
    sizes.headDim = kernel.headDim, sizes.valueDim = kernel.valueDim;
    Call made(pattern, sizes, kernel.dtype, false, kForward);
    AttentionInputs &inputs = made.inputs;
    inputs.k = randomNormalTensor(DType::e4m3, inputs.k.shape, 3, "k");
    inputs.v = randomNormalTensor(DType::e4m3, inputs.v.shape, 4, "v");
    if (hasScales)
      inputs.descaleK = scalesOf(sizes, 0.5f), inputs.descaleV = scalesOf(sizes, 1.25f);
    return made;
  }

  RoleTensors run(const Call &call) const { return forwardResults(*code, call); }

  void check(int64_t seqlenQ, int64_t seqlenK, bool hasScales = true, int64_t batch = 1) const {
    INFO(kernel.pattern << kernel.changes << " q " << seqlenQ << " k " << seqlenK);
    const Call made = call(seqlenQ, seqlenK, hasScales, batch);
    const oracle::KindReport report = oracle::verifyCall(made.kindCall(), run(made), 100);
    REQUIRE(report.roles.size() == 2);
    for (const oracle::RoleReport &role : report.roles) {
      INFO(role.name() << " batch " << role.worst.batch << " head " << role.worst.head << " row " << role.worst.row);
      CHECK(role.maxError <= role.allowedError);
    }
  }

  Kernel kernel;
  Compiled pattern;
  std::unique_ptr<HostKernel> code;
};

} // namespace

TEST_CASE("lengths, groups of heads, a scale for each kv head, or none") {
  const Forward forward("causal");
  forward.check(70, 70);
  forward.check(1, 20, /*hasScales=*/true, /*batch=*/2);
  forward.check(20, 20, /*hasScales=*/false);
}

TEST_CASE("types of q, head dims, configurations and patterns") {
  Forward("full", DType::fp16, 128, 64).check(20, 60);
  Forward("causal", DType::bf16, 64, 128, ",stages=1,block_n=32,chunk_n=32,block_m=64,warps=4").check(40, 40);
  Forward("sink", DType::bf16, 64, 64, ",overlap_scores=1,rescale_threshold=0,block_m=64,warps=4").check(40, 40);
}

TEST_CASE("a call that continues from another one, in units of its own scales") {
  const Forward forward("full");
  Call whole = forward.call(20, 64);
  const RoleTensors all = forward.run(whole);
  const auto keysOf = [&](int64_t first, int64_t last) {
    Call part = forward.call(20, last - first);
    constexpr int64_t kPerKey = 2 * 64;
    for (Role role : {Role::k, Role::v})
      std::copy_n(whole.inputs.of(role).data.begin() + first * kPerKey, (last - first) * kPerKey,
                  part.inputs.of(role).data.begin());
    part.inputs.q = whole.inputs.q;
    return part;
  };
  const RoleTensors first = forward.run(keysOf(0, 40));
  Call second = keysOf(40, 64);
  second.inputs.carryOut = first.out, second.inputs.carryLse = first.lse;
  const RoleTensors joined = forward.run(second);
  for (int64_t i = 0; i < all.out.elements(); ++i) // weights are rounded to fp16
    REQUIRE(std::abs(joined.out.get(i) - all.out.get(i)) <= 0x1p-10 * (0.3 + std::abs(all.out.get(i))));
}
