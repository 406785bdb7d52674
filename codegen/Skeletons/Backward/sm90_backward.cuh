// The backward skeleton of Hopper: d_q, d_k and d_v over the query tiles that the generated TransposedPattern names for
// every key tile. One block has the keys of one kv head and walks the query heads of its group, so that d_k and d_v
// stay in registers: kBlockN / 64 consumer warpgroups of 64 keys each (beyond head dims of 128 two, which share 64 keys
// by what they sum), one producing warpgroup, whose first warp walks and copies and where sums are added in order two
// more see to the turns, and where kReduce is 1 or 3 one that makes the query gradient. Launched between
// heddle_backward_preprocess and heddle_convert_dq (backward_rows.cuh), for gradient(detached) behind
// heddle_branch_deltas as well. Needs, before it in the source: prelude.cuh, struct KernelTraits, struct Pattern,
// struct TransposedPattern (docs/architecture.md sections 2 and 3).
//
// KernelTraits, all `static constexpr int`:
//   kBlockM              queries of a step, 64 or 64 for each consumer
//   kBlockN              keys of a block, 64 for each consumer; 64 beyond head dims of 128
//   kStages              slots of the rings of Q and of d_out, 2 to 4
//   kReduce              how the query gradient comes about: added to its sums by the consumers, or by a warpgroup of its
//                        own, in order or not, or by a walk of its own (sm90_layout.cuh)
//   kOrderRate           of keys and queries, where sums are added in order; else 0
//   kLongSplit           blocks that share an item of many tiles (sm90_cta_teams.cuh); 1: none do
//   kRasterReversed      1: last key tile first
//   kProducerRegisters, kConsumerRegisters   registers of a thread after launch
//   kHeadDim, kValueDim  multiples of 8, up to 256
//   Element              of all tensors; kElementBytes, kMmaStep are its numbers
//   kTilesAreWhole       1: pairs are kept or dropped by whole tiles, 2: likewise, of what lies in the pattern's band
//   kSquare              otherwise: pairs are kept or dropped by squares of so many rows and keys of a class; 1: or one by one
//   kSquaresHaveBand     1: likewise, of what lies in the pattern's band
//   kPassesWeights       1: a consumer of a wide head hands P to the other (sm90_wide_consumer.cuh)
//   kSumColumns, kSumSplits                  of the sums of the query gradient (dq_accumulation.cuh)
//   kQueryRates[kQueryRateCount], kKeyRates[kKeyRateCount], kMapsPerRate   as in sm90_forward.cuh
//   kSmemBarriers, kSmemK, kSmemV, kSmemQ, kSmemOut, kSmemScores, kSmemWeights, kSmemStatistics   byte offsets in dynamic
//                        shared memory, multiples of 1024
// and the macro HEDDLE_WARPGROUP_SHAPES with kBlockM, kValueDim, kHeadDim and kSumColumns columns.
#pragma once

#include "Backward/backward_rows.cuh"
#include "Backward/sm90_backward_consumer.cuh"
#include "Backward/sm90_branch_deltas.cuh"
#include "Backward/sm90_query_reducer.cuh"
#include "Backward/sm90_wide_consumer.cuh"
#include "Ptx/registers.cuh"
#include "Ptx/warp.cuh"

namespace heddle {

static_assert(kBlockN % kConsumerRows == 0 && kConsumers >= 1 && kConsumers <= 2, "one or two consumers of 64 keys");
static_assert(kBlockM == kConsumerRows || kBlockM == kConsumers * kConsumerRows,
              "a step has 64 queries, or 64 for each consumer");
static_assert(kIsWide || (kSplitsColumns ? kSumSplits == kConsumers : kSumSplits == 1),
              "consumers share the columns of the query gradient or its rows");
static_assert(!kIsWide || (kBlockM == kConsumerRows && kBlockN == kConsumerRows && !kHasReducer),
              "consumers that share keys have steps of 64 queries, whose gradient leaves from registers");
static_assert(!kIsWide || !kHasTeams, "consumers that share keys have no team");
static_assert(!kHasReducer || kConsumers * KernelTraits::kConsumerRegisters + KernelTraits::kProducerRegisters +
                                      kReducerRegisters <=
                                  kBlockRegisters,
              "warpgroups find their registers in those of the block");
static_assert(!kPassesWeights || (kIsWide && !Pattern::kHasScore), "a chain of scores is asked where dS is made");

DEV void runConsumer(const KernelParams &p, const KeyItem &item, int32_t consumer, const CtaTeamShare &share) {
  if constexpr (!kIsWide)
    Consumer(p, item, consumer).run(share);
  else if (consumer == 0)
    ValueConsumer(p, item).run();
  else
    KeyConsumer(p, item).run();
}

// Barriers of the block.
DEV void beginBlock(RingReaders readers) {
  if (!placesAreRight())
    __trap();
  if (threadIdx.x < 32)
    initShared(threadIdx.x, readers);
  __syncthreads();
}

} // namespace heddle

extern "C" __global__ void __launch_bounds__(heddle::kThreads, 1)
    heddle_kernel(const __grid_constant__ heddle::KernelParams p) {
  using namespace heddle;
  using Blocks = OrderOf<kHasOrder>::Blocks;
  Blocks::take(p);
  beginBlock({kConsumerWarps + (kHasReducer ? kWarpsOfConsumer : 0), kConsumerWarps});
  KeyItem item;
  CtaTeamShare share;
  if (!decodeShare(p, Blocks::number(), item, share))
    return;
  const int32_t warpgroup = ptx::valueOfLane(threadIdx.x / kWarpgroupThreads, 0);
  if (warpgroup == kConsumers) {
    ptx::shrinkRegisters<KernelTraits::kProducerRegisters>();
    const int32_t warp = ptx::valueOfLane((threadIdx.x - kConsumerThreads) / 32, 0);
    if (warp == 0)
      Loader(p, item).run(share);
    else if (kHasOrder && warp == 1)
      TurnTaker(p, item).run();
    else if (kHasOrder && warp == 2)
      TurnPasser(p, item).run();
  } else if (kHasReducer && warpgroup > kConsumers) {
    ptx::shrinkRegisters<kReducerRegisters>();
    QueryReducer(p, item).run();
  } else {
    ptx::growRegisters<KernelTraits::kConsumerRegisters>();
    runConsumer(p, item, warpgroup, share);
  }
}

// Runs the consumers of a walk over the key tiles of a query item.
template <class Walk> DEV void walkKeyTiles(const heddle::KernelParams &p) {
  using namespace heddle;
  beginBlock({kReadersOfKeys, kReadersOfKeys});
  QueryItem item;
  CtaTeamShare share{-1, 0};
  if (!(Walk::kHasTeams ? decodeShare(p, blockIdx.x, item, share) : decodeItem(p, blockIdx.x, item)))
    return;
  const int32_t warpgroup = ptx::valueOfLane(threadIdx.x / kWarpgroupThreads, 0);
  if (warpgroup == kConsumers) {
    ptx::shrinkRegisters<KernelTraits::kProducerRegisters>();
    if (threadIdx.x - kConsumerThreads < 32)
      KeyLoader(p, item).run(share);
  } else if (kHasReducer && warpgroup > kConsumers) {
    ptx::shrinkRegisters<kReducerRegisters>(); // of no use here, but the consumers wait for what it leaves
  } else {
    ptx::growRegisters<KernelTraits::kConsumerRegisters>();
    Walk(p, item, warpgroup).run(share);
  }
}

// Where d_q has a walk of its own.
extern "C" __global__ void __launch_bounds__(heddle::kThreads, 1)
    heddle_query_walk(const __grid_constant__ heddle::KernelParams p) {
  if constexpr (heddle::kWalksQueries)
    walkKeyTiles<heddle::QueryConsumer>(p);
}

// Runs before the others where gradients are detached. Its sums are the deltas.
extern "C" __global__ void __launch_bounds__(heddle::kThreads, 1)
    heddle_branch_deltas(const __grid_constant__ heddle::KernelParams p) {
  if constexpr (Pattern::kIsDetached)
    walkKeyTiles<heddle::BranchDeltas>(p);
}
