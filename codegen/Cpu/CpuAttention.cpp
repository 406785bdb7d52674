// Checks the arguments, lists the query tiles of every head as a kernel's grid does, and spreads them
// over threads.
#include "codegen/Cpu/CpuAttention.h"
#include "runtime/Core/ParallelFor.h"
#include "runtime/Core/Positions.h"
#include "codegen/Cpu/QueryTile.h"
#include "codegen/Emit/PatternInfo.h"
#include <cmath>

namespace heddle {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

Status checkSizes(const CpuCall &call) {
  if (call.batch < 0 || call.seqlenQ < 0 || call.seqlenK < 0)
    return Status::invalidArgument("expected batch, seqlen_q and seqlen_k >= 0, got " + number(call.batch) + ", " +
                                   number(call.seqlenQ) + " and " + number(call.seqlenK));
  if (call.heads < 1 || call.kvHeads < 1 || call.heads % call.kvHeads != 0)
    return Status::invalidArgument("expected heads to be a multiple of kv_heads, got " + number(call.heads) +
                                   " heads and " + number(call.kvHeads) + " kv_heads");
  if (call.headDim < 1 || call.valueDim < 1)
    return Status::invalidArgument("expected head_dim and value_dim >= 1, got " + number(call.headDim) + " and " +
                                   number(call.valueDim));
  if (call.blockM < 1 || call.blockN < 1)
    return Status::invalidArgument("expected block_m and block_n >= 1, got " + number(call.blockM) + " and " +
                                   number(call.blockN));
  HEDDLE_TRY(checkPositions({call.qOrigin, call.seqlenQ, call.kOrigin, call.seqlenK}));
  if (!std::isfinite(call.scale))
    return Status::invalidArgument("expected a finite scale");
  return {};
}

Status checkPointers(const CpuCall &call) {
  bool hasRows = call.batch > 0 && call.seqlenQ > 0;
  bool hasKeys = hasRows && call.seqlenK > 0;
  auto isGiven = [&](Role role) { return call.role[size_t(role)] != nullptr; };
  if (hasRows && (!isGiven(Role::q) || !isGiven(Role::out)))
    return Status::invalidArgument("q and out must not be null");
  if (hasKeys && (!isGiven(Role::k) || !isGiven(Role::v)))
    return Status::invalidArgument("k and v must not be null");
  if (isGiven(Role::carryOut) != isGiven(Role::carryLse))
    return Status::invalidArgument("carry_out and carry_lse must be given together");
  return {};
}

Status checkOperands(const CpuCall &call) {
  const JitPattern &pattern = *call.pattern;
  const std::vector<PatternOperand> &operands = pattern.info().operands;
  if (call.operands.size() != operands.size())
    return Status::invalidArgument("pattern '" + pattern.info().name + "' reads " + number(int64_t(operands.size())) +
                                   " tensors, got " + number(int64_t(call.operands.size())));
  for (size_t i = 0; i < operands.size(); ++i)
    if (!call.operands[i] && call.batch > 0 && call.seqlenQ > 0 && call.seqlenK > 0)
      return Status::invalidArgument("the tensor that is argument " + number(operands[i].argument) + " of pattern '" +
                                     pattern.info().name + "' must not be null");
  return {};
}

} // namespace

Status checkSizesOf(const CpuCall &call) {
  const JitPattern &pattern = *call.pattern;
  if (int64_t(call.params.size()) != pattern.info().paramCount)
    return Status::invalidArgument("pattern '" + pattern.info().name + "' has " + number(pattern.info().paramCount) +
                                   " run-time sizes, got " + number(int64_t(call.params.size())));
  HEDDLE_TRY(checkSizes(call));
  return checkOperands(call);
}

JitContext contextOf(const CpuCall &call, int32_t batch, int32_t head) {
  JitContext context;
  context.batch = call.sequence + batch;
  context.head = head;
  context.heads = call.heads;
  context.seqlenQ = call.seqlenQ;
  context.seqlenK = call.seqlenK;
  context.qOrigin = call.qOrigin;
  context.kOrigin = call.kOrigin;
  std::copy(call.params.begin(), call.params.end(), context.params.begin());
  std::copy(call.operands.begin(), call.operands.end(), context.operands.begin());
  return context;
}

TileItems queryTiles(const CpuCall &call) {
  TileItems items(call.seqlenQ, call.blockM);
  const int32_t endHead = call.ownHeads ? call.firstHead + call.ownHeads : call.heads;
  for (int32_t batch = 0; batch < call.batch; ++batch)
    for (int32_t head = call.firstHead; head < endHead; ++head)
      items.add(batch, head, call.pattern->queryRate(call.pattern->variant(contextOf(call, batch, head))));
  return items;
}

Result<CpuAttentionCounts> runAttention(const CpuCall &call) {
  HEDDLE_TRY(checkSizesOf(call));
  HEDDLE_TRY(checkPointers(call));
  const TileItems items = queryTiles(call);
  const int workers = threadCountFor(items.count(), call.threads);
  std::vector<std::unique_ptr<QueryTileWorker>> state;
  for (int worker = 0; worker < workers; ++worker)
    state.push_back(std::make_unique<QueryTileWorker>(call));

  parallelFor(items.count(), workers, [&](int worker, int64_t item) {
    if (const TilePlace place = items.placeOf(item); place.rows > 0)
      state[worker]->run(place);
  });

  CpuAttentionCounts total;
  for (const auto &worker : state) {
    total.visitedTiles += worker->counts().visitedTiles;
    total.fullTiles += worker->counts().fullTiles;
    total.computedPairs += worker->counts().computedPairs;
  }
  return total;
}

Status forwardOnCpu(const CpuCall &call) { return runAttention(call).status(); }

} // namespace heddle
