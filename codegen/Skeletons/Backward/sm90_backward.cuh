// The backward skeleton of Hopper: d_q, d_k and d_v over the query tiles that the transposed pattern names for
// every key tile. One block has the keys of one kv head and walks the query heads of its group, so that d_k and d_v
// stay in registers: kBlockN / 64 consumer warpgroups of 64 keys each (beyond head dims of 128 two, which share 64 keys
// by what they sum, of floats beyond 64), one producing warpgroup, whose first warp walks and copies and where sums are added in order two
// more see to the turns, and where kReduce is 1 or 3 one that makes the query gradient. Launched between
// heddle_backward_preprocess and heddle_convert_dq (backward_rows.cuh), for gradient(detached) behind
// heddle_branch_deltas as well, for floats behind heddle_raise_rows. Needs prelude.cuh before it in the source; a source gives it the Traits and the Pattern
// that are generated, and exports what has a run() (docs/architecture.md sections 2 and 3).
//
// Traits, all `static constexpr int`:
//   kBlockM              queries of a step, 64 or 64 for each consumer
//   kBlockN              keys of a block, 64 for each consumer; 64 beyond head dims of 128
//   kStages              slots of the rings of Q and of d_out, 2 to 4
//   kReduce              how the query gradient comes about: added to its sums by the consumers, or by a warpgroup of its
//                        own, in order or not, or by a walk of its own (sm90_layout.cuh)
//   kOrderRate           of keys and queries, where sums are added in order; else 0
//   kLongSplit           blocks that share an item of many tiles (sm90_cta_teams.cuh); 1: none do
//   kRasterReversed      1: last key tile first
//   kProducerRegisters, kConsumerRegisters   registers of a thread after launch
//   kWalkProducerRegisters, kWalkConsumerRegisters   likewise, in walks over key tiles
//   kHeadDim, kValueDim  multiples of 8, up to 256
//   Element              of all tensors, or of floats of the workspace, FloatPair or RaisedFloat (elements.cuh);
//                        kElementBytes, kMmaStep are the numbers of what products are of
//   kPairLanes, kPairRows   of floats: of the launch before (raise_rows.cuh)
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
#include "Backward/raise_rows.cuh"
#include "Backward/sm90_backward_params.cuh"
#include "Backward/sm90_branch_deltas.cuh"
#include "Backward/sm90_query_reducer.cuh"
#include "Backward/sm90_raised_consumer.cuh"
#include "Ptx/registers.cuh"
#include "Ptx/warp.cuh"

namespace heddle {

// What the warps of one role of a kernel K do with the item of the block.
template <class K> class BackwardRoles {
  using Params = ParamsOf<K>;
  using Share = CtaTeamShare<K>;
  static constexpr int kReducerWarps = K::kHasReducer ? kWarpsOfConsumer : 0;

public:
  // For every key tile, the query tiles that it visits.
  DEV static void walkQueryTiles(const Params &p) {
    using Blocks = typename OrderOf<K>::Blocks;
    Blocks::take(p);
    beginBlock({K::kConsumerWarps + kReducerWarps, K::kConsumerWarps});
    KeyItem<K> item;
    Share share;
    if (!decodeShare(p, Blocks::number(), item, share))
      return;
    const int32_t warpgroup = warpgroupOfThread();
    if (warpgroup == K::kConsumers) {
      ptx::shrinkRegisters<K::kProducerRegisters>();
      const int32_t warp = ptx::valueOfLane((threadIdx.x - K::kConsumerThreads) / 32, 0);
      if (warp == 0)
        Loader<K>(p, item).run(share);
      else if (K::kHasOrder && warp == 1)
        TurnTaker<K>(p, item).run();
      else if (K::kHasOrder && warp == 2)
        TurnPasser<K>(p, item).run();
    } else if (K::kHasReducer && warpgroup > K::kConsumers) {
      ptx::shrinkRegisters<kReducerRegisters>();
      QueryReducer<K>(p, item).run();
    } else {
      ptx::growRegisters<K::kConsumerRegisters>();
      consume(p, item, warpgroup, share);
    }
  }

  // The key tiles of a query item, by consumers that are a Walk.
  template <class Walk> DEV static void walkKeyTiles(const Params &p) {
    beginBlock({kReadersOfKeys<K>, kReadersOfKeys<K>});
    QueryItem<K> item;
    Share share{-1, 0};
    if (!(Walk::kHasTeams ? decodeShare(p, blockIdx.x, item, share) : decodeItem(p, blockIdx.x, item)))
      return;
    if constexpr (K::Pattern::kVariantCount > 1)
      ptx::keepHere(item.variant); // not what follows from it, over both roles
    const int32_t warpgroup = warpgroupOfThread();
    if (warpgroup == K::kConsumers) {
      ptx::shrinkRegisters<K::kWalkProducerRegisters>();
      if (threadIdx.x - K::kConsumerThreads < 32)
        KeyLoader<K>(p, item).run(share);
    } else if (K::kHasReducer && warpgroup > K::kConsumers) {
      ptx::shrinkRegisters<kReducerRegisters>(); // of no use here, but the consumers wait for what it leaves
    } else {
      ptx::growRegisters<K::kWalkConsumerRegisters>();
      Walk(p, item, warpgroup).run(share);
    }
  }

private:
  DEV static int32_t warpgroupOfThread() { return ptx::valueOfLane(threadIdx.x / kWarpgroupThreads, 0); }

  // Barriers of the block.
  DEV static void beginBlock(RingReaders readers) {
    if (!placesAreRight())
      __trap();
    if (threadIdx.x < 32)
      initShared<K>(threadIdx.x, readers);
    __syncthreads();
  }

  DEV static void consume(const Params &p, const KeyItem<K> &item, int32_t consumer, const Share &share) {
    using Consumers = ConsumersOf<K>;
    if constexpr (!K::kIsWide)
      typename Consumers::Joint(p, item, consumer).run(share);
    else if (consumer == 0)
      typename Consumers::OfValues(p, item).run();
    else
      typename Consumers::OfKeys(p, item).run();
  }
};

// A walk over key tiles as a kernel of its own, if that is wanted.
template <class K, class Walk, bool IsWanted> struct KeyTileKernel {
  using Params = ParamsOf<K>;
  static constexpr int kThreads = K::kThreads, kMinBlocks = K::kMinBlocks;

  DEV static void run(const Params &p) {
    if constexpr (IsWanted)
      BackwardRoles<K>::template walkKeyTiles<Walk>(p);
  }
};

// A kernel, and what its parts are templates on: the traits, what follows from them, and the pattern.
template <class Traits, class P>
struct Sm90Backward
    : BackwardMaps<BackwardProducts<BackwardTilePlaces<BackwardRecordPlaces<BackwardBlock<ElementNumbers<Traits>>>>>> {
  using K = Sm90Backward;
  using Pattern = P;
  using Params = Sm90BackwardParams<K>;

  DEV static void run(const Params &p) { BackwardRoles<K>::walkQueryTiles(p); }

  // Around it; where d_q has a walk of its own; and before it, where gradients are detached, with the deltas as sums.
  using RaiseRows = heddle::RaiseRows<K>; // of floats
  using BackwardPreprocess = heddle::BackwardPreprocess<K>;
  using ConvertDq = heddle::ConvertDq<K>;
  using QueryWalk = KeyTileKernel<K, QueryConsumer<K>, Sm90Backward::kWalksQueries>;
  using BranchDeltas = KeyTileKernel<K, heddle::BranchDeltas<K>, Pattern::kIsDetached>;

private:
  static_assert(K::kBlockN % kConsumerRows == 0 && K::kConsumers >= 1 && K::kConsumers <= 2,
                "one or two consumers of 64 keys");
  static_assert(K::kBlockM == kConsumerRows || K::kBlockM == K::kConsumers * kConsumerRows,
                "a step has 64 queries, or 64 for each consumer");
  static_assert(K::kIsWide || (K::kSplitsColumns ? K::kSumSplits == K::kConsumers : K::kSumSplits == 1),
                "consumers share the columns of the query gradient or its rows");
  static_assert(!K::kIsWide || (K::kBlockM == kConsumerRows && K::kBlockN == kConsumerRows && !K::kHasReducer),
                "consumers that share keys have steps of 64 queries, whose gradient leaves from registers");
  static_assert(!K::kIsWide || !K::kHasTeams, "consumers that share keys have no team");
  static_assert(!K::kHasReducer || K::kConsumers * K::kConsumerRegisters + K::kProducerRegisters + kReducerRegisters <=
                                       kBlockRegisters,
                "warpgroups find their registers in those of the block");
  static_assert(!kIsRaised<K> || (K::kWalksQueries && K::kBlockM == kConsumerRows),
                "of floats d_q has a walk of its own, and steps have 64 queries");
  static_assert(!K::kPassesWeights || (K::kIsWide && !Pattern::kHasScore),
                "a chain of scores is asked where dS is made");
};

} // namespace heddle
