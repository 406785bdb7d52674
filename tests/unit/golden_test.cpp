//===- golden_test.cpp - golden numbers through pattern text ------------------===//
// Sums over two heads of two channels, made outside of this project in double precision, for patterns as an author
// writes them: the definition must meet them (inputs are rounded to fp32), and so must the CPU target.
//===----------------------------------------------------------------------===//
#include "codegen/Cpu/CpuAttention.h"
#include "compiler/Session/CompileForCpu.h"
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
  auto inputs = makeAttentionInputs({tensor(q), tensor(k), tensor(v)});
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

/// out[row * 2 + head] by the definition.
std::vector<std::vector<double>> definedRows(const PatternFile &file, const AttentionInputs &inputs, int64_t n) {
  oracle::AttentionOracle definition(file.pattern(), {2, n, n, 0, 0, {}}, inputs, 1 / std::sqrt(2.0));
  std::vector<std::vector<double>> rows(2 * n);
  for (const oracle::RowId &id : oracle::sampleRows(inputs.sizes, 2 * n))
    rows[2 * id.row + id.head] = definition.bothRows(id).exact.out;
  return rows;
}

Sums sumsOf(const std::vector<std::vector<double>> &rows) {
  Sums sums;
  for (const std::vector<double> &row : rows)
    for (double value : row)
      sums.add(value);
  return sums;
}

Sums ofDefinition(const PatternFile &file, const AttentionInputs &inputs, int64_t n) {
  return sumsOf(definedRows(file, inputs, n));
}

Sums ofCpu(const PatternFile &file, const AttentionInputs &inputs, int64_t n) {
  auto pattern = compileForCpu(file);
  REQUIRE(pattern.isOk());
  std::vector<float> out(inputs.q.elements(), std::nanf(""));
  CpuCall args;
  args.give(Role::q, inputs.q.data.data());
  args.give(Role::k, inputs.k.data.data());
  args.give(Role::v, inputs.v.data.data());
  args.give(Role::out, out.data());
  args.heads = args.kvHeads = 2;
  args.seqlenQ = args.seqlenK = int32_t(n);
  args.headDim = args.valueDim = 2;
  args.scale = float(1 / std::sqrt(2.0));
  args.blockM = args.blockN = 4;
  args.pattern = pattern->get();
  REQUIRE(runAttention(args).isOk());
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

TEST_CASE("the same blocks, as a mask of blocks") {
  const std::string blocks = "attn.pattern @p() {\n%w = attn.window [1, 1]\n%m = attn.blocks %w by [2]\n";
  check(blocks + "attn.softmax union(%m)\n}", {0.489662458063, 9.686076211076});
  check(blocks + "%c = attn.causal\n%x = attn.and %m, %c\nattn.softmax union(%x)\n}",
        {4.744611610254, 11.803695696792});
}

TEST_CASE("what the parent library does to the partition afterwards") {
  auto file = parsed(pattern("full", kPartition));
  auto rows = definedRows(*file, goldenInputs(8), 8);
  auto divided = rows, scaled = rows;
  for (size_t head = 0; head < 2; ++head)
    for (size_t c = 0; c < 2; ++c) {
      double total = 0;
      for (size_t t = 0; t < 8; ++t)
        total += rows[2 * t + head][c];
      for (size_t t = 0; t < 8; ++t) {
        divided[2 * t + head][c] /= 2;        // by the number of groups
        scaled[2 * t + head][c] /= 2 * total; // and by the sum over the sequence
      }
    }
  checkNear(sumsOf(divided), {1.299813904790, 1.652142432817}, 3e-6);
  checkNear(sumsOf(scaled), {2.000000000000, 0.301824617638}, 3e-6);
}

namespace {

/// A key of the toy inputs: its position and head, or a padding key of zeros.
struct ToyKey {
  int64_t t, head;
  bool isPadding = false;
};

/// Softmax over `keys` for query (t, head), in a few lines that share nothing with the project.
std::vector<double> attend(int64_t t, int64_t head, const std::vector<ToyKey> &keys) {
  double weights = 0;
  std::vector<double> out(2);
  for (const ToyKey &key : keys) {
    double score = 0;
    for (int64_t c = 0; c < 2 && !key.isPadding; ++c)
      score += std::sin(double(1 + t + 3 * head + 5 * c)) * std::cos(double(2 + 2 * key.t + key.head + 3 * c));
    double weight = std::exp(score / std::sqrt(2.0));
    weights += weight;
    for (int64_t c = 0; c < 2 && !key.isPadding; ++c)
      out[c] += weight * std::sin(0.5 * double(key.t) + double(2 * key.head + 7 * c));
  }
  for (double &value : out)
    value /= weights;
  return out;
}

template <class Rule> std::vector<std::vector<double>> rowsBy(int64_t n, Rule rule) {
  std::vector<std::vector<double>> rows;
  for (int64_t t = 0; t < n; ++t)
    for (int64_t head = 0; head < 2; ++head)
      rows.push_back(rule(t, head));
  return rows;
}

/// The wrong rule has the numbers that are on record for it, and the pattern does not have them.
void checkDiffers(const std::vector<std::vector<double>> &wrong, Sums recorded, const std::string &text, int64_t n) {
  checkNear(sumsOf(wrong), recorded, 1e-11);
  auto file = parsed(text);
  AttentionInputs inputs = goldenInputs(n);
  for (Sums ours : {ofDefinition(*file, inputs, n), ofCpu(*file, inputs, n)})
    CHECK(std::abs(ours.squares - recorded.squares) > 1);
}

} // namespace

TEST_CASE("wrong: one softmax for each block, summed") {
  auto wrong = rowsBy(8, [](int64_t t, int64_t head) {
    std::vector<double> sum(2);
    for (int64_t block = std::max<int64_t>(t / 2 - 1, 0); block <= std::min<int64_t>(t / 2 + 1, 3); ++block) {
      std::vector<double> part = attend(t, head, {{2 * block, head}, {2 * block + 1, head}});
      for (size_t c = 0; c < 2; ++c)
        sum[c] += part[c];
    }
    return sum;
  });
  std::string ours = std::string("attn.pattern @p() {\n") + kNeighbourBlocks + "\nattn.softmax union(%m)\n}";
  checkDiffers(wrong, {1.120563392329, 60.151511183523}, ours, 8);
}

TEST_CASE("wrong: the axis of heads taken for the sequence") {
  auto wrong = rowsBy(8, [](int64_t t, int64_t head) { return attend(t, head, {{t, 0}, {t, 1}}); });
  checkDiffers(wrong, {0.200896379993, 5.835357914299}, pattern("full", "attn.softmax union(%a)"), 8);
}

TEST_CASE("wrong: zero keys that pad the last segment are attended to") {
  auto wrong = rowsBy(10, [](int64_t t, int64_t head) {
    std::vector<ToyKey> keys;
    for (int64_t j = t / 4 * 4; j < t / 4 * 4 + 4; ++j)
      keys.push_back({j, head, j >= 10});
    for (int64_t j = t / 8 * 8; j < t / 8 * 8 + 8; ++j)
      if (t % 2 == head && j % 2 == head)
        keys.push_back({j, head, j >= 10});
    return attend(t, head, keys);
  });
  checkDiffers(wrong, {-0.380756356850, 8.979599614771}, pattern("full", branches("lse")), 10);
}
