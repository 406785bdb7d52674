// CPU attention against the fp64 definition: every hand-written pattern, odd lengths, shifted origins,
// grouped heads, padded strides with NaN between the rows, and the edge cases of rows and carries.
#include "codegen/Cpu/JitPattern.h"
#include "support/AttentionCase.h"
#include "support/ModuleLoader.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

CpuCall argsFor(AttentionCase &attention, const HandPattern &pattern) {
  CpuCall args = attention.args();
  args.params = pattern.params;
  return args;
}

void runAndCompare(const JitPattern &jit, const HandPattern &pattern, const CaseShape &shape, int blockM, int blockN) {
  AttentionCase attention(shape, 17 * shape.seqlenQ + shape.seqlenK);
  CpuCall args = argsFor(attention, pattern);
  args.blockM = blockM;
  args.blockN = blockN;
  Result<CpuAttentionCounts> counts = runAttention(jit, args);
  REQUIRE(counts.isOk());
  AttentionCase::Errors errors = attention.compare(pattern);
  INFO(pattern.name() << " " << dtypeName(shape.dtype) << " q " << shape.seqlenQ << " k " << shape.seqlenK << " tile "
                      << blockM << "x" << blockN);
  CHECK(errors.out <= 1.0);
  CHECK(errors.lse <= 1e-4);
  CHECK(errors.paddingIsUntouched);
}

CaseShape shapeOf(int seqlenQ, int seqlenK, int qOrigin = 0, int kOrigin = 0) {
  CaseShape shape;
  shape.seqlenQ = seqlenQ;
  shape.seqlenK = seqlenK;
  shape.qOrigin = qOrigin;
  shape.kOrigin = kOrigin;
  return shape;
}

} // namespace

TEST_CASE("every pattern equals the definition at odd lengths and any tile size") {
  for (const HandPattern &pattern : allHandPatterns()) {
    JitPattern jit = compileForCpu(pattern);
    for (CaseShape shape : {shapeOf(1, 1), shapeOf(37, 37), shapeOf(13, 61, 48), shapeOf(61, 13), shapeOf(29, 50, 7, 3),
                            shapeOf(130, 131)}) {
      shape.padding = 3;
      for (auto [blockM, blockN] : {std::pair(64, 64), std::pair(1, 1), std::pair(5, 7), std::pair(33, 20)})
        runAndCompare(jit, pattern, shape, blockM, blockN);
    }
  }
}

TEST_CASE("every pattern equals the definition at both ends of what positions may be") {
  constexpr int end = 1 << 30;
  for (const HandPattern &pattern : allHandPatterns()) {
    JitPattern jit = compileForCpu(pattern);
    for (CaseShape shape :
         {shapeOf(37, 37, end - 37, end - 37), shapeOf(13, 61, end - 13, 0), shapeOf(61, 13, 61 - end, 61 - 13),
          shapeOf(29, 50, -end, -end), shapeOf(29, 50, 0, end - 50)})
      runAndCompare(jit, pattern, shape, 33, 20);
  }
}

TEST_CASE("bf16 and fp16 differ from the definition by the rounding of the output only") {
  for (const HandPattern &pattern : {causalPattern(), dilatedPattern(), twoBranchPattern()}) {
    JitPattern jit = compileForCpu(pattern);
    for (DType dtype : {DType::bf16, DType::fp16}) {
      CaseShape shape = shapeOf(67, 67);
      shape.dtype = dtype;
      shape.padding = 5;
      runAndCompare(jit, pattern, shape, 64, 64);
    }
  }
}

TEST_CASE("batches, grouped heads and different head and value dims") {
  HandPattern pattern = causalPattern();
  JitPattern jit = compileForCpu(pattern);
  for (auto [heads, kvHeads] : {std::pair(6, 2), std::pair(4, 1), std::pair(3, 3)}) {
    CaseShape shape = shapeOf(21, 40, 19);
    shape.batch = 2;
    shape.heads = heads;
    shape.kvHeads = kvHeads;
    shape.headDim = 7;
    shape.valueDim = 19;
    runAndCompare(jit, pattern, shape, 16, 16);
  }
}

TEST_CASE("rows that keep nothing get 0 and -inf, also without any key") {
  HandPattern pattern = causalPattern();
  JitPattern jit = compileForCpu(pattern);
  for (CaseShape shape : {shapeOf(9, 4, 0, 5), shapeOf(9, 0)}) {
    AttentionCase attention(shape, 3);
    REQUIRE(runAttention(jit, attention.args()).isOk());
    // Keys start at position 5, so rows 0 to 4 keep nothing.
    for (int row = 0; row < (shape.seqlenK ? 5 : 9); ++row)
      for (int head = 0; head < shape.heads; ++head) {
        CHECK(attention.lse[head * shape.seqlenQ + row] == -INFINITY);
        for (int d = 0; d < shape.valueDim; ++d)
          CHECK(attention.out.get(0, row, head, d) == 0.0);
      }
    CHECK(attention.compare(pattern).out <= 1.0);
  }
}

TEST_CASE("keys that are no finite numbers change the rows that keep them, and no others") {
  HandPattern pattern = causalPattern();
  JitPattern jit = compileForCpu(pattern);
  constexpr int bad = 20, rows = 45;
  for (DType dtype : {DType::fp32, DType::bf16, DType::fp16})
    for (double number : {double(NAN), double(INFINITY), -double(INFINITY)}) {
      CaseShape shape = shapeOf(rows, rows);
      shape.dtype = dtype;
      AttentionCase whole(shape, 6), broken(shape, 6);
      for (int d = 0; d < shape.valueDim; ++d)
        broken.k.set(0, bad, 0, d, number);
      broken.v.set(0, bad, 1, 3, number);
      REQUIRE(runAttention(jit, whole.args()).isOk());
      REQUIRE(runAttention(jit, broken.args()).isOk());
      long changed = 0, kept = 0;
      for (int row = 0; row < rows; ++row)
        for (int head = 0; head < shape.heads; ++head)
          for (int d = 0; d < shape.valueDim; ++d) {
            const bool isMeant = row >= bad && (head == 0 || d == 3);
            const double value = broken.out.get(0, row, head, d);
            changed += !isMeant && value != whole.out.get(0, row, head, d);
            kept += head == 1 && isMeant && !std::isfinite(value);
          }
      CHECK(changed == 0);
      CHECK(kept == rows - bad);
    }
}

TEST_CASE("values up to the largest number over the kept keys do not overflow") {
  HandPattern pattern = fullPattern();
  JitPattern jit = compileForCpu(pattern);
  AttentionCase attention(shapeOf(9, 64), 6);
  attention.fillValues(3.3e38 / 64);
  REQUIRE(runAttention(jit, attention.args()).isOk());
  for (int row = 0; row < 9; ++row)
    CHECK(attention.out.get(0, row, 0, 0) == doctest::Approx(3.3e38 / 64).epsilon(1e-5));
}

TEST_CASE("one kept key gives its value and its score") {
  HandPattern pattern = windowPattern(0, 0);
  JitPattern jit = compileForCpu(pattern);
  AttentionCase attention(shapeOf(70, 70), 5);
  REQUIRE(runAttention(jit, argsFor(attention, pattern)).isOk());
  for (int row = 0; row < 70; ++row)
    for (int d = 0; d < 16; ++d)
      CHECK(attention.out.get(0, row, 1, d) == doctest::Approx(attention.v.get(0, row, 1, d)));
  CHECK(attention.compare(pattern).lse <= 1e-5);
}

TEST_CASE("values of one give one wherever a key is kept") {
  HandPattern pattern = dilatedPattern();
  JitPattern jit = compileForCpu(pattern);
  AttentionCase attention(shapeOf(100, 100), 6);
  attention.fillValues(1.0);
  REQUIRE(runAttention(jit, attention.args()).isOk());
  int ones = 0, zeros = 0, others = 0;
  for (double value : attention.out.dense()) {
    ones += std::abs(value - 1.0) < 1e-6;
    zeros += value == 0.0;
    others += !(std::abs(value - 1.0) < 1e-6) && value != 0.0;
  }
  // Head 0 keeps something in all 100 rows, head 1 in the 33 rows with remainder 1.
  CHECK(ones == (100 + 33) * 16);
  CHECK(zeros == 67 * 16);
  CHECK(others == 0);
}

TEST_CASE("keys beyond the length and keys outside visited tiles are never read") {
  HandPattern pattern = windowPattern(3, 0);
  JitPattern jit = compileForCpu(pattern);
  AttentionCase attention(shapeOf(8, 64, 40), 7);
  // Rows at 40..47 keep keys 37..47; with tiles of 8 everything outside [32, 48) is unvisited.
  for (int row = 0; row < 64; ++row)
    if (row < 32 || row >= 48)
      for (int head = 0; head < 2; ++head)
        for (int d = 0; d < 16; ++d) {
          attention.k.set(0, row, head, d, std::nan(""));
          attention.v.set(0, row, head, d, std::nan(""));
        }
  CpuCall args = argsFor(attention, pattern);
  args.blockN = 8;
  REQUIRE(runAttention(jit, args).isOk());
  for (double value : attention.out.dense())
    CHECK(std::isfinite(value));
  args.seqlenK = 42; // now rows from 45 on keep nothing, and tile 5 has two keys
  REQUIRE(runAttention(jit, args).isOk());
  CHECK(attention.lse[4] != -INFINITY);
  CHECK(attention.lse[5] == -INFINITY);
  for (double value : attention.out.dense())
    CHECK(std::isfinite(value));
}

TEST_CASE("a NaN in a kept key is not hidden") {
  HandPattern pattern = fullPattern();
  JitPattern jit = compileForCpu(pattern);
  AttentionCase attention(shapeOf(3, 20), 8);
  attention.k.set(0, 11, 0, 2, std::nan(""));
  REQUIRE(runAttention(jit, attention.args()).isOk());
  CHECK(std::isnan(attention.out.get(0, 0, 0, 0)));
  CHECK(std::isfinite(attention.out.get(0, 0, 1, 0)));
}

TEST_CASE("a carry continues the softmax over the other keys") {
  for (const HandPattern &pattern : {fullPattern(), causalPattern()}) {
    JitPattern jit = compileForCpu(pattern);
    AttentionCase attention(shapeOf(50, 50), 9);
    CpuCall head = attention.args(), tail = attention.args();
    head.seqlenK = 23;
    REQUIRE(runAttention(jit, head).isOk());
    std::vector<float> carryLse = attention.lse, carryOut;
    for (double value : attention.out.dense())
      carryOut.push_back(float(value));
    tail.seqlenK = 27;
    tail.kOrigin = 23;
    for (Role role : {Role::k, Role::v})
      tail.give(role, tail.as<float>(role) + 23 * tail.stridesOf(role)[1], tail.stridesOf(role));
    tail.give(Role::carryOut, carryOut.data());
    tail.give(Role::carryLse, carryLse.data());
    REQUIRE(runAttention(jit, tail).isOk());
    AttentionCase::Errors errors = attention.compare(pattern);
    INFO(pattern.name());
    CHECK(errors.out <= 1.0);
    CHECK(errors.lse <= 1e-4);
  }
}

TEST_CASE("rows whose scores are NaN have lse NaN, in whatever pieces their keys come") {
  JitPattern jit = compileForCpu(causalPattern());
  constexpr int rows = 50, bad = 20, cut = 23;
  for (bool isQuery : {true, false}) {
    AttentionCase attention(shapeOf(rows, rows), 9);
    for (int d = 0; d < attention.shape.headDim; ++d)
      (isQuery ? attention.q : attention.k).set(0, bad, 0, d, NAN);
    const auto checkLse = [&](const char *when) {
      INFO(when << (isQuery ? ", a query" : ", a key"));
      for (int row = 0; row < rows; ++row) {
        CHECK(std::isnan(attention.lse[row]) == (isQuery ? row == bad : row >= bad));
        CHECK(std::isnan(attention.out.get(0, row, 0, 0)) == std::isnan(attention.lse[row]));
        CHECK(std::isfinite(attention.lse[rows + row]));
      }
    };
    REQUIRE(runAttention(jit, attention.args()).isOk());
    checkLse("at once");
    CpuCall head = attention.args(), tail = attention.args();
    head.seqlenK = cut, tail.seqlenK = rows - cut, tail.kOrigin = cut;
    REQUIRE(runAttention(jit, head).isOk());
    checkLse("the first keys");
    const std::vector<double> out = attention.out.dense();
    std::vector<float> carryLse = attention.lse, carryOut(out.begin(), out.end());
    for (Role role : {Role::k, Role::v})
      tail.give(role, tail.as<float>(role) + cut * tail.stridesOf(role)[1], tail.stridesOf(role));
    tail.give(Role::carryOut, carryOut.data());
    tail.give(Role::carryLse, carryLse.data());
    REQUIRE(runAttention(jit, tail).isOk());
    checkLse("the others");
  }
}

TEST_CASE("the number of threads changes no bit") {
  HandPattern pattern = twoBranchPattern();
  JitPattern jit = compileForCpu(pattern);
  AttentionCase one(shapeOf(300, 300), 10), many(shapeOf(300, 300), 10);
  CpuCall args = one.args();
  args.threads = 1;
  REQUIRE(runAttention(jit, args).isOk());
  args = many.args();
  args.threads = 5;
  REQUIRE(runAttention(jit, args).isOk());
  CHECK(one.out.dense() == many.out.dense());
  CHECK(one.lse == many.lse);
}

TEST_CASE("counts follow the tiles: a causal square visits the lower triangle") {
  JitPattern jit = compileForCpu(causalPattern());
  AttentionCase attention(shapeOf(256, 256), 11);
  Result<CpuAttentionCounts> counts = runAttention(jit, attention.args());
  REQUIRE(counts.isOk());
  CHECK(counts->visitedTiles == 2 * (1 + 2 + 3 + 4));
  CHECK(counts->fullTiles == 2 * (0 + 1 + 2 + 3));
  CHECK(counts->computedPairs == 2 * 10 * 64 * 64);
}

TEST_CASE("sizes that do not fit together are refused, and nothing is written") {
  HandPattern pattern = windowPattern(1, 1);
  JitPattern jit = compileForCpu(pattern);
  auto refused = [&](auto change, const char *expected) {
    AttentionCase attention(shapeOf(4, 4), 12);
    CpuCall args = argsFor(attention, pattern);
    change(args);
    Result<CpuAttentionCounts> result = runAttention(jit, args);
    INFO(expected);
    REQUIRE_FALSE(result.isOk());
    CHECK(result.status().code() == StatusCode::invalidArgument);
    CHECK(result.status().message().find(expected) != std::string::npos);
    CHECK(std::isnan(attention.lse[0]));
  };
  refused([](CpuCall &a) { a.params = {1}; }, "has 2 run-time sizes, got 1");
  refused([](CpuCall &a) { a.kvHeads = 3; }, "2 heads and 3 kv_heads");
  refused([](CpuCall &a) { a.headDim = 0; }, "head_dim");
  refused([](CpuCall &a) { a.seqlenK = -1; }, "seqlen_k");
  refused([](CpuCall &a) { a.blockN = 0; }, "block_n");
  refused([](CpuCall &a) { a.qOrigin = (1 << 30) - 3; },
          "q_origin: expected -1073741824 to 1073741820 for 4 queries, got 1073741821: positions lie in [-2^30, 2^30)");
  refused([](CpuCall &a) { a.kOrigin = -(1 << 30) - 1; },
          "k_origin: expected -1073741824 to 1073741820 for 4 keys, got -1073741825");
  refused([](CpuCall &a) { a.qOrigin = 3 - (1 << 30); },
          "expected queries and keys within 1073741824 positions, got 1073741825, from -1073741821 to 3");
  refused([](CpuCall &a) { a.seqlenK = (1 << 30) + 1; }, "expected at most 1073741824 keys, got 1073741825");
  refused([](CpuCall &a) { a.scale = INFINITY; }, "scale");
  refused([](CpuCall &a) { a.give(Role::k, nullptr); }, "k and v");
  refused([](CpuCall &a) { a.give(Role::carryOut, a.as<float>(Role::lse)); }, "carry_lse");
}
