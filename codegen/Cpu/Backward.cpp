// Two walks: of queries with their keys for d_q, of keys with their queries for d_k and d_v. Each tile is one thread's,
// and adds up in one order, so bits do not depend on the number of threads.
#include "codegen/Cpu/CpuKinds.h"
#include "codegen/Cpu/GradientTile.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Skeletons/Shared/score_units.cuh"
#include "runtime/Core/ParallelFor.h"
#include "runtime/Core/Positions.h"

#include <cmath>
#include <memory>
#include <numeric>

namespace heddle {
namespace {

Status check(const CpuCall &call) {
  HEDDLE_TRY(checkSizesOf(call));
  if (call.adds != Adds::none && call.pattern->info().isDetached)
    HEDDLE_TRY(checkAllKeys(call.kOrigin));
  for (const KindRole &known : Kind{KindBase::backward}.roles()) {
    const int64_t rows = specOf(known.role).rows == RoleExtent::seqlenQ ? call.seqlenQ : call.seqlenK;
    if (known.presence == Presence::required && call.batch * rows > 0 && !call.as<void>(known.role))
      return Status::invalidArgument(std::string(specOf(known.role).name) + " must not be null");
  }
  for (const CpuCall::ArgumentGradient &wanted : call.argumentGradients)
    if (!call.pattern->hasArgumentGradient(wanted.argument) && call.pattern->info().sinkArgument != wanted.argument)
      return Status::invalidArgument("scores of pattern '" + call.pattern->info().name +
                                     "' have no derivative by argument " + std::to_string(wanted.argument));
  return {};
}

/// Deltas of branches begin with what all of them share.
Status readSoftmax(const CpuCall &call, SoftmaxRows &softmax) {
  const int64_t count = int64_t(call.batch) * call.heads * call.seqlenQ;
  const bool isDetached = call.pattern->info().isDetached;
  softmax.lse.assign(call.as<float>(Role::lse), call.as<float>(Role::lse) + count);
  for (float &lse : softmax.lse)
    lse = std::isinf(lse) ? INFINITY : float(lse * 1.4426950408889634074);
  softmax.delta.assign(isDetached ? call.pattern->info().branchCount : 1, std::vector<float>(count, 0.0f));
  if (!isDetached) {
    CpuCall rowDot = call;
    rowDot.role[size_t(Role::delta)] = softmax.delta[0].data();
    HEDDLE_TRY(cpuFunctionOf(KindBase::rowDot)(rowDot));
  }
  if (const float *ofLse = call.as<float>(Role::dLse))
    for (std::vector<float> &delta : softmax.delta)
      for (int64_t i = 0; i < count; ++i)
        delta[i] -= ofLse[i];
  return {};
}

void runTiles(const CpuCall &call, SoftmaxRows &softmax, GradientTileWorker::Rows rows, const TileItems &items) {
  const int workers = threadCountFor(items.count(), call.threads);
  std::vector<std::unique_ptr<GradientTileWorker>> state;
  for (int worker = 0; worker < workers; ++worker)
    state.push_back(std::make_unique<GradientTileWorker>(call, softmax, rows));
  parallelFor(items.count(), workers, [&](int worker, int64_t item) {
    if (const TilePlace place = items.placeOf(item); place.rows > 0)
      state[worker]->run(place);
  });
}

/// A multiple of the rates of all heads: rows of a tile lie in one class for each.
int32_t commonQueryRate(const CpuCall &call) {
  int32_t rate = 1;
  for (int32_t head = 0; head < call.heads; ++head)
    rate = std::lcm(rate, call.pattern->queryRate(call.pattern->variant(contextOf(call, 0, head))));
  return rate;
}

/// Sums of parts of the tiles, the parts added in their order: as many as there are threads has no say in it.
void addScores(const CpuCall &call, SoftmaxRows &softmax, const CpuCall::ArgumentGradient &wanted) {
  constexpr int64_t kMostParts = 64, kMostSums = int64_t(1) << 23;
  TileItems tiles(call.seqlenQ, call.blockM);
  tiles.add(0, 0, commonQueryRate(call));
  const int64_t parts = wanted.hasQueryRows
                            ? tiles.count()
                            : std::min(tiles.count(), std::clamp(kMostSums / wanted.elements, int64_t(1), kMostParts));
  std::vector<float> sums(wanted.hasQueryRows ? 0 : parts * wanted.elements, 0.0f);
  const int workers = threadCountFor(parts, call.threads);
  std::vector<std::unique_ptr<GradientTileWorker>> state;
  for (int worker = 0; worker < workers; ++worker)
    state.push_back(std::make_unique<GradientTileWorker>(call, softmax, GradientTileWorker::Rows::queries));
  parallelFor(parts, workers, [&](int worker, int64_t part) {
    float *to = wanted.hasQueryRows ? wanted.address : sums.data() + part * wanted.elements;
    for (int64_t tile = part; tile < tiles.count(); tile += parts) {
      TilePlace place = tiles.placeOf(tile);
      for (place.batch = 0; place.rows > 0 && place.batch < call.batch; ++place.batch)
        for (place.head = 0; place.head < call.heads; ++place.head)
          state[worker]->addToArgument(place, wanted, to);
    }
  });
  for (int64_t i = 0, end = int64_t(sums.size()); i < end; ++i)
    wanted.address[i % wanted.elements] += sums[i];
}

/// A key of no value: its product is 0. Detached, it is in the weights of branches and in lse.
void addSink(const CpuCall &call, const SoftmaxRows &softmax, const CpuCall::ArgumentGradient &wanted) {
  const float *ofLse = call.as<float>(Role::dLse);
  for (int32_t head = 0; head < call.heads; ++head) {
    double sum = 0;
    for (int32_t batch = 0; batch < call.batch; ++batch) {
      const float sink = call.pattern->sink(contextOf(call, batch, head)) * kLog2OfE;
      for (int64_t row = 0; row < call.seqlenQ; ++row) {
        const int64_t number = (int64_t(batch) * call.heads + head) * call.seqlenQ + row;
        const float lse = softmax.lse[number], distance = sink - lse;
        const double weight = distance > -roundingOfLse(lse) ? 1 : std::exp2(double(distance));
        const double delta = call.pattern->info().isDetached ? (ofLse ? -ofLse[number] : 0) : softmax.delta[0][number];
        sum -= weight == 0 ? 0 : weight * delta;
      }
    }
    wanted.address[wanted.elements > 1 ? head : 0] += float(sum);
  }
}

void computeArgumentGradient(const CpuCall &call, SoftmaxRows &softmax, const CpuCall::ArgumentGradient &wanted) {
  std::fill_n(wanted.address, wanted.elements, 0.0f);
  if (call.pattern->hasArgumentGradient(wanted.argument) && wanted.elements > 0)
    addScores(call, softmax, wanted);
  if (call.pattern->info().sinkArgument == wanted.argument)
    addSink(call, softmax, wanted);
}

/// Rows of a tile lie in one class for every head that shares them.
TileItems keyTiles(const CpuCall &call) {
  TileItems items(call.seqlenK, call.blockN);
  const int32_t group = call.heads / call.kvHeads;
  for (int32_t batch = 0; batch < call.batch; ++batch)
    for (int32_t kvHead = 0; kvHead < call.kvHeads; ++kvHead) {
      int32_t rate = 1;
      for (int32_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
        rate = std::lcm(rate, call.pattern->transposedKeyRate(call.pattern->variant(contextOf(call, batch, head))));
      items.add(batch, kvHead, rate);
    }
  return items;
}

} // namespace

Status backwardOnCpu(const CpuCall &call) {
  HEDDLE_TRY(check(call));
  SoftmaxRows softmax;
  HEDDLE_TRY(readSoftmax(call, softmax));
  runTiles(call, softmax, GradientTileWorker::Rows::queries, queryTiles(call));
  runTiles(call, softmax, GradientTileWorker::Rows::keys, keyTiles(call));
  for (const CpuCall::ArgumentGradient &wanted : call.argumentGradients)
    computeArgumentGradient(call, softmax, wanted);
  return {};
}

} // namespace heddle
