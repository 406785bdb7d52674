// Scales of elements of e4m3 in files: of a whole tensor, of each head, and where there are none.
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/Safetensors.h"
#include "scratch_fixture.h"

#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr AttentionSizes kSmall{2, 5, 7, 4, 2, 8, 16};

bool mentions(const Status &status, const std::string &text) {
  return status.message().find(text) != std::string::npos;
}

HostTensor scalar(float value) { return HostTensor::fromFloats(DType::fp32, {}, {value}); }

/// What a file of these inputs is read as, with one tensor in the place of another.
Result<AttentionInputs> through(const AttentionInputs &inputs, const char *name, const HostTensor &other) {
  const ScratchFolder scratch;
  const std::string path = scratch.path() + "/scales.safetensors";
  REQUIRE(writeSafetensors(path, {{"q", &inputs.q}, {"k", &inputs.k}, {"v", &inputs.v}, {name, &other}}).isOk());
  return readAttentionInputs(path);
}

} // namespace

TEST_CASE("a scale of no dimensions is that of every head of its tensor") {
  const AttentionInputs inputs = *randomAttentionInputs(kSmall, DType::e4m3, 3);
  for (const auto &[role, name, heads] : {std::tuple(Role::descaleQ, "descale_q", 4),
                                          {Role::descaleK, "descale_k", 2},
                                          {Role::descaleV, "descale_v", 2}}) {
    const Result<AttentionInputs> read = through(inputs, name, scalar(0.25f));
    REQUIRE_MESSAGE(read.isOk(), read.status().message());
    CHECK(read->of(role).shape == std::vector<int64_t>{2, heads});
    CHECK(read->of(role).toFloats() == std::vector<float>(size_t(2 * heads), 0.25f));
  }
  CHECK(mentions(through(inputs, "descale_q", scalar(-1)).status(), "descale_q: element 0: expected a finite number"));
  CHECK(mentions(through(inputs, "carry_lse", scalar(0)).status(), "tensor 'carry_lse' is fp32 []; expected 3 dim"));
}

TEST_CASE("elements without scales have none, in files either") {
  const AttentionInputs inputs = *randomAttentionInputs(kSmall, DType::bf16, 3);
  const HostTensor ofHeads = HostTensor::fromFloats(DType::fp32, {2, 2}, {1, 1, 1, 1});
  for (const HostTensor &scale : {scalar(5), ofHeads})
    CHECK(mentions(through(inputs, "descale_v", scale).status(),
                   "tensor 'descale_v' is fp32 [2, 2], beside v of bf16, which has no scales"));
}
