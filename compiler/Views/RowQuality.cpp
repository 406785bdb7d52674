//===- RowQuality.cpp - rows of a pattern beside dense rows -----------------===//
// Both softmaxes of a row share their scores: fp64, but for what a chain makes of them, which is fp32.
//===----------------------------------------------------------------------===//
#include "compiler/Views/RowQuality.h"
#include "compiler/Io/RandomTensor.h"

#include <cmath>

namespace heddle::views {
namespace {

struct Row {
  int64_t head, index;
};

/// All rows, or one of each of as many equal runs of rows.
std::vector<Row> rowsOf(const QualityRequest &request) {
  const int64_t perHead = request.sizes.seqlenQ, total = perHead * request.sizes.heads;
  const int64_t keys = std::max<int64_t>(request.sizes.seqlenK, 1);
  const int64_t count = total <= kMostPairsOfAllRows / keys ? total : std::min(total, kMostSampledRows);
  RandomStream random(request.seed, "rows of heddle explain --quality");
  std::vector<Row> rows;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = total * i / count, end = total * (i + 1) / count;
    const int64_t row = begin + static_cast<int64_t>(random.word(i) % uint64_t(end - begin));
    rows.push_back({row / perHead, row % perHead});
  }
  return rows;
}

class RowMeasure {
public:
  RowMeasure(KeptRows &kept, const QualityRequest &request)
      : kept(kept), sizes(request.sizes), inputs(*request.inputs), rows(rowsOf(request)) {}

  RowQuality measure() {
    result.rowsInAll = sizes.seqlenQ * sizes.heads;
    result.rows = static_cast<int64_t>(rows.size());
    result.isCausal = keepsNoLaterKey();
    for (const Row &row : rows)
      add(row);
    result.meanMass = measured ? massSum / double(measured) : 1;
    result.relativeError = referenceSquares > 0 ? std::sqrt(errorSquares / referenceSquares) : 0;
    return result;
  }

private:
  /// Keys that the reference of a causal pattern has.
  int64_t keysUpTo(int64_t row) const {
    return std::min(std::max<int64_t>(sizes.qOrigin + row - sizes.kOrigin + 1, 0), sizes.seqlenK);
  }

  bool keepsNoLaterKey() {
    for (const Row &row : rows) {
      kept.read(row.head, row.index, copies);
      for (int64_t key = keysUpTo(row.index); key < sizes.seqlenK; ++key)
        if (copies[key])
          return false;
    }
    return true;
  }

  void readHead(int64_t head) {
    if (head == headRead)
      return;
    headRead = head;
    const AttentionSizes &s = inputs.sizes;
    const int64_t kvHead = head / (s.heads / s.kvHeads);
    auto read = [&](const HostTensor &tensor, int64_t count, int64_t heads, int64_t one, int64_t dim) {
      std::vector<float> values(count * dim);
      for (int64_t i = 0; i < count; ++i)
        for (int64_t d = 0; d < dim; ++d)
          values[i * dim + d] = tensor.get((i * heads + one) * dim + d);
      return values;
    };
    keys = read(inputs.k, s.seqlenK, s.kvHeads, kvHead, s.headDim);
    values = read(inputs.v, s.seqlenK, s.kvHeads, kvHead, s.valueDim);
  }

  /// Of the reference's keys.
  void score(const Row &row, int64_t count) {
    const int64_t dim = inputs.sizes.headDim;
    const double scale = 1 / std::sqrt(double(dim));
    std::vector<float> query(dim);
    for (int64_t d = 0; d < dim; ++d)
      query[d] = inputs.q.get((row.index * sizes.heads + row.head) * dim + d);
    scores.assign(count, 0);
    for (int64_t key = 0; key < count; ++key) {
      double sum = 0;
      for (int64_t d = 0; d < dim; ++d)
        sum += double(query[d]) * double(keys[key * dim + d]);
      scores[key] = scale * sum;
    }
    kept.changeScores(row.head, row.index, scores);
  }

  void add(const Row &row) {
    readHead(row.head);
    const int64_t count = result.isCausal ? keysUpTo(row.index) : sizes.seqlenK;
    score(row, count);
    double most = -INFINITY;
    for (double one : scores)
      most = std::max(most, one);
    if (!std::isfinite(most)) // no keys, or none that scores
      return;
    kept.read(row.head, row.index, copies);
    const int64_t dim = inputs.sizes.valueDim;
    std::vector<double> dense(dim), sparse(dim);
    double denseSum = 0, keptSum = 0, sparseSum = 0;
    for (int64_t key = 0; key < count; ++key) {
      const double weight = std::exp(scores[key] - most), taken = weight * copies[key];
      denseSum += weight;
      keptSum += copies[key] ? weight : 0;
      sparseSum += taken;
      for (int64_t d = 0; d < dim; ++d) {
        dense[d] += weight * values[key * dim + d];
        sparse[d] += taken * values[key * dim + d];
      }
    }
    addMass(row, keptSum / denseSum, sparseSum == 0);
    for (int64_t d = 0; d < dim; ++d)
      addElement(dense[d] / denseSum, sparseSum > 0 ? sparse[d] / sparseSum : 0);
  }

  void addMass(const Row &row, double mass, bool isEmpty) {
    if (measured++ == 0 || mass < result.leastMass) {
      result.leastMass = mass;
      result.leastHead = row.head;
      result.leastRow = row.index;
    }
    massSum += mass;
    result.emptyRows += isEmpty;
  }

  void addElement(double reference, double produced) {
    const double error = produced - reference;
    referenceSquares += reference * reference;
    errorSquares += error * error;
    result.maxError = std::max(result.maxError, std::abs(error));
  }

  KeptRows &kept;
  const attn::ProblemSizes &sizes;
  const AttentionInputs &inputs;
  std::vector<Row> rows;
  int64_t headRead = -1, measured = 0;
  std::vector<float> keys, values;
  std::vector<double> scores;
  std::vector<uint16_t> copies;
  double massSum = 0, errorSquares = 0, referenceSquares = 0;
  RowQuality result;
};

} // namespace

RowQuality measureRows(KeptRows &kept, const QualityRequest &request) { return RowMeasure(kept, request).measure(); }

} // namespace heddle::views
