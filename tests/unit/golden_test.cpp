//===- golden_test.cpp - golden numbers through pattern text ------------------===//
// Sums over two heads of two channels, made outside of this project in double precision, for patterns as an author
// writes them: the definition must meet them (inputs are rounded to fp32), and so must the CPU target.
//===----------------------------------------------------------------------===//
#include "codegen/Cpu/CpuAttention.h"
#include "compiler/Oracle/AttentionOracle.h"
#include "support/PatternFiles.h"

#include <cmath>

using namespace heddle;
using namespace heddle::test;

namespace {

// q = sin(1 + t + 3h + 5c), k = cos(2 + 2t + h + 3c), v = sin(t/2 + 2h + 7c).
AttentionInputs goldenInputs(int64_t n) {
  std::vector<float> q, k, v;
  for (int64_t t = 0; t < n; ++t)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t c = 0; c < 2; ++c) {
        q.push_back(float(std::sin(double(1 + t + 3 * h + 5 * c))));
        k.push_back(float(std::cos(double(2 + 2 * t + h + 3 * c))));
        v.push_back(float(std::sin(0.5 * double(t) + double(2 * h + 7 * c))));
      }
  auto tensor = [&](const std::vector<float> &values) {
    return HostTensor::fromFloats(DType::fp32, {1, n, 2, 2}, values);
  };
  auto inputs = makeAttentionInputs(tensor(q), tensor(k), tensor(v));
  REQUIRE(inputs.isOk());
  return inputs.take();
}

struct Sums {
  double sum = 0, squares = 0;
  void add(double value) {
    sum += value;
    squares += value * value;
  }
};

void checkNear(Sums got, Sums expected, double tolerance) {
  CHECK(std::abs(got.sum - expected.sum) < tolerance);
  CHECK(std::abs(got.squares - expected.squares) < tolerance);
}

Sums ofDefinition(const PatternFile &file, const AttentionInputs &inputs, int64_t n) {
  oracle::AttentionOracle definition(file.pattern(), {2, n, n, 0, 0, {}}, inputs, 1 / std::sqrt(2.0));
  Sums sums;
  for (const oracle::RowId &id : oracle::sampleRows(inputs.sizes, 2 * n))
    for (double value : definition.exactRow(id).out)
      sums.add(value);
  return sums;
}

Sums ofCpu(const PatternFile &file, const AttentionInputs &inputs, int64_t n) {
  auto schedule = file.schedule();
  REQUIRE(schedule.isOk());
  auto pattern = JitPattern::create(*schedule->functions,
                                    {schedule->name, 0, int(schedule->variants.size()), int(schedule->branchCount)});
  REQUIRE(succeeded(pattern));
  std::vector<float> out(inputs.q.elements(), std::nanf(""));
  CpuAttentionArgs args;
  args.q = inputs.q.data.data();
  args.k = inputs.k.data.data();
  args.v = inputs.v.data.data();
  args.out = out.data();
  args.qStride = args.kStride = args.vStride = args.outStride = denseStrides(n, 2, 2);
  args.heads = args.kvHeads = 2;
  args.seqlenQ = args.seqlenK = int32_t(n);
  args.headDim = args.valueDim = 2;
  args.scale = float(1 / std::sqrt(2.0));
  args.blockM = args.blockN = 4;
  REQUIRE(runAttention(*pattern, args).isOk());
  Sums sums;
  for (float value : out)
    sums.add(value);
  return sums;
}

void check(const std::string &text, Sums expected, int64_t n = 8) {
  CAPTURE(text);
  auto file = parsed(text);
  AttentionInputs inputs = goldenInputs(n);
  checkNear(ofDefinition(*file, inputs, n), expected, 3e-6);
  checkNear(ofCpu(*file, inputs, n), expected, 2e-5);
}

std::string pattern(const std::string &mask, const std::string &rest) {
  return "attn.pattern @p() {\n%a = attn." + mask + "\n" + rest + "\n}";
}

const char *const kPartition = R"(
  %n = attn.dilate %a by 1 rule(group)
  %f = attn.dilate %a by 2 rule(group)
  %s0 = attn.segment %n by [4]
  %s1 = attn.segment %f by [8]
  %m = attn.heads %s0, %s1
  attn.softmax union(%m))";

std::string branches(const char *combine) {
  return std::string(
             "%f = attn.dilate %a by 2 rule(block)\n%s0 = attn.segment %a by [4]\n%s1 = attn.segment %f by [8]\n"
             "attn.softmax ") +
         combine + "(%s0, %s1)";
}

} // namespace

TEST_CASE("dense") {
  check(pattern("full", "attn.softmax union(%a)"), {0.649877735672, 4.568262552307});
  check(pattern("causal", "attn.softmax union(%a)"), {9.301722002202, 8.436149982488});
}

TEST_CASE("partition of heads") {
  check(pattern("full", kPartition), {2.599627809581, 6.608569731270});
  check(pattern("causal", kPartition), {5.684819296876, 6.229058427448});
}

TEST_CASE("one softmax over the multiset of two branches") {
  check(pattern("full", branches("lse")), {0.444507006163, 8.407315586182});
  check(pattern("causal", branches("lse")), {3.732409248306, 10.883966493203});
}

TEST_CASE("a short last segment has no padding keys") {
  check(pattern("full", branches("lse")), {-2.185849414877, 12.312685833796}, 10);
  check(pattern("causal", branches("lse")), {0.777241742852, 14.672780845577}, 10);
}

TEST_CASE("one softmax over the union of the same branches") {
  check(pattern("full", branches("union")), {0.359020563032, 8.285801484033});
  check(pattern("causal", branches("union")), {4.148114375502, 11.015487631855});
}

TEST_CASE("neighbouring blocks") {
  std::string blocks = std::string("attn.pattern @p() {\n") + kNeighbourBlocks;
  check(blocks + "\nattn.softmax union(%m)\n}", {0.489662458063, 9.686076211076});
  check(blocks + "\n%c = attn.causal\n%x = attn.and %m, %c\nattn.softmax union(%x)\n}",
        {4.744611610254, 11.803695696792});
}
