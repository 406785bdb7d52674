// The portable decode skeleton: softmax(Q K^T) V for sequences of any lengths whose keys lie in pages, on any GPU of
// compute capability 8.0 or later. A persistent grid: the key tiles of all rows of all sequences are dealt out to its
// blocks in equal pieces, from the lengths that the launch finds in memory and the ranges that the generated Pattern
// names, so the host plans nothing. Units of 16 or 64 rows, of the queries and the heads that share keys (packed_rows.cuh):
// of 16 the warps of a block share each key tile, of 64 its rows. Needs, before it in the source: prelude.cuh, struct KernelTraits, struct
// Pattern (docs/architecture.md sections 2 and 3).
//
// KernelTraits, all `static constexpr int`:
//   kWarps               warps of a block, 4, each with kChunkN keys of a tile
//   kChunkN, kBlockN     keys of a warp, a multiple of 16 up to 32, and of a tile: kWarps * kChunkN
//   kStages              slices of key tiles in each warp's ring, 2..4
//   kMinBlocks           blocks of an SM: what the registers must allow, and of the grid
//   kPieceTiles          fewest key tiles of a block: below, fewer blocks have work
//   kCheckPages          1: a table that names a page which is none ends the launch with an error
//   kPacksHeads          1: the heads that share keys keep the same pairs, and are packed into the same rows
//   kRescaleThreshold    0: rescale after every tile; n: only when a score exceeds row_max by n in log2
//   kBlockM, kRowWarps, kQueryInRegisters      16, 1 and 1: where rows of a warp lie, this file says
//   kHeadDim, kValueDim  multiples of 32
//   Element              of q, k and v, two in a register; kElementBytes, kMmaStep, kLargestExponent are its numbers
//   OutElement           of q, and of out unless kOutFloat32; another one than Element where k and v are e4m3
//   kKeyBytes            only where k and v are e4m3: 1, and Element is Fp16; then kSmemRowBytesK is of k
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

static_assert(KernelTraits::kBlockM == decode::kRows && KernelTraits::kRowWarps == 1, "a warp has 16 rows");
static_assert(KernelTraits::kWarps == decode::kGroups, "each warp has a group of a tall unit");
static_assert(kElementBytes == 2, "elements are two in a register");
static_assert(kStateBytes * KernelTraits::kWarps <= KernelTraits::kSmemControl - KernelTraits::kSmemK,
              "states fit where keys and values were");
static_assert(areApart({{KernelTraits::kSmemQ, decode::kGroups * decode::kRows * KernelTraits::kSmemRowBytesQK},
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

// One slice of a tile for the 16 rows of this warp.
DEV void addSlice(RowState<K> &rows, const PageRing &ring, const KeyValueProducts::Query &query, const LaneScope &lane,
                  const KeyTile &tile, int32_t slice, float dotScale) {
  const float scaleLog2 = Pattern::kHasScore ? kLog2OfE : dotScale; // from scores to log2 units
  Scores<K> scores;
  RowValues<K> largest, factor;
  Probabilities<K> probabilities;
  KeyValueProducts::queryKey(scores, query, ring.keysOfSlice(slice) + laneOffsetColumnsFirst(K::kKeyRowBytes));
  if constexpr (Pattern::kHasScore)
    applyScores(scores, lane, tile, slice, dotScale);
  if (tile.isMasked)
    maskScores(scores, lane, tile, slice);
  laneMax(largest, scores);
  if (raiseRowMax(rows, largest, scaleLog2, factor))
    scaleOutput(rows, factor);
  addWeights(rows, probabilities, scores, scaleLog2);
  KeyValueProducts::probabilityValue(rows.out, probabilities,
                                     ring.valuesOfSlice(slice) + laneOffsetRowsFirst(KernelTraits::kSmemRowBytesV));
}

// The keys of a part: of each tile this warp's slice, or all of them where it has rows of its own.
DEV void walkTiles(RowState<K> &rows, PageRing &ring, const KeyValueProducts::Query &query, const LaneScope &lane,
                   float dotScale) {
  const int32_t warp = ptx::rereadThreadIndex() / 32;
#pragma unroll 1
  for (;;) {
    const KeyTile tile = ring.advance<false>();
    if (!tile.exists())
      return;
    addSlice(rows, ring, query, lane, tile, warp, dotScale);
  }
}

DEV void walkTallTiles(RowState<K> &rows, PageRing &ring, const KeyValueProducts::Query &query, const LaneScope &lane,
                       float dotScale, bool hasRows) {
#pragma unroll 1
  for (;;) {
    const KeyTile tile = ring.advance<true>();
    if (!tile.exists())
      return;
    if (hasRows)
#pragma unroll 1
      for (int32_t slice = 0; slice < KernelTraits::kWarps; ++slice)
        addSlice(rows, ring, query, lane, tile, slice, dotScale);
  }
}

// The block's part of a unit: states of its warps, where keys and values were. meanwhile() runs while the first keys are
// on their way. All threads call.
template <class Meanwhile>
DEV SharedStates computePart(const KernelParams &p, const Unit &unit, const UnitPart &part, uint32_t shared,
                             const Meanwhile &meanwhile) {
  const PatternContext context = unit.sequence.context(p, unit.firstHead);
  const int32_t warp = threadIdx.x / 32, group = unit.isTall ? warp : 0;
  const bool hasRows = group < unit.groups();
  KeyValueProducts::Query query(shared + KernelTraits::kSmemQ + group * decode::kRows * KernelTraits::kSmemRowBytesQK,
                                p.ofKeys(unit.scalePair(p)));
  PageRing ring(p, context, unit, shared);
  ring.prime(part.first, part.count(), [&] { loadQueries(p, unit, shared + KernelTraits::kSmemQ); });
  meanwhile();
  RowState<K> rows;
  clearRows(rows);
  if (Pattern::kHasSink && part.first == 0 && (unit.isTall || warp == 0))
    startFromSinks(rows, p, unit, group);
  ptx::waitCopies<kStages - 1>();
  __syncthreads();
  query.keepInRegisters();
  const LaneScope lane(p, context, unit, group);
  if (unit.isTall)
    walkTallTiles(rows, ring, query, lane, p.scaleLog2, hasRows);
  else
    walkTiles(rows, ring, query, lane, p.scaleLog2);
  ptx::waitCopies<0>();
  __syncthreads();
  const SharedStates states = {shared + KernelTraits::kSmemK};
  if (hasRows)
    storeRows(states, warp, rows, unit.hasUpperHalf(group));
  __syncthreads();
  return states;
}

// What the warps left of a half of a group: one of them, or all.
DEV void joinWarps(ColumnShare &share, const Unit &unit, const SharedStates &states, int32_t group, int32_t half) {
  const SharedStates own = {states.base + group * kStateBytes};
  joinStates(share, own, unit.isTall ? 1 : KernelTraits::kWarps, half);
}

// Calls f(group, half) for the rows of a unit, 8 at a time.
template <class F> DEV void forEachHalf(const Unit &unit, const F &f) {
#pragma unroll 1
  for (int32_t group = 0; group < unit.groups(); ++group)
#pragma unroll 1
    for (int32_t half = 0; half <= static_cast<int32_t>(unit.hasUpperHalf(group)); ++half)
      f(group, half);
}

// This warp's arrival where those of `count` blocks arrive. True for the last one, which sees what the others stored and
// leaves the counter at zero. All lanes call.
DEV bool arrivesLast(uint32_t *arrivals, int32_t count) {
  __syncwarp();
  int32_t isLast = 0;
  if (threadIdx.x % 32 == 0) { // what it orders is ordered for the warp
    isLast = static_cast<int32_t>(ptx::addGlobalInOrder(arrivals, 1)) + 1 == count;
    if (isLast)
      ptx::storeCoherent4(arrivals, 0);
  }
  isLast = __shfl_sync(kWholeWarp, isLast, 0);
  __syncwarp();
  return isLast != 0;
}

// Blocks that share a unit: how many, from which one on, and which of them this one is.
struct UnitBlocks {
  int32_t first, count, own;

  DEV static UnitBlocks of(const UnitPart &part, int64_t quota) {
    const int32_t first = blockOf(part.unitFirst, quota);
    return {first, blockOf(part.unitFirst + part.tiles - 1, quota) - first + 1,
            static_cast<int32_t>(blockIdx.x) - first};
  }
  // Teams of the first step are neighbours that one of them joins.
  DEV int32_t team() const { return own / decode::kFanIn * decode::kFanIn; }
  DEV int32_t teams() const { return ceilDiv(count, decode::kFanIn); }
  DEV int32_t members() const { return min(decode::kFanIn, count - team()); }
};

// Joins the warp's columns of the states of `count` blocks and writes them, or leaves what came of them where those of the
// first were.
DEV void joinBlocks(const KernelParams &p, const Unit &unit, BlockStates from, int32_t count, bool isAll) {
  forEachHalf(unit, [&](int32_t group, int32_t half) {
    from.group = group;
    ColumnShare share;
    joinStates(share, from, count, half);
    if (isAll)
      writeHalf(p, unit, share, group, half);
    else
      share.store(from, half);
  });
}

// The warp has left its columns of a part of a unit in the workspace. Whichever is last of those of eight neighbours joins
// theirs, and whichever is last of these what came of it; no warp waits for another.
DEV void joinUnit(const KernelParams &p, const Unit &unit, const UnitBlocks &blocks) {
  const int32_t teams = blocks.teams();
  int32_t first = blocks.team(), step = 1, count = blocks.members();
  uint32_t *arrivals = p.arrivals + threadIdx.x / 32;
#pragma unroll 1
  for (;;) {
    if (!arrivesLast(arrivals + BlockStates::slotOf(blocks.first, first) * decode::kArrivalWords, count))
      return;
    const bool isAll = step > 1 || teams == 1;
    joinBlocks(p, unit, BlockStates{p.states, blocks.first, first, step, 0}, count, isAll);
    if (isAll)
      return;
    arrivals += decode::kSlotsOfBlock * ptx::rereadGridSize() * decode::kArrivalWords;
    first = 0, step = decode::kFanIn, count = teams;
  }
}

DEV void computeUnit(const KernelParams &p, const Line &line, int32_t number, const UnitPart &part, int64_t quota,
                     uint32_t shared) {
  const Unit unit(p, line, number);
  UnitBlocks blocks;
  if (!unit.hasRows())
    return __syncthreads();
  const SharedStates states = computePart(p, unit, part, shared, [&] { blocks = UnitBlocks::of(part, quota); });
  forEachHalf(unit, [&](int32_t group, int32_t half) {
    ColumnShare share;
    joinWarps(share, unit, states, group, half);
    if (part.isWhole())
      writeHalf(p, unit, share, group, half);
    else
      share.store(BlockStates{p.states, blocks.first, blocks.own, 1, group}, half);
  });
  if (!part.isWhole())
    joinUnit(p, unit, blocks);
  __syncthreads();
}

// Where a block stands in its piece.
struct Cursor {
  Piece piece;
  Line line;
  int32_t left;
  int64_t lineFirst, at; // number of the line's first tile; tile of the line

  DEV UnitPart part(int32_t unit) const {
    const int64_t first = static_cast<int64_t>(unit) * line.keyTiles;
    UnitPart part = {lineFirst + first, static_cast<int32_t>(at - first), 0, line.keyTiles};
    part.end = min(part.tiles, part.first + left);
    return part;
  }
};

DEV void computePiece(const KernelParams &p, const Piece &piece, const Line &line, uint32_t shared) {
  const uint32_t parked = shared + KernelTraits::kSmemControl;
  Cursor cursor;
  cursor.piece = piece;
  cursor.left = piece.count;
  cursor.lineFirst = piece.lineFirst;
  cursor.at = piece.first - piece.lineFirst;
  cursor.line = line;
#pragma unroll 1
  while (cursor.left > 0) {
    while (cursor.at >= cursor.line.work()) {
      cursor.lineFirst += cursor.line.work();
      cursor.at -= cursor.line.work();
      cursor.line = readLine(p, ++cursor.piece.line);
    }
    const int32_t unit = static_cast<int32_t>(quotient(cursor.at, cursor.line.keyTiles));
    const UnitPart part = cursor.part(unit);
    cursor.left -= part.end - part.first;
    cursor.at += part.end - part.first;
    __syncthreads();
    park(parked, cursor);
    computeUnit(p, cursor.line, unit, part, cursor.piece.quota, shared);
    unpark(parked, cursor);
  }
}

template <class, class> struct PortableDecode : K {
  using Params = KernelParams;

  DEV static void run(const Params &p) {
    const uint32_t shared = ptx::sharedAddress(ptx::launchedMemory());
    const BlockWords words(shared + KernelTraits::kSmemControl);
    Line line;
    const Piece piece = findPiece(p, words, line);
    if (!piece.isEmpty())
      computePiece(p, piece, line, shared);
  }
};

} // namespace heddle
