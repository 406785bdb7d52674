// With P = exp(s - lse), dP = <dO, v>, delta = <dO, out> - d_lse and s' the derivative of the chain of scores:
// dS = P (dP - delta) s', dQ = scale sum dS k, dK = scale sum dS q, dV = sum P dO; a pair that several branches keep
// counts for each, and with gradient(detached) each has a delta of its own.
#include "compiler/Oracle/GradientOracle.h"

#include <limits>
#include <mutex>

namespace heddle::oracle {
namespace {

constexpr double kSpacing = std::numeric_limits<float>::epsilon();
// More pairs than this take seconds.
constexpr double kBearablePairs = 1 << 22;

int64_t lengthOf(const AttentionSizes &sizes) { return sizes.batch * sizes.heads * sizes.seqlenQ; }

/// Sum of products of rows of two tensors, and the root of the sum of their squares: what sums of random signs grow
/// with, and so does their rounding.
template <class Number> struct Product {
  Number sum = 0;
  double squares = 0;
  void add(Number a, Number b) {
    sum += a * b;
    squares += double(a * b) * double(a * b);
  }
  double size() const { return std::sqrt(squares); }
};

template <class Number>
Product<Number> productOf(const HostTensor &a, int64_t aRow, const HostTensor &b, int64_t bRow, int64_t dim) {
  Product<Number> product;
  for (int64_t c = 0; c < dim; ++c)
    product.add(Number(a.get(aRow * dim + c)), Number(b.get(bRow * dim + c)));
  return product;
}

/// Between the number and its neighbours, at least.
double halfSpacing(double value, DType dtype) {
  if (dtype == kAccumulator)
    return kSpacing / 2 * std::abs(value);
  const ElementTraits &element = traitsOf(dtype);
  return std::max(std::ldexp(std::abs(value), -element.significandBits - 1), value != 0 ? element.least / 2 : 0);
}

GradientRow rowOfZeros(int64_t dim) {
  const std::vector<double> zeros(dim, 0.0);
  return {zeros, zeros, zeros};
}

/// Adds factor times row `from` of a tensor to a sum that plain attention has in fp32.
template <class Number> void addRow(std::vector<double> &sums, double factor, const HostTensor &tensor, int64_t from) {
  const int64_t dim = int64_t(sums.size());
  for (int64_t c = 0; c < dim; ++c)
    sums[c] = double(Number(sums[c]) + Number(factor) * Number(tensor.get(from * dim + c)));
}

void addUnit(std::vector<double> &units, double unit, const HostTensor &tensor, int64_t from) {
  const int64_t dim = int64_t(units.size());
  for (int64_t c = 0; c < dim; ++c)
    units[c] += unit * std::abs(double(tensor.get(from * dim + c)));
}

/// What the rounding of out changes of sums over rows: by signs that are the same within a row and random between rows.
class RowUnits {
public:
  explicit RowUnits(size_t elements) : ofRow(elements), squares(elements) {}
  void add(int64_t element, double unit) {
    touched.push_back(element);
    ofRow[element] += unit;
  }
  void endRow() {
    for (int64_t element : touched) {
      squares[element] += ofRow[element] * ofRow[element];
      ofRow[element] = 0;
    }
    touched.clear();
  }
  void addTo(std::vector<double> &units) const {
    for (size_t element = 0; element < squares.size(); ++element)
      units[element] += std::sqrt(squares[element]);
  }

private:
  std::vector<double> ofRow, squares;
  std::vector<int64_t> touched;
};

} // namespace

bool comparesArguments(const AttentionSizes &sizes) {
  return double(lengthOf(sizes)) * double(sizes.seqlenK) <= kBearablePairs;
}

/// What roundings of scores and lse that amount to `exponent` change of a weight to first order; none makes it pass 1.
static double changeOfWeight(double weight, double exponent) {
  return std::min(weight * exponent, std::max(1 - weight, 0.0));
}

/// What a pair adds: weight to dV, score to dQ and dK, and what rounding changes of them.
template <class Number> struct GradientOracle::Terms {
  Number weight = 0, score = 0;
  double weightUnit = 0, scoreUnit = 0;
  double outUnit = 0; ///< of the score, by the rounding of out to the inputs' type
};

struct GradientOracle::RowCache {
  explicit RowCache(int64_t count) : rows(count), isThere(count) {}
  std::vector<Row> rows;
  std::vector<std::once_flag> isThere;
};

GradientOracle::GradientOracle(const KindCall &call)
    : inputs(call.inputs), attention(call.pattern, call.problem, call.inputs, call.scale),
      pairs(call.pattern, call.problem), chain(call.pattern, call.problem), problem(call.problem), scale(call.scale) {
  attn::PatternOp pattern = call.pattern;
  isDetached = pairs.branchCount() > 1 && pattern.getSoftmax().getGradient() == attn::Gradient::detached;
  if (inputs.precision != Precision::exact)
    roundOperands();
  if (comparesArguments(inputs.sizes))
    cache = std::make_unique<RowCache>(lengthOf(inputs.sizes));
}

GradientOracle::~GradientOracle() = default;

void GradientOracle::roundOperands() {
  roundedInputs = std::make_unique<AttentionInputs>(inputs);
  for (Role role : {Role::q, Role::k, Role::v, Role::dOut}) {
    HostTensor &tensor = roundedInputs->of(role);
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.set(i, AttentionOracle::operand(float(tensor.get(i)), inputs.precision));
  }
}

int64_t GradientOracle::affordableKeys(int64_t wanted) const {
  constexpr double kOfKeys = 64 * kBearablePairs; // a pair is asked of one branch
  if (!isDetached || cache)
    return wanted;
  const double ofOne = double(inputs.sizes.seqlenQ) * double(inputs.sizes.seqlenK);
  return std::min(wanted, std::max<int64_t>(int64_t(kOfKeys / ofOne), 1));
}

GradientOracle::Pair GradientOracle::pairOf(RowId query, int64_t key) const {
  Pair pair{query, key, {}};
  for (unsigned branch = 0; branch < pairs.branchCount(); ++branch)
    if (pairs.keeps(branch, query.head, query.row, key, query.batch))
      pair.branches.push_back(branch);
  return pair;
}

template <class Number> void GradientOracle::addDelta(Softmax &softmax, RowId id, const RowResult &result) const {
  const AttentionSizes &sizes = inputs.sizes;
  const int64_t row = (id.batch * sizes.seqlenQ + id.row) * sizes.heads + id.head;
  Product<Number> product;
  for (int64_t c = 0; c < sizes.valueDim; ++c)
    product.add(Number(result.out[c]), Number(inputs.dOut.get(row * sizes.valueDim + c)));
  const int64_t place = (id.batch * sizes.heads + id.head) * sizes.seqlenQ + id.row;
  const double ofLse = inputs.isGiven(Role::dLse) ? inputs.dLse.get(place) : 0;
  softmax.delta.push_back(double(product.sum - Number(ofLse)));
  softmax.unit.push_back(product.size() + std::abs(ofLse));
}

GradientOracle::Row GradientOracle::recomputedRow(RowId id) const {
  const AttentionOracle::Rows whole = attention.bothRows(id);
  Row row;
  row.exact.lse = whole.exact.lse, row.plain.lse = whole.plain.lse;
  for (unsigned branch = 0; branch < (isDetached ? pairs.branchCount() : 1); ++branch) {
    const AttentionOracle::Rows part = isDetached ? attention.bothRows(id, branch) : whole;
    addDelta<double>(row.exact, id, part.exact);
    addDelta<float>(row.plain, id, part.plain);
  }
  return row;
}

RowResult GradientOracle::givenResult(RowId id) const {
  const AttentionSizes &sizes = inputs.sizes;
  const int64_t row = (id.batch * sizes.seqlenQ + id.row) * sizes.heads + id.head;
  RowResult result;
  for (int64_t c = 0; c < sizes.valueDim; ++c)
    result.out.push_back(inputs.out.get(row * sizes.valueDim + c));
  result.lse = inputs.lse.get((id.batch * sizes.heads + id.head) * sizes.seqlenQ + id.row);
  return result;
}

/// What the pair needs of a row: deltas of other branches are left out.
GradientOracle::Row GradientOracle::givenRow(const Pair &pair) const {
  const RowResult given = givenResult(pair.query);
  Row row;
  row.exact.lse = row.plain.lse = given.lse;
  for (unsigned branch = 0; branch < (isDetached ? pairs.branchCount() : 1); ++branch) {
    AttentionOracle::Rows part{given, given};
    if (isDetached && std::find(pair.branches.begin(), pair.branches.end(), branch) != pair.branches.end())
      part = attention.bothRows(pair.query, branch);
    addDelta<double>(row.exact, pair.query, part.exact);
    addDelta<float>(row.plain, pair.query, part.plain);
  }
  return row;
}

const GradientOracle::Row &GradientOracle::rowOf(const Pair &pair, Row &room) const {
  if (!cache)
    return room = givenRow(pair);
  const RowId &id = pair.query;
  const size_t place = size_t((id.batch * inputs.sizes.heads + id.head) * inputs.sizes.seqlenQ + id.row);
  std::call_once(cache->isThere[place], [&] { cache->rows[place] = recomputedRow(id); });
  return cache->rows[place];
}

template <class Number>
GradientOracle::Terms<Number> GradientOracle::termsOf(const Pair &pair, const Softmax &softmax,
                                                      std::optional<unsigned> by) const {
  const AttentionSizes &sizes = inputs.sizes;
  const RowId &id = pair.query;
  const int64_t row = (id.batch * sizes.seqlenQ + id.row) * sizes.heads + id.head;
  const int64_t key = (id.batch * sizes.seqlenK + pair.key) * sizes.kvHeads + id.head / (sizes.heads / sizes.kvHeads);
  const ScorePlace at{id.batch, id.head, problem.qOrigin + id.row, problem.kOrigin + pair.key};
  const auto product = productOf<Number>(operands<Number>().q, row, operands<Number>().k, key, sizes.headDim);
  const Number scaled = product.sum * Number(scale), score = chain.score(at, scaled);
  const Number weight = softmax.weightOf(score);
  Terms<Number> terms;
  if (weight == 0)
    return terms;
  const double slope = by ? chain.slopeBy(*by, at, double(scaled)) : chain.slope(at, double(scaled));
  const double exponent = kSpacing * (std::abs(double(score)) + scale * product.size() + std::abs(softmax.lse));
  const double weightUnit = kSpacing * double(weight) + changeOfWeight(double(weight), exponent);
  const auto along = productOf<Number>(operands<Number>().dOut, row, operands<Number>().v, key, sizes.valueDim);
  for (unsigned branch : pair.branches) {
    const size_t number = isDetached ? branch : 0;
    const Number difference = along.sum - Number(softmax.delta[number]);
    terms.weight += weight;
    terms.score += weight * difference * Number(slope);
    terms.weightUnit += weightUnit;
    terms.scoreUnit += std::abs(slope) * (kSpacing * double(weight) * (along.size() + softmax.unit[number]) +
                                          std::abs(double(difference)) * weightUnit);
    terms.outUnit += double(weight) * std::abs(slope) * roundingOfOut(softmax.unit[number]);
  }
  terms.weight = rounded(terms.weight);
  terms.score = rounded(terms.score);
  return terms;
}

double GradientOracle::roundingOfOut(double size) const {
  constexpr int kDigitsOfTf32 = 11;
  return inputs.precision == Precision::exact ? halfSpacing(size, inputs.dtype())
                                              : std::ldexp(size, -kDigitsOfTf32 - 1);
}

void GradientOracle::finish(GradientRow &row, double factor, DType dtype) const {
  for (size_t c = 0; c < row.exact.size(); ++c) {
    row.exact[c] *= factor;
    row.plain[c] = AttentionOracle::rounded(float(row.plain[c]) * float(factor), dtype);
    row.unit[c] = row.unit[c] * std::abs(factor) + halfSpacing(row.exact[c], dtype);
  }
}

GradientRow GradientOracle::ofQuery(RowId id) const {
  const AttentionSizes &sizes = inputs.sizes;
  GradientRow result = rowOfZeros(sizes.headDim);
  const Row softmax = recomputedRow(id);
  const int64_t kvHead = id.head / (sizes.heads / sizes.kvHeads);
  for (int64_t j = 0; j < sizes.seqlenK; ++j) {
    const Pair pair = pairOf(id, j);
    if (pair.branches.empty())
      continue;
    const auto exact = termsOf<double>(pair, softmax.exact);
    const auto plain = termsOf<float>(pair, softmax.plain);
    const int64_t key = (id.batch * sizes.seqlenK + j) * sizes.kvHeads + kvHead;
    addRow<double>(result.exact, exact.score, inputs.k, key);
    addRow<float>(result.plain, plain.score, operands<float>().k, key);
    addUnit(result.unit, exact.scoreUnit + (isOutRounded() ? exact.outUnit : 0), inputs.k, key);
  }
  finish(result, scale, inputs.dtype());
  return result;
}

KeyGradients GradientOracle::ofKey(RowId id) const {
  const AttentionSizes &sizes = inputs.sizes;
  KeyGradients result{rowOfZeros(sizes.headDim), rowOfZeros(sizes.valueDim)};
  const int64_t group = sizes.heads / sizes.kvHeads;
  RowUnits ofOut(sizes.headDim);
  Row room;
  for (int64_t number = 0; number < group * sizes.seqlenQ; ++number) {
    const RowId query{id.batch, id.head * group + number / sizes.seqlenQ, number % sizes.seqlenQ};
    const Pair pair = pairOf(query, id.row);
    if (pair.branches.empty())
      continue;
    const Row &softmax = rowOf(pair, room);
    const auto exact = termsOf<double>(pair, softmax.exact);
    const auto plain = termsOf<float>(pair, softmax.plain);
    const int64_t row = (query.batch * sizes.seqlenQ + query.row) * sizes.heads + query.head;
    addRow<double>(result.dK.exact, exact.score, inputs.q, row);
    addRow<float>(result.dK.plain, plain.score, operands<float>().q, row);
    addUnit(result.dK.unit, exact.scoreUnit, inputs.q, row);
    for (int64_t c = 0; isOutRounded() && c < sizes.headDim; ++c)
      ofOut.add(c, exact.outUnit * double(inputs.q.get(row * sizes.headDim + c)));
    ofOut.endRow();
    addRow<double>(result.dV.exact, exact.weight, inputs.dOut, row);
    addRow<float>(result.dV.plain, plain.weight, operands<float>().dOut, row);
    addUnit(result.dV.unit, exact.weightUnit, inputs.dOut, row);
  }
  ofOut.addTo(result.dK.unit);
  finish(result.dK, scale, inputs.dtype());
  finish(result.dV, 1, inputs.dtype());
  return result;
}

/// A key of no value and of no branch.
template <class Number>
GradientOracle::Terms<Number> GradientOracle::sinkTerms(RowId id, const Softmax &softmax) const {
  const Number sink = Number(*chain.sink(id.head));
  Terms<Number> terms;
  terms.weight = softmax.weightOf(sink);
  if (terms.weight == 0)
    return terms;
  const int64_t place = (id.batch * inputs.sizes.heads + id.head) * inputs.sizes.seqlenQ + id.row;
  const double ofLse = inputs.isGiven(Role::dLse) ? inputs.dLse.get(place) : 0;
  const double delta = isDetached ? -ofLse : softmax.delta[0];
  terms.score = -terms.weight * Number(delta);
  terms.outUnit = isDetached ? 0 : double(terms.weight) * roundingOfOut(softmax.unit[0]);
  const double weight = terms.weight, exponent = kSpacing * (std::abs(double(sink)) + std::abs(softmax.lse));
  terms.scoreUnit = kSpacing * weight * ((isDetached ? 0 : softmax.unit[0]) + std::abs(delta)) +
                    std::abs(delta) * changeOfWeight(weight, exponent);
  return terms;
}

GradientRow GradientOracle::ofArgument(unsigned wanted) const {
  const AttentionSizes &sizes = inputs.sizes;
  const bool isTensor = wanted < problem.operands.size() && problem.operands[wanted];
  GradientRow result = rowOfZeros(isTensor ? problem.operands[wanted].elements() : 1);
  RowUnits ofOut(result.unit.size());
  auto add = [&](int64_t element, const Terms<double> &exact, const Terms<float> &plain) {
    result.exact[element] += exact.score;
    result.plain[element] = double(float(result.plain[element]) + plain.score);
    result.unit[element] += exact.scoreUnit;
    ofOut.add(element, exact.outUnit);
  };
  Row room;
  for (const RowId &id : sampleRows(sizes, lengthOf(sizes))) {
    if (chain.isSink(wanted)) {
      const Row &softmax = rowOf({id, 0, {}}, room);
      add(result.exact.size() > 1 ? id.head : 0, sinkTerms<double>(id, softmax.exact),
          sinkTerms<float>(id, softmax.plain));
    }
    for (int64_t j = 0; j < sizes.seqlenK; ++j) {
      const ScorePlace at{id.batch, id.head, problem.qOrigin + id.row, problem.kOrigin + j};
      const std::optional<int64_t> element = chain.elementOf(wanted, at);
      const Pair pair = element ? pairOf(id, j) : Pair{id, j, {}};
      if (pair.branches.empty())
        continue;
      const Row &softmax = rowOf(pair, room);
      add(*element, termsOf<double>(pair, softmax.exact, wanted), termsOf<float>(pair, softmax.plain, wanted));
    }
    ofOut.endRow();
  }
  ofOut.addTo(result.unit);
  finish(result, 1, kAccumulator);
  return result;
}

} // namespace heddle::oracle
