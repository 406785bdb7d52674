//===- CpuAttention.cpp - attention on the CPU ------------------------------===//
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

// The tiles of one head of one batch element: items [firstItem, firstItem + classes * tiles).
struct HeadWork {
  JitContext context;
  int32_t variant, rate;
  int64_t tilesPerClass, items, firstItem;
};

std::string number(int64_t value) { return std::to_string(value); }

Status checkSizes(const CpuAttentionArgs &args) {
  if (args.batch < 0 || args.seqlenQ < 0 || args.seqlenK < 0)
    return Status::invalidArgument("expected batch, seqlen_q and seqlen_k >= 0, got " + number(args.batch) + ", " +
                                   number(args.seqlenQ) + " and " + number(args.seqlenK));
  if (args.heads < 1 || args.kvHeads < 1 || args.heads % args.kvHeads != 0)
    return Status::invalidArgument("expected heads to be a multiple of kv_heads, got " + number(args.heads) +
                                   " heads and " + number(args.kvHeads) + " kv_heads");
  if (args.headDim < 1 || args.valueDim < 1)
    return Status::invalidArgument("expected head_dim and value_dim >= 1, got " + number(args.headDim) + " and " +
                                   number(args.valueDim));
  if (args.blockM < 1 || args.blockN < 1)
    return Status::invalidArgument("expected block_m and block_n >= 1, got " + number(args.blockM) + " and " +
                                   number(args.blockN));
  HEDDLE_TRY(checkPositions({args.qOrigin, args.seqlenQ, args.kOrigin, args.seqlenK}));
  if (!std::isfinite(args.scale))
    return Status::invalidArgument("expected a finite scale");
  return {};
}

Status checkPointers(const CpuAttentionArgs &args) {
  bool hasRows = args.batch > 0 && args.seqlenQ > 0;
  bool hasKeys = hasRows && args.seqlenK > 0;
  if (hasRows && (!args.q || !args.out))
    return Status::invalidArgument("q and out must not be null");
  if (hasKeys && (!args.k || !args.v))
    return Status::invalidArgument("k and v must not be null");
  if (!args.carryOut != !args.carryLse)
    return Status::invalidArgument("carry_out and carry_lse must be given together");
  return {};
}

Status checkOperands(const JitPattern &pattern, const CpuAttentionArgs &args) {
  const std::vector<PatternOperand> &operands = pattern.info().operands;
  if (args.operands.size() != operands.size())
    return Status::invalidArgument("pattern '" + pattern.info().name + "' reads " + number(int64_t(operands.size())) +
                                   " tensors, got " + number(int64_t(args.operands.size())));
  for (size_t i = 0; i < operands.size(); ++i)
    if (!args.operands[i] && args.batch > 0 && args.seqlenQ > 0 && args.seqlenK > 0)
      return Status::invalidArgument("the tensor that is argument " + number(operands[i].argument) + " of pattern '" +
                                     pattern.info().name + "' must not be null");
  return {};
}

Status check(const JitPattern &pattern, const CpuAttentionArgs &args) {
  if (int64_t(args.params.size()) != pattern.info().paramCount)
    return Status::invalidArgument("pattern '" + pattern.info().name + "' has " + number(pattern.info().paramCount) +
                                   " run-time sizes, got " + number(int64_t(args.params.size())));
  HEDDLE_TRY(checkSizes(args));
  HEDDLE_TRY(checkOperands(pattern, args));
  return checkPointers(args);
}

JitContext contextOf(const CpuAttentionArgs &args, int32_t batch, int32_t head) {
  JitContext context;
  context.batch = batch;
  context.head = head;
  context.heads = args.heads;
  context.seqlenQ = args.seqlenQ;
  context.seqlenK = args.seqlenK;
  context.qOrigin = args.qOrigin;
  context.kOrigin = args.kOrigin;
  std::copy(args.params.begin(), args.params.end(), context.params.begin());
  std::copy(args.operands.begin(), args.operands.end(), context.operands.begin());
  return context;
}

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::vector<HeadWork> listHeads(const JitPattern &pattern, const CpuAttentionArgs &args) {
  std::vector<HeadWork> heads;
  int64_t items = 0;
  for (int32_t batch = 0; batch < args.batch; ++batch)
    for (int32_t head = 0; head < args.heads; ++head) {
      HeadWork work;
      work.context = contextOf(args, batch, head);
      work.variant = pattern.variant(work.context);
      work.rate = pattern.queryRate(work.variant);
      work.tilesPerClass = ceilDiv(ceilDiv(args.seqlenQ, work.rate), args.blockM);
      work.items = work.rate * work.tilesPerClass;
      work.firstItem = items;
      items += work.items;
      heads.push_back(work);
    }
  return heads;
}

// The last tiles come first: they are the long ones of a causal pattern. Classes may have fewer rows
// than the longest one, so a tile can be empty.
QueryTilePlace placeOf(const HeadWork &work, int64_t item, const CpuAttentionArgs &args) {
  int64_t local = work.items - 1 - (item - work.firstItem);
  QueryTilePlace place;
  place.variant = work.variant;
  place.rate = work.rate;
  place.rho = int32_t(local % work.rate);
  place.firstQ = int32_t(local / work.rate * args.blockM);
  int64_t rowsOfClass = std::max<int64_t>(args.seqlenQ - place.rho + place.rate - 1, 0) / place.rate;
  place.rows = int32_t(std::min<int64_t>(args.blockM, rowsOfClass - place.firstQ));
  return place;
}

} // namespace

Result<CpuAttentionCounts> runAttention(const JitPattern &pattern, const CpuAttentionArgs &args) {
  HEDDLE_TRY(check(pattern, args));
  std::vector<HeadWork> heads = listHeads(pattern, args);
  int64_t items = heads.empty() ? 0 : heads.back().firstItem + heads.back().items;
  int workers = threadCountFor(items, args.threads);
  std::vector<std::unique_ptr<QueryTileWorker>> state;
  for (int worker = 0; worker < workers; ++worker)
    state.push_back(std::make_unique<QueryTileWorker>(pattern, args));

  parallelFor(items, workers, [&](int worker, int64_t item) {
    auto after = std::upper_bound(heads.begin(), heads.end(), item,
                                  [](int64_t wanted, const HeadWork &work) { return wanted < work.firstItem; });
    const HeadWork &work = *std::prev(after);
    QueryTilePlace place = placeOf(work, item, args);
    if (place.rows > 0)
      state[worker]->run(work.context, place);
  });

  CpuAttentionCounts total;
  for (const auto &worker : state) {
    total.visitedTiles += worker->counts().visitedTiles;
    total.fullTiles += worker->counts().fullTiles;
    total.computedPairs += worker->counts().computedPairs;
  }
  return total;
}

} // namespace heddle
