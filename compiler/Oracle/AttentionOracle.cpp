#include "compiler/Oracle/AttentionOracle.h"
#include "compiler/Io/RandomTensor.h"
#include "compiler/Oracle/TensorCoreSum.h"
#include "runtime/Core/ParallelFor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <tuple>

namespace heddle::oracle {

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

AttentionOracle::AttentionOracle(attn::PatternOp pattern, const Problem &problem, InputRows inputs, double scale)
    : pairs(pattern, problem), chain(pattern, problem), problem(problem), inputs(std::move(inputs)), scale(scale) {}

AttentionOracle::AttentionOracle(attn::PatternOp pattern, const Problem &problem, const AttentionInputs &inputs,
                                 double scale)
    : AttentionOracle(pattern, problem, inputRowsOf(inputs), scale) {}

InputRows inputRowsOf(const AttentionInputs &inputs) {
  return {inputs.sizes,
          inputs.dtype(),
          [&inputs](Role role, const RowId &id, float *values) {
            const HostTensor &tensor = inputs.of(role);
            const std::vector<int64_t> &shape = tensor.shape;
            const KindRole *known = inputs.kind.find(role);
            const bool isTurned = known && known->rows == Rows::keyMajor;
            const int64_t dim = isTurned ? shape[1] : shape[3], row = isTurned ? 0 : id.row;
            const int64_t first = ((id.batch * shape[1] + row) * shape[2] + id.head) * shape[3];
            if (!isTurned)
              loadElements(tensor.dtype, tensor.data.data(), first, int(dim), values);
            for (int64_t c = 0; isTurned && c < dim; ++c)
              values[c] = float(tensor.get(first + c * shape[2] * shape[3] + id.row));
          },
          [&inputs](Role role, const RowId &id) { return inputs.descaleOf(role, id.batch, id.head, id.row); },
          {},
          inputs.precision};
}

bool AttentionOracle::keeps(const RowId &id, int64_t key) const {
  for (unsigned branch = 0; branch < pairs.branchCount(); ++branch)
    if (pairs.keeps(branch, id.head, id.row, key, id.batch))
      return true;
  return false;
}

float AttentionOracle::rounded(double value, DType dtype) { return roundedTo(dtype, static_cast<float>(value)); }

/// A significand of tf32 has 11 bits; ties go away from 0.
float AttentionOracle::operand(float value, Precision precision) {
  if (precision != Precision::tf32 || !std::isfinite(value))
    return value;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

AttentionOracle::Kept AttentionOracle::keptBy(RowId id, std::optional<unsigned> only) const {
  Kept kept{{}, only ? -kInfinity : chain.sink(id.head).value_or(-kInfinity)};
  const unsigned first = only.value_or(0), last = only ? *only + 1 : pairs.branchCount();
  auto ask = [&](int64_t j) {
    int copies = 0;
    for (unsigned branch = first; branch < last; ++branch)
      copies += pairs.keeps(branch, id.head, id.row, j, id.batch);
    if (copies > 0)
      kept.keys.push_back({j, copies});
  };
  if (inputs.candidates)
    for (int64_t j : inputs.candidates(id))
      ask(j);
  else
    for (int64_t j = 0; j < problem.seqlenK; ++j)
      ask(j);
  return kept;
}

namespace {

constexpr double kSpacing = std::numeric_limits<float>::epsilon();

/// Sums up what rounding the result once in fp32, and every score once, changes in one channel: the derivative of the result
/// by a score is the weight of its key times (value - result). No score, however large, changes more than its whole
/// weight.
class RoundingUnit {
public:
  explicit RoundingUnit(double result) : result(result), change(kSpacing * std::abs(result)) {}
  void add(double scoreUnit, double weight, double value) {
    if (weight > 0)
      change += std::min(scoreUnit, 1.0) * weight * std::abs(value - result);
  }
  operator double() const { return change; }

private:
  double result, change;
};

} // namespace

/// The number of e4m3 of which 8 log2, with a straight line from one power of two to the next, is nearest to that of `weight`
/// times a factor that makes the mean right.
static double fromBits(double weight) {
  constexpr int kOctave = 8, kOne = 7 * kOctave, kLargest = 126;
  constexpr double kMeanShift = -0.0571;
  const double code = std::nearbyint(kOctave * (std::log2(weight) + kMeanShift)) + kOne;
  const int bits = int(std::clamp(code, 0.0, double(kLargest))), octave = bits / kOctave;
  return octave == 0 ? std::ldexp(bits, -9) : std::ldexp(1 + bits % kOctave / 8.0, octave - 7);
}

/// A weight as an operand of the second product. What is scaled has so few bits that `weightOfOne`, that of a key with the
/// largest score, is made the largest power of two: below, nothing is lost that need not be.
static double roundedWeight(double weight, double weightOfOne, DType dtype, Precision precision) {
  if (!traitsOf(dtype).isScaled())
    return AttentionOracle::rounded(weight, dtype);
  const double unit = std::ldexp(weightOfOne, -int(traitsOf(dtype).largestExponent())), inUnits = weight / unit;
  return (precision == Precision::fast ? fromBits(inUnits) : AttentionOracle::rounded(inUnits, dtype)) * unit;
}

template <class Number>
RowResult AttentionOracle::attend(RowId id, const Kept &kept, std::optional<DType> roundTo) const {
  const std::vector<Key> &keys = kept.keys;
  const AttentionSizes &sizes = inputs.sizes;
  int64_t kvHead = id.head / (sizes.heads / sizes.kvHeads);
  std::vector<float> query(sizes.headDim), row(std::max(sizes.headDim, sizes.valueDim));
  auto descaleOf = [&](Role role, const RowId &of) {
    return inputs.descale ? Number(inputs.descale(role, of)) : Number(1);
  };
  inputs.read(Role::q, id, query.data());
  const Number queryScale = Number(scale) * descaleOf(Role::q, id);
  auto readKey = [&](Role role, const Key &key) {
    const RowId of{id.batch, kvHead, key.index};
    inputs.read(role, of, row.data());
    return descaleOf(role, of);
  };
  const Precision precision = roundTo ? inputs.precision : Precision::exact;
  const auto operand = [precision](float value) { return Number(AttentionOracle::operand(value, precision)); };
  const Number nothing = -std::numeric_limits<Number>::infinity();
  const Number sink = Number(kept.sink);
  RowResult result{std::vector<double>(sizes.valueDim, 0.0), double(sink)};
  if (keys.empty())
    return result;
  std::vector<Number> scores;
  std::vector<double> unitsOfScores, unitsOfProducts; // what one rounding changes of a score, and of what it is made of
  Number largest = sink;
  for (const Key &key : keys) {
    Number product = 0, squares = 0;
    const Number keyScale = queryScale * readKey(Role::k, key);
    for (int64_t c = 0; c < sizes.headDim; ++c) {
      const Number term = operand(query[c]) * operand(row[c]);
      product += term;
      squares += term * term;
    }
    double unitOfProduct = kSpacing * std::sqrt(double(squares));
    if (hasTensorCoreSums()) {
      const TensorCoreSum ofTensorCores = tensorCoreSum(query.data(), row.data(), sizes.headDim);
      product = roundTo ? Number(ofTensorCores.sum) : product;
      unitOfProduct = ofTensorCores.unit;
    }
    const ScorePlace at{id.batch, id.head, problem.qOrigin + id.row, problem.kOrigin + key.index};
    scores.push_back(chain.score(at, product * keyScale));
    unitsOfScores.push_back(kSpacing * std::abs(double(scores.back())));
    unitsOfProducts.push_back(std::abs(double(keyScale)) * unitOfProduct);
    largest = std::max(largest, scores.back());
  }
  if (largest == nothing)
    return result;
  Number sum = sink == nothing ? Number(0) : std::exp(sink - largest);
  for (size_t i = 0; i < keys.size(); ++i)
    sum += Number(keys[i].copies) * std::exp(scores[i] - largest);
  auto weightOf = [&](size_t i) { return Number(keys[i].copies) * std::exp(scores[i] - largest) / sum; };
  const double weightOfOne = 1 / double(sum);
  std::vector<Number> out(sizes.valueDim, Number(0));
  double sumOfRounded = double(std::exp(sink - largest) / sum);
  for (size_t i = 0; i < keys.size(); ++i) {
    Number weight = weightOf(i);
    if (roundTo)
      weight = operand(Number(roundedWeight(weight, weightOfOne * keys[i].copies, *roundTo, precision)));
    sumOfRounded += double(weight);
    const Number valueScale = readKey(Role::v, keys[i]);
    for (int64_t c = 0; c < sizes.valueDim; ++c)
      out[c] += weight * (valueScale * operand(row[c]));
  }
  for (int64_t c = 0; c < sizes.valueDim; ++c)
    result.out[c] = roundTo ? rounded(out[c], CallElements::outOf(*roundTo)) : double(out[c]);
  result.lse = double(largest) + std::log(double(sum)); // which at large scores no fp32 holds
  if (precision == Precision::fast)
    result.lse += std::log(sumOfRounded);
  result.lseUnit = kSpacing * std::abs(result.lse);
  for (size_t i = 0; i < keys.size(); ++i)
    result.lseUnit += weightOf(i) > 0 ? double(weightOf(i)) * (unitsOfScores[i] + unitsOfProducts[i]) : 0;
  if (roundTo || (inputs.dtype != kAccumulator && !hasTensorCoreSums()))
    return result;
  std::vector<RoundingUnit> units(result.out.begin(), result.out.end());
  for (size_t i = 0; i < keys.size(); ++i) {
    const Number valueScale = readKey(Role::v, keys[i]);
    for (int64_t c = 0; c < sizes.valueDim; ++c)
      units[c].add(hasTensorCoreSums() ? unitsOfProducts[i] : unitsOfScores[i], double(weightOf(i)),
                   double(valueScale * row[c]));
  }
  for (RoundingUnit &unit : units) {
    unit.add(kSpacing * std::abs(double(sink)), double(std::exp(sink - largest) / sum), 0);
    result.scoreUnit = std::max(result.scoreUnit, double(unit));
  }
  return result;
}

AttentionOracle::Rows AttentionOracle::bothRows(RowId id, std::optional<unsigned> branch) const {
  const Kept kept = keptBy(id, branch);
  return {attend<double>(id, kept, std::nullopt), attend<float>(id, kept, inputs.dtype)};
}

/// |a - b|; 0 for equal infinities, infinite when either is NaN.
static double distance(double a, double b) {
  if (a == b)
    return 0;
  double difference = std::abs(a - b);
  return std::isnan(difference) ? kInfinity : difference;
}

/// What adding and taking away 0.3 in `dtype` does to a value.
static double granularity(double value, DType dtype) {
  constexpr auto rounded = AttentionOracle::rounded;
  float start = rounded(value, dtype);
  return std::abs(double(rounded(rounded(double(start) + 0.3, dtype) - 0.3, dtype)) - double(start));
}

ReferenceRows referenceRows(const AttentionOracle &oracle, const std::vector<RowId> &rows, DType dtype, int threads) {
  ReferenceRows reference{rows, std::vector<RowResult>(rows.size()), std::vector<RowResult>(rows.size()), dtype};
  const int64_t count = int64_t(rows.size());
  parallelFor(count, oracle.isThreadSafe() ? threadCountFor(count, threads) : 1, [&](int, int64_t i) {
    AttentionOracle::Rows both = oracle.bothRows(rows[i]);
    reference.exact[i] = std::move(both.exact);
    reference.plain[i] = std::move(both.plain);
    if (oracle.hasCoarseScores())
      reference.exact[i].lseUnit = std::max({reference.exact[i].lseUnit, oracle.leastLseUnit(),
                                             distance(reference.plain[i].lse, reference.exact[i].lse)});
  });
  return reference;
}

VerifyReport compareRows(const ReferenceRows &reference, const std::function<RowResult(const RowId &)> &produced) {
  VerifyReport report;
  double plainError = 0, unit = 0;
  for (size_t i = 0; i < reference.rows.size(); ++i) {
    const RowId &id = reference.rows[i];
    const RowResult &exact = reference.exact[i], &plain = reference.plain[i];
    RowResult got = produced(id);
    bool isEmpty = exact.lse == -kInfinity; // no rounding explains anything but 0
    for (size_t c = 0; c < exact.out.size(); ++c) {
      double error = distance(got.out[c], exact.out[c]);
      if (isEmpty && error > 0)
        error = kInfinity;
      if (error > report.maxError) {
        report.maxError = error;
        report.worst = id;
      }
      plainError = std::max(plainError, distance(plain.out[c], exact.out[c]));
      unit = std::max(unit, granularity(exact.out[c], reference.dtype));
    }
    unit = std::max(unit, exact.scoreUnit);
    report.allowedLseError = std::max(report.allowedLseError, isEmpty ? 0 : 2 * exact.lseUnit);
    double error = distance(got.lse, exact.lse);
    if (error > report.maxLseError) {
      report.maxLseError = error;
      report.worstLse = id;
    }
    ++report.rowsChecked;
  }
  report.allowedError = 2 * plainError + 2 * unit;
  report.ok = report.maxError <= report.allowedError && report.maxLseError <= report.allowedLseError;
  return report;
}

std::vector<RowId> sampleRows(const AttentionSizes &sizes, int64_t count) {
  std::vector<RowId> rows;
  int64_t total = sizes.batch * sizes.heads * sizes.seqlenQ;
  if (total <= count) {
    for (int64_t batch = 0; batch < sizes.batch; ++batch)
      for (int64_t head = 0; head < sizes.heads; ++head)
        for (int64_t row = 0; row < sizes.seqlenQ; ++row)
          rows.push_back({batch, head, row});
    return rows;
  }
  RandomStream stream(1, "verified rows");
  std::set<std::tuple<int64_t, int64_t, int64_t>> taken;
  for (uint64_t i = 0; static_cast<int64_t>(rows.size()) < count; ++i) {
    int64_t row = i == 0 ? 0 : i == 1 ? sizes.seqlenQ - 1 : static_cast<int64_t>(stream.word(i) % sizes.seqlenQ);
    RowId id{static_cast<int64_t>(i) / sizes.heads % sizes.batch, static_cast<int64_t>(i) % sizes.heads, row};
    if (taken.insert({id.batch, id.head, id.row}).second)
      rows.push_back(id);
  }
  return rows;
}

} // namespace heddle::oracle
