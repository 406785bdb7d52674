//===- Backward.cpp - gradients on the CPU ---------------------------------===//
// Two walks: of queries with their keys for d_q, of keys with their queries for d_k and d_v. Each tile is one thread's,
// and adds up in one order, so bits do not depend on the number of threads.
//===----------------------------------------------------------------------===//
#include "codegen/Cpu/CpuKinds.h"
#include "codegen/Cpu/GradientTile.h"
#include "codegen/Emit/PatternInfo.h"
#include "runtime/Core/ParallelFor.h"

#include <cmath>
#include <memory>
#include <numeric>

namespace heddle {
namespace {

constexpr float log2OfE = 1.44269504088896340736f;

Status check(const CpuCall &call) {
  HEDDLE_TRY(checkSizesOf(call));
  for (const KindRole &known : (*findKind("backward"))->roles) {
    const int64_t rows = specOf(known.role).rows == RoleExtent::seqlenQ ? call.seqlenQ : call.seqlenK;
    if (known.presence == Presence::required && call.batch * rows > 0 && !call.as<void>(known.role))
      return Status::invalidArgument(std::string(specOf(known.role).name) + " must not be null");
  }
  return {};
}

/// Deltas of branches begin with what all of them share.
Status readSoftmax(const CpuCall &call, SoftmaxRows &softmax) {
  const int64_t count = int64_t(call.batch) * call.heads * call.seqlenQ;
  const bool isDetached = call.pattern->info().isDetached;
  softmax.lse.assign(call.as<float>(Role::lse), call.as<float>(Role::lse) + count);
  for (float &lse : softmax.lse)
    lse = lse == -INFINITY ? INFINITY : lse * log2OfE;
  softmax.delta.assign(isDetached ? call.pattern->info().branchCount : 1, std::vector<float>(count, 0.0f));
  if (!isDetached) {
    CpuCall rowDot = call;
    rowDot.role[size_t(Role::delta)] = softmax.delta[0].data();
    HEDDLE_TRY(cpuFunctionOf(**findKind("row_dot"))(rowDot));
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

TileItems queryTiles(const CpuCall &call) {
  TileItems items(call.seqlenQ, call.blockM);
  for (int32_t batch = 0; batch < call.batch; ++batch)
    for (int32_t head = 0; head < call.heads; ++head)
      items.add(batch, head, call.pattern->queryRate(call.pattern->variant(contextOf(call, batch, head))));
  return items;
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
  return {};
}

} // namespace heddle
