// The portable backward skeleton: d_q, d_k and d_v over the query tiles that the generated TransposedPattern names for
// every key tile, on any GPU of compute capability 8.0 or later. One block has the keys of one kv head and walks the
// query heads of its group, so that d_k and d_v stay in registers; every warp owns kBlockN / kWarps keys, and Q and
// d_out come through a ring of asynchronous copies. Launched between heddle_backward_preprocess and heddle_convert_dq
// (backward_rows.cuh), or, where d_q has a walk of its own, before heddle_query_walk; where branches are detached,
// behind heddle_branch_deltas too (branch_sums.cuh). Needs, before it in the source: prelude.cuh, struct KernelTraits,
// struct Pattern, struct TransposedPattern (docs/architecture.md sections 2 and 3).
//
// KernelTraits, all `static constexpr int`:
//   kBlockM              queries of a step
//   kBlockN              keys of a block
//   kWarps               of a block; keys of a warp = kBlockN * kColumnSlices / kWarps, a multiple of 16
//   kStages              slots of the rings of Q and of d_out, 2 to 4
//   kQueryWalk           1: d_q has a walk of its own, nothing is added to its sums
//   kMinBlocks           blocks per SM that the register allocation must allow
//   kWalkInMemory        1: where the walk stands is kept in memory, not in registers
//   kRasterReversed      1: last key tile first
//   kVectorAdds          1: the GPU adds four floats at a time
//   kHeadDim, kValueDim  multiples of 8, up to 256
//   kColumnSlices        warps that share keys, each with columns of its own of d_k and d_v: 2 above head dims of 128
//   Element              of all tensors; kElementBytes, kMmaStep are its numbers
//   kQueryRates[kQueryRateCount]             distinct rates of queries (row_statistics.cuh)
//   kTilesAreWhole, kSquare, kSquaresHaveBand   as in sm90_backward.cuh
//   kSumColumns, kSumSplits                  of the sums of the query gradient (dq_accumulation.cuh)
//   kSmemK, kSmemV, kSmemQ, kSmemOut, kSmemScores, kSmemStatistics   byte offsets in dynamic shared memory, multiples of
//                        128; with kSmemStageBytes of each, of one slot
//   kSmemRowBytesQK, kSmemRowBytesV, kSmemRowBytesScores             of one row
// Launch: blocks of 32 * kWarps, kSmemBytes dynamic shared memory, all entries alike. Bases and strides are multiples
// of 16 bytes.
#pragma once

#include "Backward/backward_rows.cuh"
#include "Backward/portable_backward_consumer.cuh"
#include "Backward/portable_query_walk.cuh"
#include "Shared/shared_records.cuh"

namespace heddle {

static_assert(kWarps % kSlices == 0 && kBlockN * kSlices % (kMmaRows * kWarps) == 0,
              "every warp owns a multiple of 16 keys");
static_assert(kBlockM % 16 == 0 && kWarps % kStepRowTiles == 0,
              "warps share rows and columns of the query gradient evenly");
static_assert(kBlockM <= kThreads, "a thread reads lse and delta of one row");
static_assert(kElementBytes == 4 ? kBlockN * kElementBytes <= kScoreRowBytes && kScoreRowBytes % kSwizzleBytes == 0
                                 : kBlockM * kElementBytes <= kScoreRowBytes && kScoreRowBytes == kSwizzleBytes,
              "a row of dS has all columns: queries, of one swizzle, or of floats keys");
static_assert(kElementBytes == 2 || kSlices == 1, "a warp of floats has all columns");
static_assert(kStages >= 2, "one tile is loaded while another is used");
static_assert(KernelTraits::kSmemStageBytesQ == kBlockM * KernelTraits::kSmemRowBytesQK &&
                  KernelTraits::kSmemStageBytesOut == kBlockM * KernelTraits::kSmemRowBytesV &&
                  KernelTraits::kSmemStageBytesStatistics >= 2 * kBlockM * static_cast<int>(sizeof(float)),
              "a slot holds one tile of a step, or lse and delta of its rows");
static_assert(areApart({{KernelTraits::kSmemK, kBlockN * KernelTraits::kSmemRowBytesQK},
                        {KernelTraits::kSmemV, kBlockN * KernelTraits::kSmemRowBytesV},
                        {KernelTraits::kSmemQ, kStages * KernelTraits::kSmemStageBytesQ},
                        {KernelTraits::kSmemOut, kStages * KernelTraits::kSmemStageBytesOut},
                        {KernelTraits::kSmemScores,
                         kWalksQueries ? 0 : (kElementBytes == 4 ? kBlockM : kBlockN) * kScoreRowBytes},
                        {KernelTraits::kSmemStatistics, kStages * KernelTraits::kSmemStageBytesStatistics}},
                       KernelTraits::kSmemBytes),
              "tiles and rings lie apart in the shared memory that is planned");
static_assert(kSumSplits == 1 && kSumColumns >= KernelTraits::kHeadDim, "sums of a head lie in one array");

} // namespace heddle

// Every tile that an item visits.
template <class Walk> DEV void walkTiles(const heddle::KernelParams &p) {
  using namespace heddle;
  extern __shared__ __align__(128) unsigned char sharedMemory[];
  typename Walk::Item item;
  if (!decodeItem(p, blockIdx.x, item))
    return;
  const uint32_t shared = ptx::sharedAddress(sharedMemory);
  loadItem(p, item, shared);
  PatternContext context = makeContext(p, item.batch, item.head);
  TileRing<typename Walk::Item> ring(p, item, context, shared);
  ring.prime();
  Walk walk(p, item, shared);
#pragma unroll 1
  for (;;) {
    const QueryTile tile = ring.advance();
    if (tile.isEnd())
      break;
    walk.step(ring, tile);
    ring.endStep();
  }
  walk.finish();
}

extern "C" __global__ void __launch_bounds__(heddle::kThreads, KernelTraits::kMinBlocks)
    heddle_kernel(const __grid_constant__ heddle::KernelParams p) {
  walkTiles<heddle::KeyWalk>(p);
}

// Where d_q has a walk of its own.
extern "C" __global__ void __launch_bounds__(heddle::kThreads, KernelTraits::kMinBlocks)
    heddle_query_walk(const __grid_constant__ heddle::KernelParams p) {
  if constexpr (heddle::kWalksQueries)
    walkTiles<heddle::QueryWalk>(p);
}

// Runs before the others where gradients are detached.
extern "C" __global__ void __launch_bounds__(heddle::kThreads, KernelTraits::kMinBlocks)
    heddle_branch_deltas(const __grid_constant__ heddle::KernelParams p) {
  if constexpr (Pattern::kIsDetached)
    walkTiles<heddle::DeltaWalk>(p);
}
