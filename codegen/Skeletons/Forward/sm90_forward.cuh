// The forward skeleton of Hopper: softmax(Q K^T) V over the key tiles that the generated Pattern names. One block
// is kBlockM / 64 consumer warpgroups of 64 rows each and one producing warpgroup: a planning warp walks items and
// tiles, a loading thread copies them through tensor maps into rings, with what consumers must know; of bytes, two warps
// turn values over. Needs, before it
// in the source: prelude.cuh, struct KernelTraits, struct Pattern (docs/architecture.md sections 2 and 3).
//
// KernelTraits, all `static constexpr int`:
//   kBlockM              rows of a query tile: 64 for each consumer, 64 to 256
//   kBlockN              keys of a tile, a multiple of 16, 16 to 128
//   kStages              slots of the K ring and of the V ring, 1 to 6; of bytes, V has one less
//   kQueryStages         slots of the Q ring, 1 or 2: with two, the next item arrives beside this one
//   kTurnTaking          1: consumers issue their mma in turn
//   kGrid                how items are dealt out to blocks (sm90_items.cuh)
//   kSoftmax             0: every maximum is looked for; 1: anchored (sm90_softmax.cuh)
//   kRescaleThreshold    growth of a maximum, in log2 units, that needs no rescaling; 0: rescale at every tile
//   kCompactMask         1: the predicate of masked tiles in a loop, 0: unrolled
//   kFlushTiles          key tiles after which the output of bytes goes to its totals (sm90_totals.cuh); 0: never
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
//   kMapsPerRate         tensor maps of one rate (sm90_params.cuh)
//   kSmemCells           where the planning warp notes listed cells, in patterns that search lists (cell_bits.cuh)
//   kSmemBarriers, kSmemQ, kSmemK, kSmemV    byte offsets in dynamic shared memory, multiples of 1024
//   kSmemStageBytesQ, kSmemStageBytesK, kSmemStageBytesV
//   kSmemRaw, kSmemTotals   values that are to be turned over, totals of the output; no bytes where there are none
// and the macro HEDDLE_WARPGROUP_SHAPES with kBlockN and kOutputTiles * 8 columns (Ptx/warpgroup_mma.cuh).
#pragma once

#include "Forward/sm90_consumer.cuh"
#include "Forward/sm90_loader.cuh"
#include "Forward/sm90_planner.cuh"
#include "Forward/sm90_transposer.cuh"
#include "Ptx/registers.cuh"

namespace heddle {

static_assert(KernelTraits::kBlockM % kConsumerRows == 0 && kConsumers >= 1 && kConsumers <= kMaxConsumers,
              "one to four consumers of 64 rows");
static_assert(KernelTraits::kBlockN % kKeyStep == 0 && KernelTraits::kBlockN <= kMaxKeys,
              "key tiles are multiples of 16 up to 128");
static_assert(!Values::kAreTurned ||
                  (KernelTraits::kBlockN % kTurnedKeys == 0 && KernelTraits::kValueDim % kTurnedDims == 0),
              "tiles of bytes are turned over in whole squares");
static_assert(!kHasTotals || Values::kSumTiles > 0, "others need no totals");
static_assert(!Values::kAreTurned || !kMayRedo, "the words of marks hold barriers");
static_assert(kStages >= 1 && kStages <= kMaxStages, "one to six stages");
static_assert(kQueryStages >= 1 && kQueryStages <= kMaxQueryStages, "one or two query stages");
static_assert(!KernelTraits::kTurnTaking || kConsumers > 1, "turns are taken by at least two");
static_assert(KernelTraits::kHeadDim % kHeadDimStep == 0 && KernelTraits::kHeadDim <= kMaxHeadDim,
              "head dims are multiples of 8 up to 256");
static_assert(KernelTraits::kValueDim % kHeadDimStep == 0 && KernelTraits::kValueDim <= kMaxHeadDim,
              "value dims are multiples of 8 up to 256");
static_assert(!kSplitsLast || kGrid == kGridStride, "a last round is known where blocks take items at a stride");
static_assert(!kSplitsLong || kGrid != kGridTile, "blocks that share splits stay until nothing is left");
static_assert(!kSplitsLong || !kSplitsLast, "items are cut for one reason");

} // namespace heddle

extern "C" __global__ void __launch_bounds__(heddle::kThreads, KernelTraits::kMinBlocks)
    heddle_kernel(const __grid_constant__ heddle::KernelParams p) {
  using namespace heddle;
  if (!placesAreRight())
    __trap();
  if (threadIdx.x < 32)
    initShared(threadIdx.x);
  __syncthreads();
  const int32_t warpgroup = uniform(threadIdx.x / kWarpgroupThreads);
  if (warpgroup == kConsumers) {
    ptx::shrinkRegisters<KernelTraits::kProducerRegisters>();
    if (threadIdx.x < kConsumerThreads + 32)
      Planner(p).run();
    else if (threadIdx.x == kConsumerThreads + 32)
      Loader(p).run();
    else if (Values::kAreTurned && threadIdx.x >= kConsumerThreads + 64)
      Transposer(uniform(threadIdx.x / 32) - (kConsumerThreads / 32 + 2)).run();
  } else {
    ptx::growRegisters<KernelTraits::kConsumerRegisters>();
    Consumer(p, warpgroup).run();
  }
}
