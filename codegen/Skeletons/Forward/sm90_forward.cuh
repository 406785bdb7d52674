// The forward skeleton of Hopper: softmax(Q K^T) V over the key tiles that the generated Pattern names. One block
// is kBlockM / 64 consumer warpgroups of 64 rows each and one producing warpgroup: a planning warp walks items and
// tiles, a loading thread copies them through tensor maps into rings, with what consumers must know; of bytes that do not
// lie key-major, two warps turn values over. Needs
// prelude.cuh before it in the source; a source gives it the Traits and the Pattern that are generated, and exports
// run() as heddle_kernel (docs/architecture.md sections 2 and 3).
//
// Traits, all `static constexpr int`:
//   kBlockM              rows of a query tile: 64 for each consumer, 64 to 256
//   kBlockN              keys of a tile, a multiple of 16, 16 to 128
//   kStages              slots of the K ring and of the V ring, 1 to 6; of bytes that are turned over, V has one less, if
//                        there are two
//   kKeyMajorValues      1: v is [batch, dim, head, key] in memory or, with kTurnValues, in the workspace, and all keys have
//                        rate 1
//   kTurnValues          1: values are turned over once, for all blocks (turned_values.cuh)
//   kQueryStages         slots of the Q ring, 1 or 2: with two, the next item arrives beside this one
//   kTurnTaking          1: consumers issue their mma in turn
//   kGrid                how items are dealt out to blocks (sm90_items.cuh)
//   kSoftmax             0: every maximum is looked for; 1: anchored (sm90_softmax.cuh); 2: as 0, and a row moves its maximum
//                        by its own scores alone, so that its bits do not depend on its neighbours
//   kRescaleThreshold    growth of a maximum, in log2 units, that needs no rescaling; 0: rescale at every tile
//   kCompactMask         1: the predicate of masked tiles in a loop, 0: unrolled
//   kFlushTiles          key tiles after which the output of bytes goes to its totals (sm90_totals.cuh); 0: never
//   kTotalsInWorkspace   1: these lie in the workspace, not in shared memory
//   kTilesAreWhole       1: a consumer keeps all pairs of a tile that it visits, or none; key 0 stands where a tile may
//                        begin. 2: likewise, of what lies in the pattern's band of positions
//   kSplitLast, kSplitTiles   which items are cut in splits (sm90_split_kv.cuh); 0: none
//   kDocumentTiles       1: documents have query tiles of their own (document_items.cuh)
//   kProducerRegisters, kConsumerRegisters   registers of a thread after launch
//   kRasterReversed      1: last query tile first
//   kHeadDim, kValueDim  multiples of 8, up to 256
//   Element              of q, k and v; kElementBytes, kMmaStep, kLargestExponent are its numbers
//   OutElement           of out; kOutFloat32 1: out is fp32
//   kQueryRates[kQueryRateCount], kKeyRates[kKeyRateCount]   distinct rates, ascending
//   kScaleRows           so many rows of q and k of a head have a factor of their own; 0: all of a head
//   kMapsPerRate         tensor maps of one rate (sm90_params.cuh)
//   kSmemCells           where the planning warp notes listed cells and key tiles, in patterns of lists (cell_layout.cuh)
//   kSmemBarriers, kSmemQ, kSmemK, kSmemV    byte offsets in dynamic shared memory, multiples of 1024
//   kSmemStageBytesQ, kSmemStageBytesK, kSmemStageBytesV
//   kSmemRaw, kSmemTurning, kSmemTotals, kSmemOnes, kSmemFactors   values that are to be turned over, on their way to
//                        consumers and to the workspace, totals of the output, rows of ones of floats, factors of keys of
//                        pairs; no bytes where there are none
//   kPairLanes, kPairRows   of pairs: of the launch before (pair_rows.cuh)
// and the macro HEDDLE_WARPGROUP_SHAPES with kBlockN and kOutputTiles * 8 columns (Ptx/warpgroup_mma.cuh).
#pragma once

#include "Forward/pair_rows.cuh"
#include "Forward/sm90_consumer.cuh"
#include "Forward/sm90_loader.cuh"
#include "Forward/sm90_planner.cuh"
#include "Forward/sm90_transposer.cuh"
#include "Forward/turned_values.cuh"
#include "Ptx/registers.cuh"

namespace heddle {

// A kernel, and what its parts are templates on: the traits, what follows from them, and the pattern.
template <class Traits, class P>
struct Sm90Forward
    : ForwardMaps<Splits<AnchoredSoftmax<
          ForwardTilePlaces<ForwardRecordPlaces<ForwardBlock<WarpgroupProducts<ElementNumbers<Traits>>>>>>>> {
  using K = Sm90Forward;
  using Pattern = P;
  using Params = Sm90ForwardParams<K>;
  using PairRows = heddle::PairRows<K>;

  // The only query tile is free when its last scores are there: the next one arrives under the end of its item, whose header
  // has a slot of its own until rows are stored. Of pairs beside chains of scores that spills (relative_bias: 20 B); others
  // get slower or stay as they are.
  static constexpr bool kMayFree = K::kElementBytes == 1 || (K::kArePairs && K::kOverlapsTiles && !Pattern::kHasScore);
  static constexpr bool kFreesQueries = K::kQueryStages == 1 && kMayFree;
  static constexpr int kHeaderStages = kFreesQueries ? 2 : K::kQueryStages;

  DEV static void run(const Params &p) {
    if (!placesAreRight())
      __trap();
    if (threadIdx.x < 32)
      initShared<K>(threadIdx.x);
    else if (K::kAreKeyMajor && threadIdx.x < 64)
      writeOnes();
    __syncthreads();
    const int32_t warpgroup = uniform(threadIdx.x / kWarpgroupThreads);
    if (warpgroup == K::kConsumers) {
      ptx::shrinkRegisters<K::kProducerRegisters>();
      if (threadIdx.x < K::kConsumerThreads + 32)
        Planner<K>(p).run();
      else if (threadIdx.x == K::kConsumerThreads + 32)
        Loader<K>(p).run();
      else if (threadIdx.x >= K::kConsumerThreads + 64)
        turnOver(p);
    } else {
      ptx::growRegisters<K::kConsumerRegisters>();
      Consumer<K>(p, warpgroup).run();
    }
  }

private:
  DEV static void writeOnes() {
    if constexpr (K::kAreKeyMajor) {
      TurnedTile<K, K::kElementBytes>::writeOnes();
      ptx::fenceShared();
    }
  }
  DEV static void turnOver(const Params &p) {
    if constexpr (K::kTurnsValues)
      TurningWarp<K>(p, idleWarp()).run();
    else if constexpr (K::Values::kAreTurned)
      Transposer<K>(idleWarp()).run();
  }
  // Of those that neither plan nor load.
  DEV static int32_t idleWarp() { return uniform(threadIdx.x / 32) - (K::kConsumerThreads / 32 + 2); }

  static_assert(K::kBlockM % kConsumerRows == 0 && K::kConsumers >= 1 && K::kConsumers <= kMaxConsumers,
                "one to four consumers of 64 rows");
  static_assert(K::kBlockN % kKeyStep == 0 && K::kBlockN <= kMaxKeys, "key tiles are multiples of 16 up to 128");
  static_assert(K::Values::kAreTurned == areTurnedOver(K::kElementBytes, K::kAreKeyMajor),
                "the layout has room for what is turned over");
  static_assert(!K::kAreKeyMajor || (K::kElementBytes == 1 && K::kKeyRateCount == 1 && K::kKeyRates[0] == 1),
                "key-major values are bytes, of keys without a stride");
  static_assert(!kFreesQueries || K::kElementBytes == 1 || K::kSoftmax != kSoftmaxAnchored,
                "marks of items leave room for the barrier of the query tile");
  static_assert(K::kFlushTiles == 0 || K::Values::kSumTiles > 0, "others need no totals");
  static_assert(K::kStages >= 1 && K::kStages <= kMaxStages, "one to six stages");
  static_assert(K::kQueryStages >= 1 && K::kQueryStages <= kMaxQueryStages, "one or two query stages");
  static_assert(!K::kTurnTaking || K::kConsumers > 1, "turns are taken by at least two");
  static_assert(K::kHeadDim % kHeadDimStep == 0 && K::kHeadDim <= kMaxHeadDim,
                "head dims are multiples of 8 up to 256");
  static_assert(K::kValueDim % kHeadDimStep == 0 && K::kValueDim <= kMaxHeadDim,
                "value dims are multiples of 8 up to 256");
  static_assert(K::kScaleRows == 0 || K::kIsScaled, "elements without factors have no blocks");
  static_assert(!K::kSplitsLast || K::kGrid == kGridStride,
                "a last round is known where blocks take items at a stride");
  static_assert(!K::kSplitsLong || K::kGrid != kGridTile, "blocks that share splits stay until nothing is left");
  static_assert(!K::kSplitsLong || !K::kSplitsLast, "items are cut for one reason");
};

} // namespace heddle
