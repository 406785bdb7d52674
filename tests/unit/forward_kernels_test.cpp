// Forward kernels of Hopper in 16 bits without a GPU: their whole text on the host, a thread at a time; results against the
// definition. Both softmaxes, scores far wider than fp32 holds weights of, every way of dealing items out, items in parts.
#include "support/KernelOnHost.h"

using namespace heddle;
using namespace heddle::test;

namespace {

void check(const Kernel &kernel, const AttentionSizes &shape, std::initializer_list<float> scales) {
  INFO(kernel.pattern << kernel.changes << " d " << kernel.headDim << " " << dtypeName(kernel.dtype));
  const Compiled pattern(fileOf(kernel));
  const std::unique_ptr<HostKernel> code = compiled(kernel, *pattern.file);
  AttentionSizes sizes = shape;
  sizes.headDim = kernel.headDim, sizes.valueDim = kernel.valueDim;
  for (float wider : scales) {
    INFO("scores " << wider << " times as wide");
    Call call(pattern, sizes, kernel.dtype, false, kernel.kind);
    HostTensor &q = call.inputs.of(Role::q);
    for (int64_t i = 0; i < q.elements(); ++i)
      q.set(i, q.get(i) * wider);
    oracle::KindCall definition = call.kindCall();
    definition.outDType = DType::fp32;
    const oracle::KindReport report = oracle::verifyCall(definition, forwardResults(*code, call), 100);
    CHECK(report.roles.size() == 2);
    for (const oracle::RoleReport &role : report.roles) {
      INFO(role.name() << " " << role.worst.head << " " << role.worst.row);
      CHECK(role.maxError <= role.allowedError);
    }
  }
}

Kernel kernelOf(const std::string &pattern, DType dtype, int64_t headDim, const std::string &changes) {
  return {pattern, headDim, headDim, dtype, changes, kHopper, kForward};
}

constexpr const char *kCausalAtTheEnd =
    "attn.pattern @p() q_origin(end) {\n%m = attn.causal\nattn.softmax union(%m)\n}";

/// Of the last rows of 300 their out, alone or among all: bytes of [rows, heads, dim].
std::vector<std::byte> outOfLastRows(const HostKernel &code, const Compiled &pattern, const Kernel &kernel,
                                     int64_t rows, bool areAlone) {
  constexpr int64_t kRows = 300;
  auto callOf = [&](int64_t queries) {
    AttentionSizes sizes = sizesOf(queries, kRows, 2, 1);
    sizes.batch = 1, sizes.headDim = kernel.headDim, sizes.valueDim = kernel.valueDim;
    return Call(pattern, sizes, kernel.dtype, false, kernel.kind);
  };
  Call all = callOf(kRows), alone = callOf(rows);
  HostTensor &q = all.inputs.of(Role::q); // maxima move by more than the threshold
  for (int64_t i = 0; i < q.elements(); ++i)
    q.set(i, q.get(i) * 16);
  auto last = [&](const HostTensor &tensor) {
    return std::vector<std::byte>(tensor.data.end() - int64_t(tensor.data.size()) * rows / kRows, tensor.data.end());
  };
  if (!areAlone)
    return last(forwardResults(code, all).of(Role::out));
  for (Role role : {Role::k, Role::v})
    alone.inputs.of(role).data = all.inputs.of(role).data;
  alone.inputs.of(Role::q).data = last(all.inputs.of(Role::q));
  return forwardResults(code, alone).of(Role::out).data;
}

/// Where rows lie otherwise in query tiles.
bool haveSameBitsAlone(const std::string &changes) {
  const Kernel kernel = kernelOf(kCausalAtTheEnd, DType::bf16, 64, changes);
  const Compiled pattern(fileOf(kernel));
  const std::unique_ptr<HostKernel> code = compiled(kernel, *pattern.file);
  bool areSame = true;
  for (int64_t rows : {223, 90})
    areSame &= outOfLastRows(*code, pattern, kernel, rows, true) == outOfLastRows(*code, pattern, kernel, rows, false);
  return areSame;
}

} // namespace

TEST_CASE("bits of a row do not depend on those beside it, but by a threshold of a warp or anchors of whole tiles") {
  const std::string tiles = ",block_m=128,block_n=64,stages=2";
  CHECK(haveSameBitsAlone(tiles + ",softmax=0,rescale_threshold=0"));
  CHECK(haveSameBitsAlone(tiles + ",softmax=2,rescale_threshold=8"));
  CHECK(haveSameBitsAlone(",block_m=192,block_n=32,stages=2,turn_taking=1,softmax=2,rescale_threshold=1"));
  CHECK(haveSameBitsAlone(",block_m=192,block_n=32,stages=2,turn_taking=1,softmax=0,rescale_threshold=0"));
  CHECK_FALSE(haveSameBitsAlone(tiles + ",softmax=0,rescale_threshold=8"));
  CHECK_FALSE(haveSameBitsAlone(tiles + ",softmax=1,rescale_threshold=0"));
}

TEST_CASE("defaults: patterns with one range, with several, at strides") {
  for (const char *pattern : {"causal", "full", "sliding_window", "longformer", "dilated", "softcap"})
    check(kernelOf(pattern, DType::bf16, 64, ""), sizesOf(260, 260, 2, 1), {1.0f, 64.0f});
  check(kernelOf("causal", DType::fp16, 128, ""), sizesOf(130, 210, 2, 2), {1.0f, 64.0f});
}

TEST_CASE("anchored: rows that are computed again, maxima that move behind whole tiles") {
  for (const char *pattern : {"full", "causal", "sliding_window"})
    for (const char *grid : {"0", "1", "3"})
      check(kernelOf(pattern, DType::bf16, 64,
                     std::string(",block_m=128,block_n=32,stages=3,split_last=0,softmax=1,grid=") + grid),
            sizesOf(300, 300, 2, 1), {1.0f, 16.0f, 200.0f});
  check(kernelOf("causal", DType::bf16, 128, ",block_m=128,block_n=32,stages=2,softmax=1"), sizesOf(300, 300, 1, 1),
        {1.0f, 16.0f, 200.0f});
}

TEST_CASE("online: with and without turns, items in parts, every tile rescaled") {
  for (const char *changes :
       {",block_m=192,block_n=32,softmax=0,turn_taking=1", ",block_m=128,block_n=32,softmax=0,turn_taking=0",
        ",block_m=64,block_n=32,softmax=0,turn_taking=0,rescale_threshold=0", ",block_m=128,block_n=64,softmax=2",
        ",block_m=128,block_n=32,stages=3,split_last=0,grid=1,softmax=0,split_tiles=4"})
    check(kernelOf("full", DType::bf16, 64, changes), sizesOf(300, 300, 2, 1), {1.0f, 200.0f});
}
