// The portable backward skeleton: d_q, d_k and d_v over the query tiles that the transposed pattern names for
// every key tile, on any GPU of compute capability 8.0 or later. One block has the keys of one kv head and walks the
// query heads of its group, so that d_k and d_v stay in registers; every warp owns kBlockN / kWarps keys, and Q and
// d_out come through a ring of asynchronous copies. Launched between heddle_backward_preprocess and heddle_convert_dq
// (backward_rows.cuh), or, where d_q has a walk of its own, before heddle_query_walk; where branches are detached,
// behind heddle_branch_deltas too (branch_sums.cuh). Needs prelude.cuh before it in the source; a source gives it the
// Traits and the Pattern that are generated, and exports what has a run() (docs/architecture.md sections 2 and 3).
//
// Traits, all `static constexpr int`:
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
#include "Backward/portable_backward_params.cuh"
#include "Backward/portable_backward_shapes.cuh"
#include "Backward/portable_query_walk.cuh"
#include "Shared/shared_records.cuh"

namespace heddle {

// Every tile that an item visits, if that is wanted.
template <class K, class Walk, bool IsWanted = true> struct TileWalkKernel {
  using Params = ParamsOf<K>;
  static constexpr int kThreads = K::kThreads, kMinBlocks = K::kMinBlocks;

  DEV static void run(const Params &p) {
    if constexpr (IsWanted)
      walkTiles(p);
  }

private:
  DEV static void walkTiles(const Params &p) {
    using Item = typename Walk::Item;
    Item item;
    if (!decodeItem(p, blockIdx.x, item))
      return;
    const uint32_t shared = ptx::sharedAddress(ptx::launchedMemory());
    loadItem(p, item, shared);
    Context<K> context = makeContext(p, item.batch, item.head);
    TileRing<Item> ring(p, item, context, shared);
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
};

// A kernel, and what its parts are templates on: the traits, what follows from them, and the pattern.
template <class Traits, class P> struct PortableBackward : PortableBackwardShapes<WarpBlock<ElementNumbers<Traits>>> {
  using K = PortableBackward;
  using Pattern = P;
  using Params = PortableBackwardParams<K>;

  DEV static void run(const Params &p) { TileWalkKernel<K, KeyWalk<K>>::run(p); }

  // Around it, where d_q has a walk of its own, and before it where gradients are detached.
  using BackwardPreprocess = heddle::BackwardPreprocess<K>;
  using ConvertDq = heddle::ConvertDq<K>;
  using QueryWalk = TileWalkKernel<K, heddle::QueryWalk<K>, PortableBackward::kWalksQueries>;
  using BranchDeltas = TileWalkKernel<K, DeltaWalk<K>, Pattern::kIsDetached>;

private:
  static_assert(K::kWarps % K::kSlices == 0 && K::kBlockN * K::kSlices % (kMmaRows * K::kWarps) == 0,
                "every warp owns a multiple of 16 keys");
  static_assert(K::kBlockM % 16 == 0 && K::kWarps % K::kStepRowTiles == 0,
                "warps share rows and columns of the query gradient evenly");
  static_assert(K::kBlockM <= K::kThreads, "a thread reads lse and delta of one row");
  static_assert(K::kElementBytes == 4
                    ? K::kBlockN * K::kElementBytes <= K::kScoreRowBytes && K::kScoreRowBytes % kSwizzleBytes == 0
                    : K::kBlockM * K::kElementBytes <= K::kScoreRowBytes && K::kScoreRowBytes == kSwizzleBytes,
                "a row of dS has all columns: queries, of one swizzle, or of floats keys");
  static_assert(K::kElementBytes == 2 || K::kSlices == 1, "a warp of floats has all columns");
  static_assert(K::kStages >= 2, "one tile is loaded while another is used");
  static_assert(K::kSmemStageBytesQ == K::kBlockM * K::kSmemRowBytesQK &&
                    K::kSmemStageBytesOut == K::kBlockM * K::kSmemRowBytesV &&
                    K::kSmemStageBytesStatistics >= 2 * K::kBlockM * static_cast<int>(sizeof(float)),
                "a slot holds one tile of a step, or lse and delta of its rows");
  static_assert(areApart({{K::kSmemK, K::kBlockN * K::kSmemRowBytesQK},
                          {K::kSmemV, K::kBlockN * K::kSmemRowBytesV},
                          {K::kSmemQ, K::kStages * K::kSmemStageBytesQ},
                          {K::kSmemOut, K::kStages * K::kSmemStageBytesOut},
                          {K::kSmemScores, K::kWalksQueries
                                               ? 0
                                               : (K::kElementBytes == 4 ? K::kBlockM : K::kBlockN) * K::kScoreRowBytes},
                          {K::kSmemStatistics, K::kStages * K::kSmemStageBytesStatistics}},
                         K::kSmemBytes),
                "tiles and rings lie apart in the shared memory that is planned");
  static_assert(K::kSumSplits == 1 && K::kSumColumns >= K::kHeadDim, "sums of a head lie in one array");
};

} // namespace heddle
