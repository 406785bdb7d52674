//===- AttentionOracle.h - attention by its definition ----------------------===//
// The definition of attention over kept pairs, pair by pair in fp64. Shares no code with ranges,
// tiles or any kernel; only the rule says what is kept.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_ATTENTIONORACLE_H
#define HEDDLE_TESTS_UNIT_SUPPORT_ATTENTIONORACLE_H

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace heddle::test {

// Dense tensors: q [batch, seqlenQ, heads, headDim], k and v [batch, seqlenK, kvHeads, ...].
struct OracleProblem {
  int batch = 1, heads = 1, kvHeads = 1, seqlenQ = 0, seqlenK = 0, headDim = 1, valueDim = 1;
  double scale = 1.0;
  int branches = 1;
  std::vector<double> q, k, v;
  std::function<double(int batch, int head, int i, int j, double score)> changes = nullptr; // null: nothing
  std::function<double(int head)> sink = nullptr; // score of a key without a value; null: there is none
};

struct OracleAnswer {
  std::vector<double> out; // [batch, seqlenQ, heads, valueDim]
  std::vector<double> lse; // [batch, heads, seqlenQ]
};

// True where the branch keeps key index j for query index i.
using OracleRule = std::function<bool(int batch, int head, int branch, int i, int j)>;

namespace detail {

struct OracleRow {
  int batch, head, i;
};

inline double oracleScore(const OracleProblem &p, OracleRow row, int j) {
  int kvHead = row.head / (p.heads / p.kvHeads);
  const double *q = &p.q[((int64_t(row.batch) * p.seqlenQ + row.i) * p.heads + row.head) * p.headDim];
  const double *k = &p.k[((int64_t(row.batch) * p.seqlenK + j) * p.kvHeads + kvHead) * p.headDim];
  double sum = 0;
  for (int d = 0; d < p.headDim; ++d)
    sum += q[d] * k[d];
  return p.changes ? p.changes(row.batch, row.head, row.i, j, sum * p.scale) : sum * p.scale;
}

inline void oracleRow(const OracleProblem &p, const OracleRule &keeps, OracleRow row, OracleAnswer &answer) {
  std::vector<int> keys; // a key that two branches keep is listed twice
  for (int branch = 0; branch < p.branches; ++branch)
    for (int j = 0; j < p.seqlenK; ++j)
      if (keeps(row.batch, row.head, branch, row.i, j))
        keys.push_back(j);
  const double none = -std::numeric_limits<double>::infinity(), sink = p.sink ? p.sink(row.head) : none;
  double largest = sink;
  std::vector<double> scores;
  for (int j : keys) {
    scores.push_back(oracleScore(p, row, j));
    largest = std::max(largest, scores.back());
  }
  double sum = sink == none ? 0 : std::exp(sink - largest);
  for (double score : scores)
    sum += std::exp(score - largest);
  const bool isEmpty = std::isinf(largest) && largest < 0;
  double lse = isEmpty ? largest : largest + std::log(sum);
  answer.lse[(int64_t(row.batch) * p.heads + row.head) * p.seqlenQ + row.i] = lse;
  if (isEmpty)
    return;
  double *out = &answer.out[((int64_t(row.batch) * p.seqlenQ + row.i) * p.heads + row.head) * p.valueDim];
  int kvHead = row.head / (p.heads / p.kvHeads);
  for (size_t n = 0; n < keys.size(); ++n)
    for (int d = 0; d < p.valueDim; ++d)
      out[d] += std::exp(scores[n] - lse) *
                p.v[((int64_t(row.batch) * p.seqlenK + keys[n]) * p.kvHeads + kvHead) * p.valueDim + d];
}

} // namespace detail

inline OracleAnswer attentionOracle(const OracleProblem &problem, const OracleRule &keeps) {
  int64_t rows = int64_t(problem.batch) * problem.seqlenQ * problem.heads;
  OracleAnswer answer{std::vector<double>(rows * problem.valueDim), std::vector<double>(rows)};
  for (int batch = 0; batch < problem.batch; ++batch)
    for (int head = 0; head < problem.heads; ++head)
      for (int i = 0; i < problem.seqlenQ; ++i)
        detail::oracleRow(problem, keeps, {batch, head, i}, answer);
  return answer;
}

} // namespace heddle::test

#endif
