// The portable forward skeleton: softmax(Q K^T) V over the key tiles that the generated Pattern names, on any
// GPU of compute capability 8.0 or later. One CTA computes one query tile of one head; every warp owns
// kBlockM / kWarps rows; K and V come through a ring of asynchronous copies. Needs prelude.cuh before it in the
// source; a source gives it the Traits and the Pattern that are generated, and exports run() as heddle_kernel
// (docs/architecture.md sections 2 and 3).
//
// Traits, all `static constexpr int`:
//   kBlockM, kBlockN     tile of queries and of keys
//   kWarps               4 or 8 (1, 2 also work); rows per warp = kBlockM / kWarps, a multiple of 16
//   kStages              slots of the K ring and of the V ring, 1..4
//   kChunkN              keys whose scores are in registers at once; divides kBlockN, multiple of 16
//   kOverlapScores       1: scores of the next tile are computed beside the exponentials of this one
//   kQueryInRegisters    1: Q fragments stay in registers; 0: read again from shared memory for every chunk
//   kRescaleThreshold    0: rescale after every chunk; n: only when a score exceeds row_max by n in log2
//   kCompactMask         1: the predicate of masked tiles in a loop (long predicates), 0: unrolled; no difference
//                        where the pattern gives its kept columns as bits
//   kTilesAreWhole       1: all pairs of a visited tile are kept; key 0 stands where a tile may begin. 2: those of them
//                        that lie in the pattern's band of positions
//   kDocumentTiles       1: documents have query tiles of their own (document_items.cuh)
//   kMinBlocks           CTAs per SM that the register allocation must allow
//   kRasterHeads         (batch, head) pairs whose tiles are interleaved; 1: all tiles of one head in a row
//   kRasterReversed      1: last query tile first
//   kHeadDim, kValueDim  multiples of kMmaStep
//   Element              of q, k and v; kElementBytes, kMmaStep, kLargestExponent are its numbers
//   kKeyBytes            only where k and v are e4m3 beside another q: 1, and Element is Fp16, OutElement that of q; then
//                        kSmemRowBytesK is of k, head dims are multiples of 32, and kQueryInRegisters is 1
//   kOutFloat32          1: out is fp32, 0: out has the type of q
//   kSmemQ, kSmemK, kSmemV                 byte offsets in dynamic shared memory, multiples of 128
//   kSmemRowBytesQK, kSmemRowBytesV        bytes of one row, rounded up to 128
//   kSmemStageBytesK, kSmemStageBytesV     bytes of one slot = kBlockN * bytes of one row
//   kSmemBytes                             total = kBlockM * rowQK + kStages * (slotK + slotV)
// Layout: Q [kBlockM] rows, K ring [kStages][kBlockN] rows, V ring [kStages][kBlockN] rows; the base of
// dynamic shared memory is aligned to 128 bytes.
//
// Constraints: kStages 1 wants kChunkN = kBlockN and no overlap; overlap wants kChunkN = kBlockN and two
// stages; kRescaleThreshold <= 15 (weights of half stay finite). Registers of one thread are about
// rows/16 * (kValueDim/2 + kChunkN/2 * (1 + kOverlapScores) + kChunkN/4 + kQueryInRegisters * kHeadDim/4) + 56
// and must not pass min(255, 65536 / (32 * kWarps * kMinBlocks)).
// Launch: grid.x = batch * heads * itemsPerHead, block = 32 * kWarps, kSmemBytes dynamic shared memory.
// Bases and strides of q, k, v, out are multiples of 16 bytes; scaleLog2 > 0 and finite; lse is not null.
#pragma once

#include "Forward/forward_params.cuh"
#include "Forward/forward_rows.cuh"
#include "Forward/key_products.cuh"
#include "Forward/key_value_ring.cuh"
#include "Forward/score_chain.cuh"
#include "Forward/score_mask.cuh"
#include "Forward/warp_weights.cuh"
#include "Shared/shared_records.cuh"

namespace heddle {

// Number of the scales of a work item.
template <class K> DEV int32_t scalePair(const ParamsOf<K> &p, const WorkItem<K> &item) {
  return item.batch * p.kvHeads + item.kvHead;
}

// Everything that a warp carries from one key tile to the next.
template <class K> struct Consumer {
  using Params = ParamsOf<K>;
  using Products = KeyProducts<K>;

  typename Products::Query query;
  MaskScope<K> mask;
  float dotScale;  // from q . k to log2 units
  float scaleLog2; // from scores to log2 units
  uint32_t keyLane, valueLane;
  RowState<K> rows;

  DEV Consumer(const Params &p, const WorkItem<K> &item, const Context<K> &context, uint32_t queryTile)
      : query(queryTile, p.ofKeys(scalePair(p, item))),
        mask{context, item.variant, p.qOrigin + item.firstRow, item.queryRate}, dotScale(p.scaleLog2),
        scaleLog2(weightScale<K>(p.scaleLog2)), keyLane(laneOffsetColumnsFirst(K::kKeyRowBytes)),
        valueLane(K::kElementBytes == 2 ? laneOffsetRowsFirst(K::kSmemRowBytesV)
                                        : laneOffsetOfSums(K::kSmemRowBytesV)) {}

  DEV void score(Scores<K> &scores, uint32_t keys, const KeyTile &tile, int chunk) const {
    Products::queryKey(scores, query, keys + keyLane + chunk * K::kChunkN * K::kKeyRowBytes);
    if constexpr (K::Pattern::kHasScore)
      applyScores(scores, mask, tile, chunk, dotScale);
  }

  // Moves row maxima until they admit the scores; `largest` holds the lane maxima without masks.
  DEV void admit(Scores<K> &scores, RowValues<K> &largest, const KeyTile &tile, int chunk) {
    if (tile.isMasked) {
      maskScores(scores, mask, tile, chunk);
      laneMax(largest, scores);
    }
    RowValues<K> factor;
    if (raiseRowMax(rows, largest, scaleLog2, factor))
      scaleOutput(rows, factor);
  }

  DEV void exponentiate(Probabilities<K> &probabilities, const Scores<K> &scores) {
    addWeights(rows, probabilities, scores, scaleLog2);
  }

  DEV void accumulate(const Probabilities<K> &probabilities, uint32_t values, int chunk) {
    Products::probabilityValue(rows.out, probabilities, values + valueLane + chunk * K::kChunkN * K::kSmemRowBytesV);
  }
};

// A branch that no tile takes. Without the end of a basic block here ptxas moves the additions to the row sums
// behind the next mma and keeps every weight in a register until then.
DEV void endBasicBlock(const KeyTile &tile) {
  if (tile.firstKey == KeyTile::kBeyondAllKeys)
    __trap();
}

// Scores, softmax and output of one tile after the other; loads run kStages - 1 tiles ahead.
template <class K> DEV void walkInOrder(KeyValueRing<K> &ring, Consumer<K> &consumer) {
#pragma unroll 1
  for (;;) { // one call of advance(): every copy of the range function costs compile time
    KeyTile tile = ring.advance();
    if (!tile.exists())
      break;
#pragma unroll
    for (int chunk = 0; chunk < K::kChunks; ++chunk) {
      Scores<K> scores;
      RowValues<K> largest;
      Probabilities<K> probabilities;
      consumer.score(scores, ring.keys(), tile, chunk);
      laneMax(largest, scores);
      consumer.admit(scores, largest, tile, chunk);
      consumer.exponentiate(probabilities, scores);
      endBasicBlock(tile);
      consumer.accumulate(probabilities, ring.values(), chunk);
    }
  }
}

// One slot each: V of a tile arrives behind its scores, K of the next tile behind its output.
template <class K> DEV void walkSingleStage(KeyValueRing<K> &ring, Consumer<K> &consumer, KeyTile tile) {
#pragma unroll 1
  while (tile.exists()) {
    Scores<K> scores;
    RowValues<K> largest;
    Probabilities<K> probabilities;
    ptx::waitCopies<0>();
    __syncthreads();
    ring.startValues(tile);
    consumer.score(scores, ring.keys(), tile, 0);
    ptx::waitCopies<0>();
    __syncthreads();
    KeyTile next = ring.startKeys();
    laneMax(largest, scores);
    consumer.admit(scores, largest, tile, 0);
    consumer.exponentiate(probabilities, scores);
    endBasicBlock(tile);
    consumer.accumulate(probabilities, ring.values(), 0);
    tile = next;
  }
}

// Scores of the next tile are independent of the exponentials of this one: both in one basic block.
template <class K> DEV void walkOverlapped(KeyValueRing<K> &ring, Consumer<K> &consumer) {
  KeyTile tile = ring.advance();
  if (!tile.exists())
    return;
  Scores<K> scores;
  RowValues<K> largest;
  Probabilities<K> probabilities;
  consumer.score(scores, ring.keys(), tile, 0);
  laneMax(largest, scores);
#pragma unroll 1
  for (;;) {
    consumer.admit(scores, largest, tile, 0);
    tile = ring.advance();
    if (!tile.exists())
      break;
    Scores<K> nextScores;
    consumer.score(nextScores, ring.keys(), tile, 0);
    consumer.exponentiate(probabilities, scores);
    endBasicBlock(tile);
    consumer.accumulate(probabilities, ring.values(), 0);
    laneMax(largest, nextScores);
    copyScores(scores, nextScores);
  }
  consumer.exponentiate(probabilities, scores);
  consumer.accumulate(probabilities, ring.values(), 0);
}

template <class K> DEV void computeWorkItem(const ParamsOf<K> &p, const WorkItem<K> &item, uint32_t shared) {
  const Context<K> context = makeContext(p, item.batch, item.head);
  KeyValueRing<K> ring(p, item, context, shared);
  Consumer<K> consumer(p, item, context, shared + K::kSmemQ);
  loadQuery(p, item, shared + K::kSmemQ);
  ptx::commitCopies();
  KeyTile first = KeyTile::none();
  if constexpr (K::kStages == 1)
    first = ring.startKeys();
  else
    ring.prime();
  clearRows(consumer.rows);
  if (K::Pattern::kHasSink)
    startFromSink(consumer.rows, K::Pattern::sink(context));
  if (p.carryLse)
    continueFromCarry(consumer.rows, p, LaneRows<K>(p, item), p.ofValues(scalePair(p, item)));
  if constexpr (K::kQueryInRegisters) {
    ptx::waitCopies<K::kStages == 1 ? 1 : K::kStages - 1>();
    __syncthreads();
    consumer.query.keepInRegisters();
  }
  if constexpr (K::kStages == 1)
    walkSingleStage(ring, consumer, first);
  else if constexpr (K::kOverlapScores)
    walkOverlapped(ring, consumer);
  else
    walkInOrder(ring, consumer);
  storeRows(p, LaneRows<K>(p, item), consumer.rows, p.ofValues(scalePair(p, item)));
}

// A kernel, and what its parts are templates on: the traits, what follows from them, and the pattern.
template <class Traits, class P>
struct PortableForward : SoftmaxNumbers<KeyProductShape<WarpProductShape<WarpBlock<ElementNumbers<Traits>>>>> {
  using K = PortableForward;
  using Pattern = P;
  using Params = PortableForwardParams<K>;

  DEV static void run(const Params &p) {
    WorkItem<K> item;
    if (decodeWorkItem(p, blockIdx.x, item))
      computeWorkItem(p, item, ptx::sharedAddress(ptx::launchedMemory()));
  }

private:
  static_assert(K::kBlockM % (16 * K::kWarps) == 0, "every warp owns a multiple of 16 rows");
  static_assert(K::kBlockN % K::kChunkN == 0 && K::kChunkN % 16 == 0, "chunks of 16 keys tile block_n");
  static_assert(K::kHeadDim % K::kMmaStep == 0 && K::kValueDim % K::kMmaStep == 0,
                "head dims are multiples of the step of an mma");
  static_assert(K::kHeadDim <= K::kPieceElements * K::kThreads && K::kValueDim <= K::kPieceElements * K::kThreads,
                "one pass of the CTA loads at least one row");
  static_assert(K::kStages >= 1 && K::kStages <= 4, "one to four stages");
  static_assert(K::kStages > 1 || (K::kChunks == 1 && !K::kOverlapScores), "one stage: K and V take turns");
  static_assert(!K::kOverlapScores || K::kChunks == 1, "overlap works on whole tiles");
  static_assert(K::kRescaleThreshold >= 0 && K::kRescaleThreshold <= 15,
                "weights up to 2^threshold must be finite in half");
  static_assert(K::kSmemRowBytesQK == roundUp(K::kHeadDim * K::kElementBytes, kSwizzleBytes) &&
                    K::kKeyRowBytes == roundUp(K::kHeadDim * K::kKeyBytes, kSwizzleBytes) &&
                    K::kSmemRowBytesV == roundUp(K::kValueDim * K::kKeyBytes, kSwizzleBytes),
                "rows of shared memory are multiples of the swizzle");
  static_assert(K::kSmemStageBytesK == K::kBlockN * K::kKeyRowBytes &&
                    K::kSmemStageBytesV == K::kBlockN * K::kSmemRowBytesV,
                "a slot holds one key tile");
  static_assert(K::kSmemQ % kSwizzleBytes == 0 && K::kSmemK % kSwizzleBytes == 0 && K::kSmemV % kSwizzleBytes == 0,
                "tiles start at multiples of the swizzle");
  static_assert(areApart({{K::kSmemQ, K::kBlockM * K::kSmemRowBytesQK},
                          {K::kSmemK, K::kStages * K::kSmemStageBytesK},
                          {K::kSmemV, K::kStages * K::kSmemStageBytesV}},
                         K::kSmemBytes),
                "tiles and rings lie apart in the shared memory that is planned");
};

} // namespace heddle
