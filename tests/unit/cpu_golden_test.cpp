// Golden numbers of two heads of two dims, made outside of this project's code in fp64: the oracle must
// meet them to 1e-11, the CPU target in fp32 to 1e-5.
#include "codegen/Cpu/JitPattern.h"
#include "support/AttentionCase.h"
#include "support/ModuleLoader.h"
#include <doctest/doctest.h>

using namespace heddle;
using namespace heddle::test;

namespace {

// q = sin(1 + t + 3h + 5c), k = cos(2 + 2t + h + 3c), v = sin(t/2 + 2h + 7c), scale 1/sqrt(2).
OracleProblem goldenProblem(int n, int branches) {
  OracleProblem p;
  p.heads = p.kvHeads = 2;
  p.seqlenQ = p.seqlenK = n;
  p.headDim = p.valueDim = 2;
  p.scale = 1 / std::sqrt(2.0);
  p.branches = branches;
  for (int t = 0; t < n; ++t)
    for (int h = 0; h < 2; ++h)
      for (int c = 0; c < 2; ++c) {
        p.q.push_back(std::sin(1 + t + 3 * h + 5 * c));
        p.k.push_back(std::cos(2 + 2 * t + h + 3 * c));
        p.v.push_back(std::sin(0.5 * t + 2 * h + 7 * c));
      }
  return p;
}

struct Sums {
  double sum = 0, squares = 0;
};

template <class Values> Sums sumsOf(const Values &values) {
  Sums sums;
  for (double value : values) {
    sums.sum += value;
    sums.squares += value * value;
  }
  return sums;
}

bool sameSegment(int i, int j, int w) { return i / w == j / w; }

bool thinned(int head, int i, int j) { return i % 2 == head % 2 && j % 2 == head % 2; }

bool branchKeeps(int head, int branch, int i, int j) {
  return branch == 0 ? sameSegment(i, j, 4) : sameSegment(i, j, 8) && thinned(head, i, j);
}

void checkOracle(int n, int branches, const OracleRule &rule, Sums expected) {
  Sums got = sumsOf(attentionOracle(goldenProblem(n, branches), rule).out);
  CHECK(std::abs(got.sum - expected.sum) < 1e-11);
  CHECK(std::abs(got.squares - expected.squares) < 1e-11);
}

// The rule, and the same rule restricted to keys not after the query.
void checkBoth(int n, int branches, const OracleRule &rule, Sums full, Sums causal) {
  checkOracle(n, branches, rule, full);
  checkOracle(
      n, branches, [&](int b, int head, int branch, int i, int j) { return j <= i && rule(b, head, branch, i, j); },
      causal);
}

Sums runOnCpu(const HandPattern &pattern) {
  OracleProblem p = goldenProblem(8, 1);
  std::vector<float> q(p.q.begin(), p.q.end()), k(p.k.begin(), p.k.end()), v(p.v.begin(), p.v.end());
  std::vector<float> out(q.size(), std::nanf(""));
  CpuCall args;
  args.give(Role::q, q.data());
  args.give(Role::k, k.data());
  args.give(Role::v, v.data());
  args.give(Role::out, out.data());
  args.heads = args.kvHeads = 2;
  args.seqlenQ = args.seqlenK = 8;
  args.headDim = args.valueDim = 2;
  args.scale = float(p.scale);
  REQUIRE(runAttention(compileForCpu(pattern), args).isOk());
  return sumsOf(out);
}

} // namespace

TEST_CASE("oracle: dense") {
  checkBoth(8, 1, [](int, int, int, int, int) { return true; }, {0.649877735672, 4.568262552307},
            {9.301722002202, 8.436149982488});
}

TEST_CASE("oracle: partition of heads") {
  checkBoth(8, 1, [](int, int head, int, int i, int j) { return branchKeeps(head, head, i, j); },
            {2.599627809581, 6.608569731270}, {5.684819296876, 6.229058427448});
}

TEST_CASE("oracle: one softmax over the multiset of two branches") {
  auto rule = [](int, int head, int branch, int i, int j) { return branchKeeps(head, branch, i, j); };
  checkBoth(8, 2, rule, {0.444507006163, 8.407315586182}, {3.732409248306, 10.883966493203});
  checkBoth(10, 2, rule, {-2.185849414877, 12.312685833796}, {0.777241742852, 14.672780845577});
}

TEST_CASE("oracle: one softmax over the union of two branches") {
  auto rule = [](int, int head, int, int i, int j) { return branchKeeps(head, 0, i, j) || branchKeeps(head, 1, i, j); };
  checkBoth(8, 1, rule, {0.359020563032, 8.285801484033}, {4.148114375502, 11.015487631855});
}

TEST_CASE("oracle: neighbouring blocks of two") {
  checkBoth(8, 1, [](int, int, int, int i, int j) { return std::abs(i / 2 - j / 2) <= 1; },
            {0.489662458063, 9.686076211076}, {4.744611610254, 11.803695696792});
}

TEST_CASE("CPU target: dense and partition") {
  auto near = [](Sums got, Sums expected) {
    CHECK(std::abs(got.sum - expected.sum) < 1e-5);
    CHECK(std::abs(got.squares - expected.squares) < 1e-5);
  };
  near(runOnCpu(fullPattern()), {0.649877735672, 4.568262552307});
  near(runOnCpu(causalPattern()), {9.301722002202, 8.436149982488});
  near(runOnCpu(dilatedPattern(4, 8, 2)), {2.599627809581, 6.608569731270});
}
