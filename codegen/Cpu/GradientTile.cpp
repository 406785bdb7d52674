// Lanes beyond the tile's rows compute on zeros and are never written.
#include "codegen/Cpu/GradientTile.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Skeletons/Shared/score_units.cuh"
#include "runtime/Core/ElementConvert.h"

#include <cmath>

namespace heddle {
namespace {

int32_t blockOf(const CpuCall &call, bool isOfKeys) { return isOfKeys ? call.blockN : call.blockM; }

} // namespace

GradientTileWorker::GradientTileWorker(const CpuCall &call, SoftmaxRows &softmax, Rows rows)
    : call(call), pattern(*call.pattern), math(tileMath()), softmax(softmax), rows(rows),
      lanes((blockOf(call, !isOfQueries()) + kTileLanes - 1) / kTileLanes * kTileLanes),
      block(blockOf(call, isOfQueries())), queryFactor(call.scale * (pattern.info().hasScore ? 1.0f : kLog2OfE)),
      columnScores(block, call.headDim), columnValues(block, call.valueDim) {
  for (LaneBuffer *ofScores : {&rowScores, &gradientScores})
    ofScores->resize(int64_t(call.headDim) * lanes);
  for (LaneBuffer *ofValues : {&rowValues, &gradientValues})
    ofValues->resize(int64_t(call.valueDim) * lanes);
  for (LaneBuffer *ofPairs : {&scores, &products, &slopes})
    ofPairs->resize(int64_t(block) * lanes);
  for (LaneBuffer *ofRows : {&lse, &delta, &weightSum, &productSum})
    ofRows->resize(std::max(lanes, block));
  row.resize(std::max(call.headDim, call.valueDim));
  keep.assign(lanes, 0);
  places.assign(lanes, 0);
}

void GradientTileWorker::startTile(const TilePlace &where) {
  place = where;
  const int32_t origin = isOfQueries() ? call.qOrigin : call.kOrigin;
  firstPosition = origin + place.rowIndex(0);
  lastPosition = origin + place.rowIndex(place.rows - 1);
  loadLanes(isOfQueries() ? Role::q : Role::k, call.headDim, isOfQueries() ? queryFactor : 1.0f, rowScores.data());
  loadLanes(isOfQueries() ? Role::dOut : Role::v, call.valueDim, 1.0f, rowValues.data());
}

void GradientTileWorker::run(const TilePlace &where) {
  startTile(where);
  const int32_t group = call.heads / call.kvHeads;
  std::fill_n(gradientScores.data(), int64_t(call.headDim) * lanes, 0.0f);
  std::fill_n(gradientValues.data(), int64_t(call.valueDim) * lanes, 0.0f);
  const int32_t first = isOfQueries() ? place.head : place.head * group;
  for (int32_t head = first; head < first + (isOfQueries() ? 1 : group); ++head)
    runHead(head);
  const float ofQueries = pattern.info().hasScore ? 1.0f : kLogOf2; // the scale is in queryFactor
  store(isOfQueries() ? Role::dQ : Role::dK, call.headDim, isOfQueries() ? call.scale : ofQueries, gradientScores);
  if (!isOfQueries())
    store(Role::dV, call.valueDim, 1.0f, gradientValues);
}

void GradientTileWorker::addToArgument(const TilePlace &where, const CpuCall::ArgumentGradient &of, float *sums) {
  startTile(where);
  argument = of.argument;
  argumentSums = sums;
  context = contextOf(call, place.batch, place.head);
  variant = pattern.variant(context);
  for (int32_t branch = 0; branch < pattern.info().branchCount; ++branch)
    runBranch(branch, Purpose::argument);
}

void GradientTileWorker::loadLanes(Role role, int32_t dim, float factor, float *to) {
  const CpuStrides stride = call.stridesOf(role);
  std::fill_n(to, int64_t(dim) * lanes, 0.0f);
  for (int32_t m = 0; m < place.rows; ++m) {
    loadElements(call.elementOf(role), call.as<void>(role),
                 offsetOf(stride, place.batch, place.rowIndex(m), place.head), dim, row.data());
    for (int32_t d = 0; d < dim; ++d)
      to[int64_t(d) * lanes + m] = row.data()[d] * factor;
  }
}

void GradientTileWorker::store(Role role, int32_t dim, float factor, LaneBuffer &from) {
  const CpuStrides stride = call.stridesOf(role);
  const bool isAdded = Kind{KindBase::backward, call.adds}.addsTo(role);
  const DType element = isAdded ? kAccumulator : call.elementOf(role);
  for (int32_t m = 0; m < place.rows; ++m) {
    const int64_t offset = offsetOf(stride, place.batch, place.rowIndex(m), place.head);
    const float *before = isAdded ? call.as<float>(role) + offset : nullptr;
    for (int32_t d = 0; d < dim; ++d)
      row.data()[d] = from.data()[int64_t(d) * lanes + m] * factor + (before ? before[d] : 0);
    storeElements(element, row.data(), dim, call.as<void>(role), offset);
  }
}

void GradientTileWorker::runHead(int32_t head) {
  context = contextOf(call, place.batch, head);
  variant = pattern.variant(context);
  for (int32_t branch = 0; branch < pattern.info().branchCount; ++branch) {
    if (isOfQueries() && pattern.info().isDetached) {
      runBranch(branch, Purpose::delta);
      findDelta(branch);
    }
    runBranch(branch, Purpose::gradients);
  }
}

int64_t GradientTileWorker::numberOfQuery(int64_t index) const {
  return (int64_t(context.batch) * call.heads + context.head) * call.seqlenQ + index;
}

/// Lanes get what their rows need, where these are queries.
void GradientTileWorker::setLaneNumbers(int32_t branch, Purpose purpose) {
  const std::vector<float> &deltas = softmax.delta[pattern.info().isDetached ? branch : 0];
  std::fill_n(lse.data(), lanes, INFINITY);
  std::fill_n(delta.data(), lanes, 0.0f);
  for (int32_t m = 0; m < place.rows; ++m) {
    lse.data()[m] = softmax.lse[numberOfQuery(place.rowIndex(m))];
    delta.data()[m] = purpose == Purpose::delta ? 0.0f : deltas[numberOfQuery(place.rowIndex(m))];
  }
}

void GradientTileWorker::runBranch(int32_t branch, Purpose purpose) {
  const Columns columns(branch,
                        isOfQueries() ? pattern.keyRate(variant, branch) : pattern.transposedQueryRate(variant, branch),
                        isOfQueries() ? pattern.keyResidue(context, variant, branch, firstPosition)
                                      : pattern.transposedQueryResidue(context, variant, branch, firstPosition),
                        isOfQueries() ? call.seqlenK : call.seqlenQ);
  if (isOfQueries())
    setLaneNumbers(branch, purpose);
  const JitTile tileOfRows{variant, branch, firstPosition, lastPosition, block};
  const auto nextRange = [&](int32_t from) {
    return isOfQueries() ? pattern.nextRange(context, tileOfRows, from)
                         : pattern.transposedNextRange(context, tileOfRows, from);
  };
  forEachTile(columns, block, nextRange, [&](int32_t first, bool isFull) {
    computePairs(columns, first, isFull, purpose);
    if (purpose == Purpose::argument)
      addToElements(columns, first);
    else if (purpose == Purpose::delta)
      addToSums(countOf(columns, first));
    else
      addToGradients(countOf(columns, first));
  });
}

void GradientTileWorker::computePairs(const Columns &columns, int32_t first, bool isFull, Purpose purpose) {
  loadColumns(columns, first);
  const int32_t count = countOf(columns, first);
  columnScores.multiply(math, rowScores.data(), scores.data(), count, lanes);
  columnValues.multiply(math, rowValues.data(), products.data(), count, lanes);
  const bool hasScore = pattern.info().hasScore;
  if (hasScore)
    changeScores(columns, first, purpose);
  if (!isFull)
    maskScores(columns, first);
  math.gradientStep({scores.data(), products.data(), hasScore && purpose != Purpose::delta ? slopes.data() : nullptr,
                     count, lanes, lse.data(), delta.data(), !isOfQueries()});
}

void GradientTileWorker::loadColumns(const Columns &columns, int32_t first) {
  const Role ofScores = isOfQueries() ? Role::k : Role::q, ofValues = isOfQueries() ? Role::v : Role::dOut;
  const CpuStrides scoreStride = call.stridesOf(ofScores), valueStride = call.stridesOf(ofValues);
  const int32_t head = isOfQueries() ? place.head / (call.heads / call.kvHeads) : context.head;
  for (int32_t n = 0; n < countOf(columns, first); ++n) {
    const int64_t index = columns.index(first + n);
    loadElements(call.elementOf(ofScores), call.as<void>(ofScores), offsetOf(scoreStride, place.batch, index, head),
                 call.headDim, columnScores.row(n));
    loadElements(call.elementOf(ofValues), call.as<void>(ofValues), offsetOf(valueStride, place.batch, index, head),
                 call.valueDim, columnValues.row(n));
    if (isOfQueries())
      continue;
    std::for_each_n(columnScores.row(n), call.headDim, [this](float &element) { element *= queryFactor; });
    lse.data()[n] = softmax.lse[numberOfQuery(index)];
    delta.data()[n] = softmax.delta[pattern.info().isDetached ? columns.branch : 0][numberOfQuery(index)];
  }
}

JitKeepLine GradientTileWorker::lineOf(const Columns &columns, int32_t column) const {
  const int32_t position = (isOfQueries() ? call.kOrigin : call.qOrigin) + int32_t(columns.index(column));
  return {columns.branch, isOfQueries() ? firstPosition : position, isOfQueries() ? position : firstPosition,
          place.rate, place.rows};
}

// From natural units through the chain to those of base 2; slopes become its derivatives.
void GradientTileWorker::changeScores(const Columns &columns, int32_t first, Purpose purpose) {
  const int32_t count = countOf(columns, first);
  std::copy_n(scores.data(), int64_t(count) * lanes, slopes.data());
  for (int32_t n = 0; n < count; ++n) {
    const JitKeepLine line = lineOf(columns, first + n);
    float *score = scores.data() + int64_t(n) * lanes, *slope = slopes.data() + int64_t(n) * lanes;
    if (isOfQueries()) {
      pattern.scoreColumn(context, line, score);
      if (purpose == Purpose::argument)
        pattern.argumentGradientColumn(context, argument, line, slope);
      else
        pattern.scoreGradientColumn(context, line, slope);
    } else {
      pattern.scoreRow(context, line, score);
      pattern.scoreGradientRow(context, line, slope);
    }
    for (int32_t m = 0; m < place.rows; ++m)
      score[m] *= kLog2OfE;
  }
}

void GradientTileWorker::maskScores(const Columns &columns, int32_t first) {
  for (int32_t n = 0; n < countOf(columns, first); ++n) {
    const JitKeepLine line = lineOf(columns, first + n);
    if (isOfQueries())
      pattern.keepColumn(context, line, keep.data());
    else
      pattern.keepRow(context, line, keep.data());
    math.maskLanes(scores.data() + int64_t(n) * lanes, lanes, keep.data());
  }
}

void GradientTileWorker::addToGradients(int32_t count) {
  columnScores.addWeighted(math, products.data(), gradientScores.data(), count, lanes);
  if (!isOfQueries())
    columnValues.addWeighted(math, scores.data(), gradientValues.data(), count, lanes);
}

void GradientTileWorker::addToSums(int32_t count) {
  for (int32_t n = 0; n < count; ++n)
    for (int32_t m = 0; m < place.rows; ++m) {
      weightSum.data()[m] += scores.data()[int64_t(n) * lanes + m];
      productSum.data()[m] += products.data()[int64_t(n) * lanes + m];
    }
}

void GradientTileWorker::addToElements(const Columns &columns, int32_t first) {
  for (int32_t n = 0; n < countOf(columns, first); ++n) {
    const float *product = products.data() + int64_t(n) * lanes;
    pattern.argumentPlaceColumn(context, argument, lineOf(columns, first + n), places.data());
    for (int32_t m = 0; m < place.rows; ++m)
      if (product[m] != 0.0f) // also of rows that are not finite and keep nothing here
        argumentSums[places[m]] += product[m];
  }
}

/// <d_out, out of the branch>, minus the gradient of lse, which softmax.delta has so far.
void GradientTileWorker::findDelta(int32_t branch) {
  for (int32_t m = 0; m < place.rows; ++m) {
    const float weight = weightSum.data()[m];
    softmax.delta[branch][numberOfQuery(place.rowIndex(m))] += weight == 0.0f ? 0.0f : productSum.data()[m] / weight;
    weightSum.data()[m] = productSum.data()[m] = 0.0f;
  }
}

} // namespace heddle
