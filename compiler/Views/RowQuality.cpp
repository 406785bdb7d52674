// Both softmaxes of a row share their scores: fp64, but for what a chain makes of them, which is fp32.
#include "compiler/Views/Quality.h"
#include "compiler/Io/RandomTensor.h"

#include <algorithm>
#include <cmath>

namespace heddle::views {
namespace {

struct Row {
  int64_t head, index;
};

/// How many rows are looked at where not all are: fewer of longer ones.
int64_t sampledRows(const QualityRequest &request) {
  if (request.mostRows)
    return *request.mostRows;
  const AttentionSizes &s = request.inputs->sizes;
  const int64_t products = std::max<int64_t>(s.seqlenK, 1) * (s.headDim + 2 * s.valueDim);
  return std::clamp(kMostSampledProducts / products, kLeastSampledRows, kMostSampledRows);
}

/// All rows, or one of each of as many equal runs of rows.
std::vector<Row> rowsOf(const QualityRequest &request) {
  const int64_t perHead = request.sizes.seqlenQ, total = perHead * request.sizes.heads;
  const int64_t keys = std::max<int64_t>(request.sizes.seqlenK, 1);
  const bool takesAll = !request.mostRows && total <= kMostPairsOfAllRows / keys;
  const int64_t count = takesAll ? total : std::min(total, sampledRows(request));
  RandomStream random(request.seed, "rows of heddle explain --quality");
  std::vector<Row> rows;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = total * i / count, end = total * (i + 1) / count;
    const int64_t row = begin + static_cast<int64_t>(random.word(i) % uint64_t(end - begin));
    rows.push_back({row / perHead, row % perHead});
  }
  return rows;
}

constexpr int64_t kKeysAtATime = 256;                // converted and used by all rows of a batch
constexpr int64_t kScoresAtATime = int64_t(1) << 22; // of the rows of a batch

/// One row, while its batch is measured.
struct Measured {
  Row row;
  int64_t keys; ///< of the reference
  std::vector<float> query;
  std::vector<double> scores; ///< then weights
  std::vector<uint16_t> copies;
  std::vector<double> dense, sparse;
  double denseSum = 0, keptSum = 0, sparseSum = 0;
};

class RowMeasure {
public:
  RowMeasure(KeptRows &kept, const QualityRequest &request)
      : kept(kept), sizes(request.sizes), inputs(*request.inputs), rows(rowsOf(request)), effort(request.pairs) {}

  RowQuality measure() {
    result.rowsInAll = sizes.seqlenQ * sizes.heads;
    result.rows = static_cast<int64_t>(rows.size());
    result.isCausal = keepsNoLaterKey();
    for (size_t first = 0, end; first < rows.size(); first = end) {
      end = endOfBatch(first);
      addBatch(first, end);
      if (effort.progress)
        effort.progress(double(end) / double(rows.size()));
    }
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

  int64_t keysOf(const Row &row) const { return result.isCausal ? keysUpTo(row.index) : sizes.seqlenK; }

  /// Rows of one head whose scores are held at a time.
  size_t endOfBatch(size_t first) const {
    size_t end = first + 1;
    int64_t held = keysOf(rows[first]);
    while (end < rows.size() && rows[end].head == rows[first].head && (held += keysOf(rows[end])) <= kScoresAtATime)
      ++end;
    return end;
  }

  /// use(first key, number of keys, elements) for runs of keys of one head; element d of key i is elements[i * dim +
  /// d].
  template <class Use> void forEachRun(const HostTensor &tensor, int64_t head, int64_t dim, int64_t count, Use use) {
    const AttentionSizes &s = inputs.sizes;
    const int64_t kvHead = head / (s.heads / s.kvHeads);
    std::vector<float> elements(kKeysAtATime * dim);
    for (int64_t first = 0; first < count; first += kKeysAtATime) {
      const int64_t keys = std::min(kKeysAtATime, count - first);
      for (int64_t i = 0; i < keys; ++i)
        for (int64_t d = 0; d < dim; ++d)
          elements[i * dim + d] = tensor.get(((first + i) * s.kvHeads + kvHead) * dim + d);
      use(first, keys, elements);
    }
  }

  void addBatch(size_t first, size_t end) {
    std::vector<Measured> batch;
    int64_t most = 0;
    for (size_t i = first; i < end; ++i) {
      Measured &one = batch.emplace_back();
      one.row = rows[i];
      one.keys = keysOf(rows[i]);
      most = std::max(most, one.keys);
    }
    score(batch, most);
    batch.erase(std::remove_if(batch.begin(), batch.end(), [&](Measured &one) { return !weigh(one); }), batch.end());
    if (batch.empty())
      return;
    addValues(batch, most);
    for (const Measured &one : batch)
      finish(one);
  }

  /// Scores the reference's keys.
  void score(std::vector<Measured> &batch, int64_t count) {
    const int64_t dim = inputs.sizes.headDim;
    for (Measured &one : batch) {
      for (int64_t d = 0; d < dim; ++d)
        one.query.push_back(inputs.q.get((one.row.index * sizes.heads + one.row.head) * dim + d));
      one.scores.assign(one.keys, 0);
    }
    std::vector<float> turned(dim * kKeysAtATime); // so that sums of many keys grow side by side
    forEachRun(inputs.k, batch.front().row.head, dim, count,
               [&](int64_t first, int64_t keys, const std::vector<float> &elements) {
                 for (int64_t i = 0; i < keys; ++i)
                   for (int64_t d = 0; d < dim; ++d)
                     turned[d * kKeysAtATime + i] = elements[i * dim + d];
                 for (Measured &one : batch)
                   for (int64_t d = 0; d < dim; ++d)
                     for (int64_t i = 0; i < std::min(keys, one.keys - first); ++i)
                       one.scores[first + i] += double(one.query[d]) * double(turned[d * kKeysAtATime + i]);
               });
    for (Measured &one : batch) {
      for (double &score : one.scores)
        score *= 1 / std::sqrt(double(dim));
      kept.changeScores(one.row.head, one.row.index, one.scores);
    }
  }

  /// False: there are no keys, or none that scores.
  bool weigh(Measured &one) {
    double most = -INFINITY;
    for (double score : one.scores)
      most = std::max(most, score);
    if (!std::isfinite(most))
      return false;
    kept.read(one.row.head, one.row.index, one.copies);
    for (int64_t key = 0; key < one.keys; ++key) {
      const double weight = one.scores[key] = std::exp(one.scores[key] - most);
      one.denseSum += weight;
      one.keptSum += one.copies[key] ? weight : 0;
      one.sparseSum += weight * one.copies[key];
    }
    return true;
  }

  void addValues(std::vector<Measured> &batch, int64_t count) {
    const int64_t dim = inputs.sizes.valueDim;
    for (Measured &one : batch) {
      one.dense.assign(dim, 0);
      one.sparse.assign(dim, 0);
    }
    forEachRun(inputs.v, batch.front().row.head, dim, count,
               [&](int64_t first, int64_t keys, const std::vector<float> &values) {
                 for (Measured &one : batch)
                   for (int64_t i = 0; i < std::min(keys, one.keys - first); ++i) {
                     const double weight = one.scores[first + i], taken = weight * one.copies[first + i];
                     for (int64_t d = 0; d < dim; ++d) {
                       one.dense[d] += weight * values[i * dim + d];
                       one.sparse[d] += taken * values[i * dim + d];
                     }
                   }
               });
  }

  void finish(const Measured &one) {
    addMass(one.row, one.keptSum / one.denseSum, one.sparseSum == 0);
    for (size_t d = 0; d < one.dense.size(); ++d)
      addElement(one.dense[d] / one.denseSum, one.sparseSum > 0 ? one.sparse[d] / one.sparseSum : 0);
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
  const PairEffort &effort;
  int64_t measured = 0;
  std::vector<uint16_t> copies;
  double massSum = 0, errorSquares = 0, referenceSquares = 0;
  RowQuality result;
};

} // namespace

RowQuality measureRows(KeptRows &kept, const QualityRequest &request) { return RowMeasure(kept, request).measure(); }

} // namespace heddle::views
