// Lanes beyond the tile's rows compute on zeros and are never written.
#include "codegen/Cpu/QueryTile.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Skeletons/Shared/score_units.cuh"
#include "runtime/Core/ElementConvert.h"
#include <algorithm>
#include <cmath>

namespace heddle {

static void scaleRow(float *row, int64_t count, float factor) {
  std::for_each_n(row, count, [=](float &value) { value *= factor; });
}

QueryTileWorker::QueryTileWorker(const CpuCall &call)
    : pattern(*call.pattern), call(call), math(tileMath()), qStride(call.stridesOf(Role::q)),
      kStride(call.stridesOf(Role::k)), vStride(call.stridesOf(Role::v)), outStride(call.stridesOf(Role::out)),
      lanes((call.blockM + kTileLanes - 1) / kTileLanes * kTileLanes), keys(call.blockN, call.headDim),
      values(call.blockN, call.valueDim) {
  queries.resize(int64_t(call.headDim) * lanes);
  scores.resize(int64_t(call.blockN) * lanes);
  output.resize(int64_t(call.valueDim) * lanes);
  for (LaneBuffer *perRow : {&rowMax, &rowSum, &rescale})
    perRow->resize(lanes);
  row.resize(std::max(call.headDim, call.valueDim));
  keep.assign(lanes, 0);
}

void QueryTileWorker::run(const TilePlace &where) {
  place = where;
  context = contextOf(call, place.batch, place.head);
  variant = pattern.variant(context);
  firstPosition = call.qOrigin + place.rowIndex(0);
  lastPosition = call.qOrigin + place.rowIndex(place.rows - 1);
  loadQueries();
  startSoftmax();
  for (int32_t branch = 0; branch < pattern.info().branchCount; ++branch)
    runBranch(branch);
  writeRows();
}

void QueryTileWorker::loadQueries() {
  const float scale = pattern.info().hasScore ? call.scale : call.scale * kLog2OfE;
  float *to = queries.data(), *from = row.data();
  std::fill_n(to, int64_t(call.headDim) * lanes, 0.0f);
  for (int32_t m = 0; m < place.rows; ++m) {
    loadElements(call.elements.q, call.as<void>(Role::q),
                 offsetOf(qStride, place.batch, place.rowIndex(m), context.head), call.headDim, from);
    const float descale = call.descaleOf(Role::descaleQ, context.batch, context.head, place.rowIndex(m));
    const float factor = scale * (hasKeyBlocks() ? descale : descale * descaleOfKey(0));
    for (int32_t d = 0; d < call.headDim; ++d)
      to[int64_t(d) * lanes + m] = from[d] * factor;
  }
}

void QueryTileWorker::startSoftmax() {
  std::fill_n(rowMax.data(), lanes, -INFINITY);
  std::fill_n(rowSum.data(), lanes, 0.0f);
  std::fill_n(output.data(), int64_t(call.valueDim) * lanes, 0.0f);
  if (call.as<float>(Role::carryOut))
    loadCarry();
  else if (pattern.info().hasSink)
    loadSink();
}

// A key without a value.
void QueryTileWorker::loadSink() {
  const float sink = pattern.sink(context);
  if (sink == -INFINITY)
    return;
  std::fill_n(rowMax.data(), lanes, sink * kLog2OfE);
  std::fill_n(rowSum.data(), lanes, 1.0f);
}

// The carry is one key with score lse and value out, as far as a softmax can tell.
void QueryTileWorker::loadCarry() {
  for (int32_t m = 0; m < place.rows; ++m) {
    int64_t index = place.rowIndex(m);
    float lse = call.as<float>(Role::carryLse)[numberOfRow(index)];
    if (lse == -INFINITY)
      continue;
    rowMax.data()[m] = lse * kLog2OfE;
    rowSum.data()[m] = 1.0f;
    const float *from =
        call.as<float>(Role::carryOut) + offsetOf(call.stridesOf(Role::carryOut), place.batch, index, context.head);
    for (int32_t d = 0; d < call.valueDim; ++d)
      output.data()[int64_t(d) * lanes + m] = from[d];
  }
}

void QueryTileWorker::runBranch(int32_t branch) {
  const Columns keyClass(branch, pattern.keyRate(variant, branch),
                         pattern.keyResidue(context, variant, branch, firstPosition), call.seqlenK);
  forEachTile(
      keyClass, call.blockN,
      [&](int32_t from) {
        return pattern.nextRange(context, {variant, branch, firstPosition, lastPosition, call.blockN}, from);
      },
      [&](int32_t first, bool isFull) { runKeyTile(keyClass, first, isFull); });
}

void QueryTileWorker::runKeyTile(const Columns &keyClass, int32_t first, bool isFull) {
  const int32_t count = keyClass.countFrom(first, call.blockN);
  seen.visitedTiles += 1;
  seen.fullTiles += isFull;
  seen.computedPairs += int64_t(place.rows) * count;
  loadKeys(keyClass, first, count);
  keys.multiply(math, queries.data(), scores.data(), count, lanes);
  if (pattern.info().hasScore)
    changeScores(keyClass, first, count);
  if (!isFull)
    maskScores(keyClass, first, count);
  math.softmaxStep({scores.data(), count, lanes, rowMax.data(), rowSum.data(), rescale.data()});
  math.scaleLanes(output.data(), call.valueDim, lanes, rescale.data());
  values.addWeighted(math, scores.data(), output.data(), count, lanes);
}

void QueryTileWorker::loadKeys(const Columns &keyClass, int32_t first, int32_t count) {
  const float descale = call.descaleOf(Role::descaleV, context.batch, kvHead());
  for (int32_t n = 0; n < count; ++n) {
    const int64_t index = keyClass.index(first + n);
    loadElements(call.elements.k, call.as<void>(Role::k), call.offsetOfKey(kStride, place.batch, index, kvHead()),
                 call.headDim, keys.row(n));
    call.load(Role::v, call.offsetOfKey(vStride, place.batch, index, kvHead()), call.valueDim, values.row(n));
    if (hasKeyBlocks())
      scaleRow(keys.row(n), call.headDim, descaleOfKey(index));
    if (descale != 1)
      scaleRow(values.row(n), call.valueDim, descale);
  }
}

float QueryTileWorker::descaleOfKey(int64_t index) const {
  return call.descaleOf(Role::descaleK, context.batch, kvHead(), index);
}

int32_t QueryTileWorker::kvHead() const { return context.head / (call.heads / call.kvHeads); }

// From natural units through the chain to log2 units.
void QueryTileWorker::changeScores(const Columns &keyClass, int32_t first, int32_t count) {
  for (int32_t n = 0; n < count; ++n) {
    int32_t position = call.kOrigin + int32_t(keyClass.index(first + n));
    float *column = scores.data() + int64_t(n) * lanes;
    pattern.scoreColumn(context, {keyClass.branch, firstPosition, position, place.rate, place.rows}, column);
    for (int32_t m = 0; m < place.rows; ++m)
      column[m] *= kLog2OfE;
  }
}

void QueryTileWorker::maskScores(const Columns &keyClass, int32_t first, int32_t count) {
  for (int32_t n = 0; n < count; ++n) {
    int32_t position = call.kOrigin + int32_t(keyClass.index(first + n));
    pattern.keepColumn(context, {keyClass.branch, firstPosition, position, place.rate, place.rows}, keep.data());
    math.maskLanes(scores.data() + int64_t(n) * lanes, lanes, keep.data());
  }
}

int64_t QueryTileWorker::numberOfRow(int64_t index) const {
  return (int64_t(place.batch) * call.heads + context.head) * (call.lseRows ? call.lseRows : call.seqlenQ) + index;
}

void QueryTileWorker::writeRows() {
  for (int32_t m = 0; m < place.rows; ++m) {
    int64_t index = place.rowIndex(m);
    float sum = rowSum.data()[m];
    float inverse = sum == 0.0f ? 0.0f : 1.0f / sum; // a sum that is NaN stays one
    for (int32_t d = 0; d < call.valueDim; ++d)
      row.data()[d] = output.data()[int64_t(d) * lanes + m] * inverse;
    storeElements(call.elements.out, row.data(), call.valueDim, call.as<void>(Role::out),
                  offsetOf(outStride, place.batch, index, context.head));
    if (float *lse = call.as<float>(Role::lse))
      lse[numberOfRow(index)] =
          sum == 0.0f ? -INFINITY : float((rowMax.data()[m] + std::log2(double(sum))) * std::log(2.0));
  }
}

} // namespace heddle
