// The portable forward skeleton: softmax(Q K^T) V over the key tiles that the generated Pattern names, on any
// GPU of compute capability 8.0 or later. One CTA computes one query tile of one head; every warp owns
// kBlockM / kWarps rows; K and V come through a ring of asynchronous copies. Needs, before it in the source:
// prelude.cuh, struct KernelTraits, struct Pattern (docs/architecture.md sections 2 and 3).
//
// KernelTraits, all `static constexpr int`:
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

#include "Forward/forward_rows.cuh"
#include "Forward/key_products.cuh"
#include "Forward/key_value_ring.cuh"
#include "Forward/score_chain.cuh"
#include "Forward/score_mask.cuh"
#include "Forward/warp_weights.cuh"
#include "Shared/shared_records.cuh"

namespace heddle {

static_assert(KernelTraits::kBlockM % (16 * KernelTraits::kWarps) == 0, "every warp owns a multiple of 16 rows");
static_assert(KernelTraits::kBlockN % kChunkN == 0 && kChunkN % 16 == 0, "chunks of 16 keys tile block_n");
static_assert(KernelTraits::kHeadDim % kMmaStep == 0 && KernelTraits::kValueDim % kMmaStep == 0,
              "head dims are multiples of the step of an mma");
static_assert(KernelTraits::kHeadDim <= kPieceElements * kThreads &&
                  KernelTraits::kValueDim <= kPieceElements * kThreads,
              "one pass of the CTA loads at least one row");
static_assert(kStages >= 1 && kStages <= 4, "one to four stages");
static_assert(kStages > 1 || (kChunks == 1 && !KernelTraits::kOverlapScores), "one stage: K and V take turns");
static_assert(!KernelTraits::kOverlapScores || kChunks == 1, "overlap works on whole tiles");
static_assert(KernelTraits::kRescaleThreshold >= 0 && KernelTraits::kRescaleThreshold <= 15,
              "weights up to 2^threshold must be finite in half");
static_assert(KernelTraits::kSmemRowBytesQK == roundUp(KernelTraits::kHeadDim * kElementBytes, kSwizzleBytes) &&
                  kKeyRowBytes == roundUp(KernelTraits::kHeadDim * kKeyBytes, kSwizzleBytes) &&
                  KernelTraits::kSmemRowBytesV == roundUp(KernelTraits::kValueDim * kKeyBytes, kSwizzleBytes),
              "rows of shared memory are multiples of the swizzle");
static_assert(KernelTraits::kSmemStageBytesK == KernelTraits::kBlockN * kKeyRowBytes &&
                  KernelTraits::kSmemStageBytesV == KernelTraits::kBlockN * KernelTraits::kSmemRowBytesV,
              "a slot holds one key tile");
static_assert(KernelTraits::kSmemQ % kSwizzleBytes == 0 && KernelTraits::kSmemK % kSwizzleBytes == 0 &&
                  KernelTraits::kSmemV % kSwizzleBytes == 0,
              "tiles start at multiples of the swizzle");
static_assert(areApart({{KernelTraits::kSmemQ, KernelTraits::kBlockM * KernelTraits::kSmemRowBytesQK},
                        {KernelTraits::kSmemK, kStages * KernelTraits::kSmemStageBytesK},
                        {KernelTraits::kSmemV, kStages * KernelTraits::kSmemStageBytesV}},
                       KernelTraits::kSmemBytes),
              "tiles and rings lie apart in the shared memory that is planned");

// Number of the scales of a work item.
DEV int32_t scalePair(const KernelParams &p, const WorkItem &item) { return item.batch * p.kvHeads + item.kvHead; }

// Everything that a warp carries from one key tile to the next.
struct Consumer {
  using Products = KeyValueProducts;

  Products::Query query;
  MaskScope mask;
  float dotScale;  // from q . k to log2 units
  float scaleLog2; // from scores to log2 units
  uint32_t keyLane, valueLane;
  RowState rows;

  DEV Consumer(const KernelParams &p, const WorkItem &item, const PatternContext &context, uint32_t queryTile)
      : query(queryTile, p.ofKeys(scalePair(p, item))),
        mask{context, item.variant, p.qOrigin + item.firstRow, item.queryRate}, dotScale(p.scaleLog2),
        scaleLog2(weightScale(p.scaleLog2)), keyLane(laneOffsetColumnsFirst(kKeyRowBytes)),
        valueLane(kElementBytes == 2 ? laneOffsetRowsFirst(KernelTraits::kSmemRowBytesV)
                                     : laneOffsetOfSums(KernelTraits::kSmemRowBytesV)) {}

  DEV void score(Scores &scores, uint32_t keys, const KeyTile &tile, int chunk) const {
    Products::queryKey(scores, query, keys + keyLane + chunk * kChunkN * kKeyRowBytes);
    if constexpr (Pattern::kHasScore)
      applyScores(scores, mask, tile, chunk, dotScale);
  }

  // Moves row maxima until they admit the scores; `largest` holds the lane maxima without masks.
  DEV void admit(Scores &scores, RowValues &largest, const KeyTile &tile, int chunk) {
    if (tile.isMasked) {
      maskScores(scores, mask, tile, chunk);
      laneMax(largest, scores);
    }
    RowValues factor;
    if (raiseRowMax(rows, largest, scaleLog2, factor))
      scaleOutput(rows, factor);
  }

  DEV void exponentiate(Probabilities &probabilities, const Scores &scores) {
    addWeights(rows, probabilities, scores, scaleLog2);
  }

  DEV void accumulate(const Probabilities &probabilities, uint32_t values, int chunk) {
    Products::probabilityValue(rows.out, probabilities,
                               values + valueLane + chunk * kChunkN * KernelTraits::kSmemRowBytesV);
  }
};

// A branch that no tile takes. Without the end of a basic block here ptxas moves the additions to the row sums
// behind the next mma and keeps every weight in a register until then.
DEV void endBasicBlock(const KeyTile &tile) {
  if (tile.firstKey == KeyTile::kBeyondAllKeys)
    __trap();
}

// Scores, softmax and output of one tile after the other; loads run kStages - 1 tiles ahead.
DEV void walkInOrder(KeyValueRing &ring, Consumer &consumer) {
#pragma unroll 1
  for (;;) { // one call of advance(): every copy of the range function costs compile time
    KeyTile tile = ring.advance();
    if (!tile.exists())
      break;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      Scores scores;
      RowValues largest;
      Probabilities probabilities;
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
DEV void walkSingleStage(KeyValueRing &ring, Consumer &consumer, KeyTile tile) {
#pragma unroll 1
  while (tile.exists()) {
    Scores scores;
    RowValues largest;
    Probabilities probabilities;
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
DEV void walkOverlapped(KeyValueRing &ring, Consumer &consumer) {
  KeyTile tile = ring.advance();
  if (!tile.exists())
    return;
  Scores scores;
  RowValues largest;
  Probabilities probabilities;
  consumer.score(scores, ring.keys(), tile, 0);
  laneMax(largest, scores);
#pragma unroll 1
  for (;;) {
    consumer.admit(scores, largest, tile, 0);
    tile = ring.advance();
    if (!tile.exists())
      break;
    Scores nextScores;
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

DEV void computeWorkItem(const KernelParams &p, const WorkItem &item, uint32_t shared) {
  const PatternContext context = makeContext(p, item.batch, item.head);
  KeyValueRing ring(p, item, context, shared);
  Consumer consumer(p, item, context, shared + KernelTraits::kSmemQ);
  loadQuery(p, item, shared + KernelTraits::kSmemQ);
  ptx::commitCopies();
  KeyTile first = KeyTile::none();
  if constexpr (kStages == 1)
    first = ring.startKeys();
  else
    ring.prime();
  clearRows(consumer.rows);
  if (Pattern::kHasSink)
    startFromSink(consumer.rows, Pattern::sink(context));
  if (p.carryLse)
    continueFromCarry(consumer.rows, p, LaneRows(p, item), p.ofValues(scalePair(p, item)));
  if constexpr (KernelTraits::kQueryInRegisters) {
    ptx::waitCopies<kStages == 1 ? 1 : kStages - 1>();
    __syncthreads();
    consumer.query.keepInRegisters();
  }
  if constexpr (kStages == 1)
    walkSingleStage(ring, consumer, first);
  else if constexpr (KernelTraits::kOverlapScores)
    walkOverlapped(ring, consumer);
  else
    walkInOrder(ring, consumer);
  storeRows(p, LaneRows(p, item), consumer.rows, p.ofValues(scalePair(p, item)));
}

} // namespace heddle

extern "C" __global__ void __launch_bounds__(heddle::kThreads, KernelTraits::kMinBlocks)
    heddle_kernel(const __grid_constant__ heddle::KernelParams p) {
  extern __shared__ __align__(128) unsigned char sharedMemory[];
  heddle::WorkItem item;
  if (heddle::decodeWorkItem(p, blockIdx.x, item))
    heddle::computeWorkItem(p, item, heddle::ptx::sharedAddress(sharedMemory));
}
