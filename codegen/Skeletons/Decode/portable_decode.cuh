// The portable decode skeleton: softmax(Q K^T) V for sequences of any lengths whose keys lie in pages, on any GPU of
// compute capability 8.0 or later. A persistent grid: the key tiles of all rows of all sequences are dealt out to its
// blocks in equal pieces, from the lengths that the launch finds in memory and the ranges that the generated Pattern
// names, so the host plans nothing. 16 rows at a time, of the queries and the heads that share keys (packed_rows.cuh);
// the warps of a block share each key tile. Needs, before it in the source: prelude.cuh, struct KernelTraits, struct
// Pattern (docs/architecture.md sections 2 and 3).
//
// KernelTraits, all `static constexpr int`:
//   kWarps               warps of a block, each with kChunkN keys of a tile
//   kChunkN, kBlockN     keys of a warp, a multiple of 16 up to 32, and of a tile: kWarps * kChunkN
//   kStages              slices of key tiles in each warp's ring, 2..4
//   kMinBlocks           blocks of an SM: what the registers must allow, and of the grid
//   kPieceTiles          fewest key tiles of a block: below, fewer blocks have work
//   kPacksHeads          1: the heads that share keys keep the same pairs, and are packed into the same rows
//   kRescaleThreshold    0: rescale after every tile; n: only when a score exceeds row_max by n in log2
//   kBlockM, kRowWarps, kQueryInRegisters      16, 1 and 1: all warps have the same rows
//   kHeadDim, kValueDim  multiples of 32
//   Element              of q, k and v, two in a register; kElementBytes, kMmaStep, kLargestExponent are its numbers
//   kOutFloat32          1: out is fp32, 0: out has the type of q
//   kSmemQ, kSmemK, kSmemV, kSmemControl       byte offsets in dynamic shared memory, multiples of 128; V follows K
//   kSmemRowBytesQK, kSmemRowBytesV            bytes of one row, rounded up to 128
//   kSmemStageBytesK, kSmemStageBytesV         bytes of one stage of all warps = kBlockN * bytes of one row
//   kSmemBytes                                 total
// States of the warps lie where K and V were, once a unit has been walked.
//
// Launch: grid.x = SMs * kMinBlocks, block = 32 * kWarps, kSmemBytes dynamic shared memory. Bases and strides of q, k, v,
// out are multiples of 16 bytes; scaleLog2 > 0 and finite; lse is not null.
#pragma once

#include "Decode/decode_pieces.cuh"
#include "Decode/packed_mask.cuh"
#include "Decode/page_ring.cuh"
#include "Decode/unit_rows.cuh"
#include "Forward/warp_weights.cuh"
#include "Shared/shared_records.cuh"

namespace heddle {

static_assert(KernelTraits::kBlockM == decode::kRows && KernelTraits::kRowWarps == 1, "all warps have the same rows");
static_assert(kElementBytes == 2, "elements are two in a register");
static_assert(kStateBytes * KernelTraits::kWarps <= KernelTraits::kSmemControl - KernelTraits::kSmemK,
              "states fit where keys and values were");
static_assert(areApart({{KernelTraits::kSmemQ, decode::kRows * KernelTraits::kSmemRowBytesQK},
                        {KernelTraits::kSmemK, kStages * KernelTraits::kSmemStageBytesK},
                        {KernelTraits::kSmemV, kStages * KernelTraits::kSmemStageBytesV},
                        {KernelTraits::kSmemControl, decode::kControlBytes}},
                       KernelTraits::kSmemBytes),
              "tiles, rings and words lie apart in the shared memory that is planned");

// Tiles [first, end) of a unit, by their numbers in its walk; `unitFirst`: of its first one among all.
struct UnitPart {
  int64_t unitFirst;
  int32_t first, end, tiles;

  // Counts of tiles deal out work; a unit that has more than was counted gives the rest to its last part.
  DEV int32_t count() const { return end == tiles ? kNoTile : end - first; }
  DEV bool isWhole() const { return first == 0 && end == tiles; }
};

// One warp's keys of a part.
DEV void walkTiles(RowState &rows, PageRing &ring, const QueryOperand &query, const LaneScope &lane, float dotScale) {
  const float scaleLog2 = Pattern::kHasScore ? kLog2OfE : dotScale; // from scores to log2 units
  const uint32_t keyLane = laneOffsetColumnsFirst(KernelTraits::kSmemRowBytesQK);
  const uint32_t valueLane = laneOffsetRowsFirst(KernelTraits::kSmemRowBytesV);
#pragma unroll 1
  for (;;) {
    const KeyTile tile = ring.advance();
    if (!tile.exists())
      return;
    Scores scores;
    RowValues largest, factor;
    Probabilities probabilities;
    WarpProducts<Element>::queryKey(scores, query, ring.keysOfTile() + keyLane);
    if constexpr (Pattern::kHasScore)
      applyScores(scores, lane, tile, dotScale);
    if (tile.isMasked)
      maskScores(scores, lane, tile);
    laneMax(largest, scores);
    if (raiseRowMax(rows, largest, scaleLog2, factor))
      scaleOutput(rows, factor);
    addWeights(rows, probabilities, scores, scaleLog2);
    WarpProducts<Element>::probabilityValue(rows.out, probabilities, ring.valuesOfTile() + valueLane);
  }
}

// The block's part of a unit, joined over its warps. All threads call.
DEV void computePart(ColumnShare &share, const KernelParams &p, const Unit &unit, const UnitPart &part,
                     uint32_t shared) {
  const PatternContext context = unit.sequence.context(p, unit.firstHead);
  QueryOperand query(shared + KernelTraits::kSmemQ);
  loadQueries(p, unit, shared + KernelTraits::kSmemQ);
  ptx::commitCopies();
  PageRing ring(p, context, unit, shared);
  ring.prime(part.first, part.count());
  RowState rows;
  clearRows(rows);
  if (Pattern::kHasSink && part.first == 0 && threadIdx.x < 32)
    startFromSinks(rows, p, unit);
  ptx::waitCopies<kStages - 1>();
  __syncthreads();
  query.keepInRegisters();
  walkTiles(rows, ring, query, LaneScope(context, unit), p.scaleLog2);
  ptx::waitCopies<0>();
  __syncthreads();
  const SharedStates states = {shared + KernelTraits::kSmemK};
  storeRows(states, threadIdx.x / 32, rows, unit.hasUpperHalf());
  __syncthreads();
  joinStates(share, states, KernelTraits::kWarps, unit.hasUpperHalf());
}

// This block's arrival where `count` blocks arrive. True for the last one, which sees what the others stored and leaves
// the counter at zero. All threads call.
DEV bool arrivesLast(uint32_t *arrivals, int32_t count, const BlockWords &words) {
  ptx::fenceGlobal();
  __syncthreads();
  if (threadIdx.x == 0) {
    const bool isLast = static_cast<int32_t>(ptx::addGlobal(arrivals, 1)) + 1 == count;
    words.store(0, isLast);
    if (isLast)
      ptx::storeCoherent4(arrivals, 0);
  }
  __syncthreads();
  const bool isLast = words.load(0) != 0;
  ptx::fenceGlobal();
  return isLast;
}

// Leaves the block's part of a unit in the workspace; whoever is last joins what the blocks of eight neighbouring pieces
// left, and whoever is last of these what came of it. True: `share` has all parts.
DEV bool joinParts(ColumnShare &share, const KernelParams &p, const UnitPart &part, const Piece &piece,
                   bool hasUpperHalf, const BlockWords &words) {
  const int32_t block = piece.blockOf(part.unitFirst);
  const int32_t blocks = piece.blockOf(part.unitFirst + part.tiles - 1) - block + 1, own = blockIdx.x - block;
  const int32_t group = own / decode::kFanIn * decode::kFanIn, groups = ceilDiv(blocks, decode::kFanIn);
  const int32_t members = min(decode::kFanIn, blocks - group);
  uint32_t *const second = p.arrivals + decode::kSlotsOfBlock * ptx::rereadGridSize();
  share.store(BlockStates{p.states, block, own, 1}, hasUpperHalf);
  if (!arrivesLast(p.arrivals + BlockStates::slotOf(block, group), members, words))
    return false;
  joinStates(share, BlockStates{p.states, block, group, 1}, members, hasUpperHalf);
  if (groups == 1)
    return true;
  __syncthreads();
  share.store(BlockStates{p.states, block, group, 1}, hasUpperHalf);
  if (!arrivesLast(second + BlockStates::slotOf(block, 0), groups, words))
    return false;
  joinStates(share, BlockStates{p.states, block, 0, decode::kFanIn}, groups, hasUpperHalf);
  return true;
}

DEV void computeUnit(const KernelParams &p, const Line &line, int32_t number, const UnitPart &part, const Piece &piece,
                     uint32_t shared, const BlockWords &words) {
  const Unit unit(p, line, number);
  if (!unit.hasRows())
    return;
  ColumnShare share;
  computePart(share, p, unit, part, shared);
  if (part.isWhole() || joinParts(share, p, part, piece, unit.hasUpperHalf(), words))
    writeRows(p, unit, share);
  __syncthreads();
}

DEV void computePiece(const KernelParams &p, const Piece &piece, uint32_t shared, const BlockWords &words) {
  int64_t lineFirst = piece.lineFirst;
  int32_t left = piece.count, number = piece.line;
  int64_t at = piece.first - lineFirst; // in the line
#pragma unroll 1
  while (left > 0) {
    const Line line = readLine(p, number);
#pragma unroll 1
    while (left > 0 && at < line.work()) {
      const int32_t unit = static_cast<int32_t>(at / line.keyTiles);
      const int64_t unitFirst = static_cast<int64_t>(unit) * line.keyTiles;
      UnitPart part;
      part.unitFirst = lineFirst + unitFirst;
      part.tiles = line.keyTiles;
      part.first = static_cast<int32_t>(at - unitFirst);
      part.end = min(part.tiles, part.first + left);
      computeUnit(p, line, unit, part, piece, shared, words);
      left -= part.end - part.first;
      at += part.end - part.first;
    }
    lineFirst += line.work();
    at = 0;
    ++number;
  }
}

} // namespace heddle

extern "C" __global__ void __launch_bounds__(heddle::kThreads, KernelTraits::kMinBlocks)
    heddle_kernel(const __grid_constant__ heddle::KernelParams p) {
  extern __shared__ __align__(128) unsigned char sharedMemory[];
  const uint32_t shared = heddle::ptx::sharedAddress(sharedMemory);
  const heddle::BlockWords words(shared + KernelTraits::kSmemControl);
  const heddle::Piece piece = heddle::findPiece(p, words);
  if (!piece.isEmpty())
    heddle::computePiece(p, piece, shared, words);
}
