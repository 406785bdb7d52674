//===- oracle_test.cpp - the compiled functions and the definition ------------===//
// What the generated functions keep and visit is what the definition keeps and the analysis visits, for every pattern
// file and for odd compositions; and the judge of results itself: empty rows, GQA, multisets, planted errors.
//===----------------------------------------------------------------------===//
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "compiler/Session/CompileForCpu.h"
#include "compiler/Oracle/AttentionOracle.h"
#include "compiler/Oracle/TensorCoreSum.h"
#include "support/PatternFiles.h"
#include "support/VerifyRows.h"
#include "dialect/Geometry/TileVisitor.h"
#include "tests/unit/support/AnalysisChecks.h"

#include <cmath>
#include <random>

using namespace heddle;
using namespace heddle::test;

namespace {

/// A pattern with its compiled functions, for one problem.
class Subject {
public:
  Subject(const PatternFile &file, oracle::Problem problem)
      : file(file), problem(std::move(problem)), definition(file.lowered(), this->problem), jit(compile(file)) {
    context.heads = int32_t(this->problem.heads);
    context.seqlenQ = int32_t(this->problem.seqlenQ);
    context.seqlenK = int32_t(this->problem.seqlenK);
    context.qOrigin = int32_t(this->problem.qOrigin);
    context.kOrigin = int32_t(this->problem.kOrigin);
    std::copy(this->problem.parameters.begin(), this->problem.parameters.end(), context.params.begin());
    size_t place = 0;
    for (const PatternOperand &operand : jit.info().operands)
      context.operands[place++] = addressOf(size_t(operand.argument));
  }

  bool agreesAt(int64_t head, unsigned branch, int64_t i, int64_t j) {
    context.head = int32_t(head);
    return jit.keep(context, branch, problem.qOrigin + i, problem.kOrigin + j) == definition.keeps(branch, head, i, j);
  }

  unsigned branchCount() const { return definition.branchCount(); }

  /// Every tile of every head, class and branch; the first disagreement.
  std::string compareRanges(int64_t blockM, int64_t blockN) {
    for (int64_t head = 0; head < problem.heads; ++head) {
      context.head = int32_t(head);
      unsigned variant = attn::variantOf(file.analysis(), oracle::toSizes(problem), head);
      if (jit.variant(context) != int32_t(variant))
        return "variant of head " + std::to_string(head);
      int64_t rate = file.analysis().variants[variant].forward.rowRate;
      if (jit.queryRate(variant) != rate)
        return "query rate of variant " + std::to_string(variant);
      for (int64_t rowClass = 0; rowClass < std::min(rate, problem.seqlenQ); ++rowClass)
        for (int64_t tile = 0; rowClass + rate * tile * blockM < problem.seqlenQ; ++tile)
          for (unsigned branch = 0; branch < branchCount(); ++branch)
            if (std::string account = compareTile(variant, branch, {rowClass, tile, blockM}, blockN); !account.empty())
              return account;
    }
    return "";
  }

private:
  /// Null of tensors that no mask reads.
  const void *addressOf(size_t argument) const {
    return problem.operands[argument] ? problem.operands[argument].address() : nullptr;
  }

  static JitPattern compile(const PatternFile &file) {
    auto pattern = compileForCpu(file);
    REQUIRE(pattern.isOk());
    return **pattern;
  }

  std::string compareTile(unsigned variant, unsigned branch, attn::RowTile tile, int64_t blockN) {
    const attn::VariantRanges &ranges = file.analysis().variants[variant].forward;
    attn::TileVisit want = attn::TileVisitor(ranges, branch, attn::Direction::Forward, oracle::toSizes(problem))
                               .visit(context.head, tile, blockN);
    int64_t first = tile.rowClass + ranges.rowRate * tile.index * tile.block;
    int64_t last = std::min(first + ranges.rowRate * (tile.block - 1),
                            first + (problem.seqlenQ - 1 - first) / ranges.rowRate * ranges.rowRate);
    std::set<int64_t> visited, full;
    int64_t steps = 0;
    for (int32_t from = 0; steps < 1000; ++steps) {
      JitKeyRange range = jit.nextRange(context,
                                        {int32_t(variant), int32_t(branch), int32_t(problem.qOrigin + first),
                                         int32_t(problem.qOrigin + last), int32_t(blockN)},
                                        from);
      if (range.begin == JitKeyRange::kNoTile)
        break;
      for (int32_t t = range.begin; t < range.end; ++t)
        if (t < from || !visited.insert(t).second)
          return "tile " + std::to_string(t) + " visited twice or before " + std::to_string(from);
      for (int32_t t = range.fullBegin; t < range.fullEnd; ++t)
        full.insert(t);
      from = range.end;
    }
    std::set<int64_t> wantVisited = oracle::tilesOf(want.visited), wantFull = oracle::tilesOf(want.full);
    std::string where = " of row tile " + std::to_string(tile.index) + ", class " + std::to_string(tile.rowClass) +
                        ", head " + std::to_string(context.head) + ", branch " + std::to_string(branch);
    if (visited != wantVisited)
      return "visited tiles" + where;
    return std::includes(wantFull.begin(), wantFull.end(), full.begin(), full.end()) ? "" : "full tiles" + where;
  }

  const PatternFile &file;
  oracle::Problem problem;
  oracle::PatternOracle definition;
  JitPattern jit;
  JitContext context;
};

void compareAllPairs(const PatternFile &file, const oracle::Problem &problem) {
  Subject subject(file, problem);
  int64_t wrong = 0;
  for (int64_t head = 0; head < problem.heads; ++head)
    for (unsigned branch = 0; branch < subject.branchCount(); ++branch)
      for (int64_t i = 0; i < problem.seqlenQ; ++i)
        for (int64_t j = 0; j < problem.seqlenK; ++j)
          wrong += !subject.agreesAt(head, branch, i, j);
  CHECK(wrong == 0);
  for (auto [blockM, blockN] : {std::pair<int64_t, int64_t>{1, 1}, {4, 7}, {16, 8}, {64, 64}}) {
    std::string account = subject.compareRanges(blockM, blockN);
    CHECK_MESSAGE(account.empty(), account);
  }
}

void comparePattern(const PatternFile &file) {
  for (oracle::Problem problem :
       {oracle::Problem{3, 37, 37, 0, 0, sizesFrom(file, 3)}, oracle::Problem{2, 20, 53, 33, 0, sizesFrom(file, 9)},
        oracle::Problem{5, 41, 17, 0, 0, sizesFrom(file, 1)}, oracle::Problem{1, 1, 1, 0, 0, sizesFrom(file, 0)}}) {
    problem.operands = maskOperands(file, problem.heads, problem.seqlenQ, problem.seqlenK, problem.parameters);
    compareAllPairs(file, problem);
  }
}

AttentionInputs randomInputs(AttentionSizes sizes, DType dtype) {
  auto inputs = randomAttentionInputs(sizes, dtype, 7);
  REQUIRE(inputs.isOk());
  return inputs.take();
}

/// A result that is right to the last bit of its type.
struct Perfect {
  Perfect(const PatternFile &file, const AttentionInputs &inputs)
      : definition(file.pattern(), {inputs.sizes.heads, inputs.sizes.seqlenQ, inputs.sizes.seqlenK, 0, 0, {}}, inputs,
                   0.5),
        rows(oracle::sampleRows(inputs.sizes, 1000)) {
    const AttentionSizes &s = inputs.sizes;
    out = HostTensor::zeros(inputs.dtype(), {s.batch, s.seqlenQ, s.heads, s.valueDim});
    lse = HostTensor::zeros(DType::fp32, {s.batch, s.heads, s.seqlenQ});
    for (const oracle::RowId &id : rows) {
      oracle::RowResult row = definition.bothRows(id).exact;
      for (int64_t c = 0; c < s.valueDim; ++c)
        out.set(((id.batch * s.seqlenQ + id.row) * s.heads + id.head) * s.valueDim + c, float(row.out[c]));
      lse.set((id.batch * s.heads + id.head) * s.seqlenQ + id.row, float(row.lse));
    }
  }
  oracle::VerifyReport verify() const { return oracle::verifyRows(definition, out, lse, rows); }

  oracle::AttentionOracle definition;
  std::vector<oracle::RowId> rows;
  HostTensor out, lse;
};

} // namespace

TEST_CASE("compiled functions agree with the definition: pattern files") {
  for (const std::string &path : halfOfLibrary(1)) {
    CAPTURE(path);
    comparePattern(*loaded(path));
  }
}

TEST_CASE("compiled functions agree with the definition: odd compositions") {
  for (const std::string &text : oddPatterns()) {
    CAPTURE(text);
    comparePattern(*parsed(text));
  }
}

TEST_CASE("compiled predicates agree with the definition at real lengths") {
  std::mt19937 random(3);
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    auto file = loaded(path);
    auto parameters = file->bindParameters({});
    REQUIRE(parameters.isOk());
    oracle::Problem problem{12, 20000, 20000, 0, 0, *parameters};
    problem.operands = maskOperands(*file, 12, 20000, 20000, problem.parameters);
    Subject subject(*file, problem);
    int64_t wrong = 0;
    for (int trial = 0; trial < 20000; ++trial) {
      int64_t i = random() % 20000, near = i + int64_t(random() % 4200) - 2100;
      int64_t j = trial % 2 ? int64_t(random() % 20000) : std::clamp<int64_t>(near, 0, 19999);
      wrong += !subject.agreesAt(random() % 12, random() % subject.branchCount(), i, j);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a predicate is evaluated with the meaning of its ops") {
  auto file = parsed(unionText(R"(%m = attn.predicate {
    ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
      %c3 = arith.constant 3 : i32
      %d = arith.subi %q, %k : i32
      %m = arith.maxsi %d, %h : i32
      %r = arith.remsi %m, %c3 : i32
      %x = arith.xori %r, %b : i32
      %p = arith.cmpi sgt, %d, %c3 : i32
      %s = arith.select %p, %x, %k : i32
      %y = arith.cmpi eq, %s, %c3 : i32
      attn.yield %y : i1
    })"));
  oracle::PatternOracle definition(file->pattern(), {2, 8, 8, 0, 0, {}});
  for (int64_t b : {0, 1, 3})
    for (int64_t h : {0, 1})
      for (int64_t q = 0; q < 8; ++q)
        for (int64_t k = 0; k < 8; ++k) {
          int64_t d = q - k, value = d > 3 ? (std::max(d, h) % 3) ^ b : k;
          CHECK(definition.keeps(0, h, q, k, b) == (value == 3));
        }
}

TEST_CASE("a predicate without a value is an error, not a guess") {
  auto file = parsed(unionText(R"(%m = attn.predicate {
    ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
      %d = arith.divsi %q, %k : i32
      %y = arith.cmpi eq, %d, %h : i32
      attn.yield %y : i1
    })"));
  oracle::PatternOracle definition(file->pattern(), {1, 2, 2, 0, 0, {}});
  CHECK(definition.keeps(0, 0, 0, 1));
  CHECK_THROWS_AS(definition.keeps(0, 0, 1, 0), std::logic_error);
}

TEST_CASE("rows without keys give 0 and -inf, one key gives its value") {
  auto file = parsed(unionText("%a = attn.window [0, 0] %b = attn.rows [2, 0] %c = attn.not %b %m = attn.and %a, %c"));
  AttentionInputs inputs = randomInputs({1, 4, 4, 2, 1, 8, 8}, DType::fp32);
  oracle::AttentionOracle definition(file->pattern(), {2, 4, 4, 0, 0, {}}, inputs, 1);
  oracle::RowResult empty = definition.bothRows({0, 1, 1}).exact, single = definition.bothRows({0, 1, 3}).exact;
  CHECK(empty.lse == -std::numeric_limits<double>::infinity());
  CHECK(empty.out == std::vector<double>(8, 0.0));
  for (int64_t c = 0; c < 8; ++c)
    CHECK(single.out[c] == doctest::Approx(inputs.v.get(3 * 8 + c)).epsilon(1e-12)); // head 1 reads the only key head
}

TEST_CASE("a key in two branches counts twice") {
  auto once = parsed("attn.pattern @p() { %a = attn.causal attn.softmax lse(%a) }");
  auto twice = parsed("attn.pattern @p() { %a = attn.causal attn.softmax lse(%a, %a) }");
  AttentionInputs inputs = randomInputs({1, 6, 6, 1, 1, 4, 4}, DType::fp32);
  oracle::Problem problem{1, 6, 6, 0, 0, {}};
  oracle::RowResult a = oracle::AttentionOracle(once->pattern(), problem, inputs, 1).bothRows({0, 0, 4}).exact;
  oracle::RowResult b = oracle::AttentionOracle(twice->pattern(), problem, inputs, 1).bothRows({0, 0, 4}).exact;
  CHECK(b.lse == doctest::Approx(a.lse + std::log(2.0)).epsilon(1e-12));
  for (int c = 0; c < 4; ++c)
    CHECK(b.out[c] == doctest::Approx(a.out[c]).epsilon(1e-12));
}

TEST_CASE("the judge accepts a perfect result and finds planted errors") {
  auto file = parsed(unionText("%a = attn.causal %b = attn.rows [1, 0] %c = attn.not %b %m = attn.and %a, %c"));
  for (DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
    CAPTURE(dtypeName(dtype));
    AttentionInputs inputs = randomInputs({2, 9, 9, 4, 2, 16, 16}, dtype);
    Perfect good(*file, inputs);
    oracle::VerifyReport report = good.verify();
    CHECK(report.ok);
    CHECK(report.rowsChecked == 2 * 9 * 4);
    CHECK(report.allowedError > 0);
    CHECK(report.allowedError < (dtype == DType::fp32 ? 1e-5 : 5e-2));
    Perfect off = good;
    int64_t element = ((1 * 9 + 5) * 4 + 2) * 16 + 3;
    off.out.set(element, off.out.get(element) + 0.1f);
    CHECK_FALSE(off.verify().ok);
    CHECK(off.verify().worst.batch == 1);
    CHECK(off.verify().worst.row == 5);
    CHECK(off.verify().worst.head == 2);
    Perfect unwritten = good;
    unwritten.out.set(element, std::nanf(""));
    CHECK_FALSE(unwritten.verify().ok);
    Perfect lse = good;
    lse.lse.set(20, lse.lse.get(20) + 0.002f);
    CHECK_FALSE(lse.verify().ok);
    Perfect finite = good; // row 0 keeps nothing: its lse is -inf and nothing else
    finite.lse.set(0, -1e30f);
    CHECK_FALSE(finite.verify().ok);
    Perfect tiny = good; // and its output is 0 and nothing else
    tiny.out.set(5, 1e-6f);
    CHECK_FALSE(tiny.verify().ok);
  }
}

TEST_CASE("sampled rows are different, in range, and include both ends") {
  AttentionSizes sizes{3, 1000, 1000, 5, 5, 8, 8};
  std::vector<oracle::RowId> rows = oracle::sampleRows(sizes, 64);
  REQUIRE(rows.size() == 64);
  std::set<std::tuple<int64_t, int64_t, int64_t>> distinct;
  std::set<int64_t> heads, batches;
  for (const oracle::RowId &id : rows) {
    CHECK((id.row >= 0 && id.row < 1000));
    distinct.insert({id.batch, id.head, id.row});
    heads.insert(id.head);
    batches.insert(id.batch);
  }
  CHECK(distinct.size() == 64);
  CHECK(heads.size() == 5);
  CHECK(batches.size() == 3);
  CHECK(rows[0].row == 0);
  CHECK(rows[1].row == 999);
  CHECK(oracle::sampleRows({1, 0, 5, 2, 2, 8, 8}, 64).empty());
  CHECK(oracle::sampleRows({1, 3, 5, 2, 2, 8, 8}, 64).size() == 6);
}

TEST_CASE("in fp32 the rounding of scores and results is allowed and no more, however lucky plain attention is") {
  auto file = parsed("attn.pattern @p() { %m = attn.full attn.softmax union(%m) sink -2.5 }");
  for (uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    auto made = randomAttentionInputs({1, 1, 1, 2, 2, 8, 8}, DType::fp32, seed);
    REQUIRE(made.isOk());
    Perfect good(*file, *made);
    CHECK(good.verify().ok);
    int64_t largest = 0;
    for (int64_t i = 0; i < good.out.elements(); ++i)
      if (std::abs(good.out.get(i)) > std::abs(good.out.get(largest)))
        largest = i;
    const float right = good.out.get(largest), spacing = std::numeric_limits<float>::epsilon();
    Perfect near = good, off = good;
    near.out.set(largest, right * (1 + 2 * spacing));
    CHECK(near.verify().ok);
    off.out.set(largest, right * (1 + 16 * spacing));
    CHECK_FALSE(off.verify().ok);
  }
}

TEST_CASE("the rounding of fp32 is counted for fp32 alone, and vanishes where one key has all the weight") {
  auto file = parsed(unionText("%m = attn.full"));
  for (DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
    CAPTURE(dtypeName(dtype));
    AttentionInputs inputs = randomInputs({1, 9, 9, 1, 1, 16, 16}, dtype);
    const oracle::Problem problem{1, 9, 9, 0, 0, {}};
    auto unit = [&](double scale) {
      return oracle::AttentionOracle(file->pattern(), problem, inputs, scale).bothRows({0, 0, 4}).exact.scoreUnit;
    };
    if (dtype == DType::fp32) {
      CHECK(unit(0.25) > 1e-8);
      CHECK(unit(0.25) < 2e-6);
      CHECK(unit(1e20) < 1e-6);
    } else {
      CHECK(unit(0.25) == 0);
    }
  }
}

TEST_CASE("scores of either sign allow the same errors") {
  auto file = parsed(unionText("%m = attn.full"));
  const oracle::Problem problem{1, 9, 9, 0, 0, {}};
  for (DType dtype : {DType::fp32, DType::e4m3}) {
    CAPTURE(dtypeName(dtype));
    AttentionInputs inputs = randomInputs({1, 9, 9, 1, 1, 16, 16}, dtype);
    auto exactOf = [&](double scale) {
      oracle::InputRows rows = oracle::inputRowsOf(inputs);
      rows.isOfTensorCores = true;
      return oracle::AttentionOracle(file->pattern(), problem, rows, scale).bothRows({0, 0, 4}).exact;
    };
    const oracle::RowResult exact = exactOf(0.25);
    for (int64_t i = 0; i < inputs.of(Role::q).elements(); ++i)
      inputs.of(Role::q).set(i, -inputs.of(Role::q).get(i));
    const oracle::RowResult mirrored = exactOf(-0.25);
    CHECK(exact.scoreUnit > 0);
    CHECK(mirrored.scoreUnit == doctest::Approx(exact.scoreUnit));
    CHECK(mirrored.lseUnit == doctest::Approx(exact.lseUnit));
  }
}

TEST_CASE(
    "tensor cores sum 32 products of e4m3 at a time, cut to 13 bits below the largest of them and the sum so far") {
  std::vector<float> ones(64, 1.0f), other(64, 0.0f);
  auto sum = [&] { return oracle::tensorCoreSum(other.data(), ones.data(), 64).sum; };
  other[0] = 8192, other[1] = 1, other[2] = 0.5f, other[32] = 0.9375f, other[33] = 1.9375f;
  CHECK(sum() == 8192 + 1 + 0 + 0 + 1);
  for (float &value : other)
    value = -value;
  CHECK(sum() == -8194);
  other.assign(64, 0.0f);
  other[3] = 4096, other[4] = -4096, other[5] = 0.25f, other[40] = 0.25f;
  CHECK(sum() == 0.25); // nothing large is left when the second 32 come
  other[63] = std::nanf("");
  CHECK(std::isnan(sum()));
}

TEST_CASE("wide scores of e4m3 may be off by what tensor cores cut where these summed them, and nowhere else") {
  auto file = parsed(unionText("%m = attn.causal"));
  AttentionInputs inputs = randomInputs({1, 40, 40, 2, 1, 64, 64}, DType::e4m3);
  const oracle::Problem problem{2, 40, 40, 0, 0, {}};
  for (const double scale : {0.125, 30.0}) {
    CAPTURE(scale);
    auto oracleOf = [&](bool isOfTensorCores) {
      oracle::InputRows rows = oracle::inputRowsOf(inputs);
      rows.isOfTensorCores = isOfTensorCores;
      return oracle::AttentionOracle(file->pattern(), problem, rows, scale);
    };
    const oracle::AttentionOracle ofTensorCores = oracleOf(true), others = oracleOf(false);
    const std::vector<oracle::RowId> rows = oracle::sampleRows(inputs.sizes, 80);
    auto isRight = [&](const oracle::AttentionOracle &judge, const oracle::AttentionOracle &made) {
      return oracle::compareRows(oracle::referenceRows(judge, rows, DType::bf16),
                                 [&](const oracle::RowId &id) { return made.bothRows(id).plain; })
          .ok;
    };
    CHECK(isRight(ofTensorCores, ofTensorCores));
    CHECK(isRight(ofTensorCores, others));
    CHECK(isRight(others, others));
    CHECK(isRight(others, ofTensorCores) == (scale < 1));
  }
}
