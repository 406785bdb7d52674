// The portable decode skeleton: softmax(Q K^T) V for sequences of any lengths whose keys lie in pages, on any GPU of
// compute capability 8.0 or later. A persistent grid: the key tiles of all rows of all sequences are dealt out to its
// blocks in equal pieces, from the lengths that the launch finds in memory and the ranges that the generated Pattern
// names, so the host plans nothing. Units of 16 rows, or of 16 for each warp, of the queries and the heads that share keys
// (packed_rows.cuh): of 16 the warps of a block share each key tile, of more its rows. Needs prelude.cuh before it in the
// source; a source gives it the Traits and the Pattern that are generated, and exports run() as heddle_kernel
// (docs/architecture.md sections 2 and 3).
//
// Traits, all `static constexpr int`:
//   kWarps               warps of a block, 4 or 8, each with kChunkN keys of a tile
//   kChunkN, kBlockN     keys of a warp, a multiple of 16 up to 32, and of a tile: kWarps * kChunkN
//   kStages              slices of key tiles in each warp's ring, 2..4
//   kMinBlocks           blocks of an SM: what the registers must allow, and of the grid
//   kPieceTiles          fewest key tiles of a block: below, fewer blocks have work
//   kEvictTiles          keys leave the L2 before other lines where a block has at most so many key tiles of them
//   kCheckPages          1: a table that names a page which is none ends the launch with an error
//   kPacksHeads          1: the heads that share keys keep the same pairs, and are packed into the same rows
//   kRescaleThreshold    0: rescale after every tile; n: only when a score exceeds row_max by n in log2
//   kBlockM, kRowWarps, kQueryInRegisters      16, 1 and 1: where rows of a warp lie, this file says
//   kWholeQueries, kWholeKeys    of a pattern of parts, its arguments that say where the whole ends; else -1
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

#include "Decode/arrivals.cuh"
#include "Decode/cluster_decode.cuh"
#include "Decode/decode_params.cuh"
#include "Decode/decode_pieces.cuh"
#include "Decode/unit_rows.cuh"
#include "Decode/unit_tiles.cuh"
#include "Shared/shared_records.cuh"

namespace heddle {

// Tiles [first, end) of a unit, by their numbers in its walk; `unitFirst`: of its first one among all.
struct UnitPart {
  int64_t unitFirst;
  int32_t first, end, tiles;

  // Counts of tiles deal out work; a unit that has more than was counted gives the rest to its last part.
  DEV int32_t count() const { return end == tiles ? kNoTile : end - first; }
  DEV bool isWhole() const { return first == 0 && end == tiles; }
};

// The block's part of a unit: states of its warps, where keys and values were. meanwhile() runs while the first keys are
// on their way. All threads call.
template <class K, class Meanwhile>
DEV SharedStates<K> computePart(const ParamsOf<K> &p, const Unit<K> &unit, const UnitPart &part, int64_t quota,
                                uint32_t shared, const Meanwhile &meanwhile) {
  const Context<K> context = unit.sequence.context(p, unit.firstHead);
  const int32_t warp = threadIdx.x / 32, group = unit.isTall ? warp : 0;
  const bool hasRows = group < unit.groups();
  typename KeyProducts<K>::Query query(shared + K::kSmemQ + group * decode::kRows * K::kSmemRowBytesQK,
                                       p.ofKeys(unit.scalePair(p)));
  PageRing<K> ring(p, context, unit, quota <= K::kEvictTiles, shared);
  ring.prime(part.first, part.count(), [&] { loadQueries(p, unit, shared + K::kSmemQ); });
  meanwhile();
  RowState<K> rows;
  clearRows(rows);
  if (K::Pattern::kHasSink && part.first == 0 && (unit.isTall || warp == 0))
    startFromSinks(rows, p, unit, group);
  ptx::waitCopies<K::kStages - 1>();
  __syncthreads();
  query.keepInRegisters();
  const LaneScope<K> lane(p, context, unit, group);
  if (unit.isTall)
    walkTallTiles(rows, ring, query, lane, p.scaleLog2, hasRows);
  else
    walkTiles(rows, ring, query, lane, p.scaleLog2);
  ptx::waitCopies<0>();
  __syncthreads();
  const SharedStates<K> states = {shared + K::kSmemK};
  if (hasRows)
    storeRows(states, warp, rows, unit.hasUpperHalf(group));
  __syncthreads();
  return states;
}

// What the warps left of a half of a group: one of them, or all.
template <class K>
DEV void joinWarps(ColumnShare<K> &share, const Unit<K> &unit, const SharedStates<K> &states, int32_t group,
                   int32_t half) {
  const SharedStates<K> own = {states.base + group * K::kStateBytes};
  joinStates(share, own, unit.isTall ? 1 : K::kWarps, half);
}

// Calls f(group, half) for the rows of a unit, 8 at a time.
template <class K, class F> DEV void forEachHalf(const Unit<K> &unit, const F &f) {
#pragma unroll 1
  for (int32_t group = 0; group < unit.groups(); ++group)
#pragma unroll 1
    for (int32_t half = 0; half <= static_cast<int32_t>(unit.hasUpperHalf(group)); ++half)
      f(group, half);
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
template <class K>
DEV void joinBlocks(const ParamsOf<K> &p, const Unit<K> &unit, BlockStates<K> from, int32_t count, bool isAll) {
  forEachHalf(unit, [&](int32_t group, int32_t half) {
    from.group = group;
    ColumnShare<K> share;
    joinStates(share, from, count, half);
    if (isAll)
      writeHalf(p, unit, share, group, half);
    else
      share.store(from, half);
  });
}

// The warp has left its columns of a part of a unit in the workspace. Whichever is last of those of eight neighbours joins
// theirs, and whichever is last of these what came of it; no warp waits for another.
template <class K> DEV void joinUnit(const ParamsOf<K> &p, const Unit<K> &unit, const UnitBlocks &blocks) {
  const int32_t teams = blocks.teams();
  int32_t first = blocks.team(), step = 1, count = blocks.members();
  uint32_t *arrivals = p.arrivals + threadIdx.x / 32;
#pragma unroll 1
  for (;;) {
    if (!arrivesLast(arrivals + BlockStates<K>::slotOf(blocks.first, first) * K::kWarps, count))
      return;
    const bool isAll = step > 1 || teams == 1;
    joinBlocks(p, unit, BlockStates<K>{p.states, blocks.first, first, step, 0}, count, isAll);
    if (isAll)
      return;
    arrivals += decode::kSlotsOfBlock * ptx::rereadGridSize() * K::kWarps;
    first = 0, step = decode::kFanIn, count = teams;
  }
}

template <class K>
DEV void computeUnit(const ParamsOf<K> &p, const Line<K> &line, int32_t number, const UnitPart &part, int64_t quota,
                     uint32_t shared) {
  const Unit<K> unit(p, line, number);
  UnitBlocks blocks;
  if (!unit.hasRows())
    return __syncthreads();
  const SharedStates<K> states =
      computePart(p, unit, part, quota, shared, [&] { blocks = UnitBlocks::of(part, quota); });
  forEachHalf(unit, [&](int32_t group, int32_t half) {
    ColumnShare<K> share;
    joinWarps(share, unit, states, group, half);
    if (part.isWhole())
      writeHalf(p, unit, share, group, half);
    else
      share.store(BlockStates<K>{p.states, blocks.first, blocks.own, 1, group}, half);
  });
  if (!part.isWhole())
    joinUnit(p, unit, blocks);
  __syncthreads();
}

// Where a block stands in its piece.
template <class K> struct Cursor {
  Piece<K> piece;
  Line<K> line;
  int32_t left;
  int64_t lineFirst, at; // number of the line's first tile; tile of the line

  DEV UnitPart part(int32_t unit) const {
    const int64_t first = static_cast<int64_t>(unit) * line.unitWork;
    UnitPart part = {lineFirst + first, static_cast<int32_t>(at - first), 0, line.unitWork};
    part.end = min(part.tiles, part.first + left);
    return part;
  }
};

// compute(line, unit, part, quota) for each part of a unit in the piece.
template <class K, class Compute>
DEV void computePiece(const ParamsOf<K> &p, const Piece<K> &piece, const Line<K> &line, uint32_t shared,
                      const Compute &compute) {
  const uint32_t parked = shared + K::kSmemControl;
  Cursor<K> cursor;
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
      cursor.line = readLine<K>(p, ++cursor.piece.line);
    }
    const int32_t unit = static_cast<int32_t>(quotient(cursor.at, cursor.line.unitWork));
    const UnitPart part = cursor.part(unit);
    cursor.left -= part.end - part.first;
    cursor.at += part.end - part.first;
    const bool isLast = cursor.left <= 0;
    if (!isLast) {
      __syncthreads();
      park(parked, cursor);
    }
    compute(cursor.line, unit, part, cursor.piece.quota);
    if (isLast)
      return;
    unpark(parked, cursor);
  }
}

// A kernel, and what its parts are templates on: the traits, what follows from them, and the pattern.
template <class Traits, class P, bool IsInvariant = false>
struct PortableDecode
    : RowStateShape<KeySlices<SoftmaxNumbers<KeyProductShape<WarpProductShape<WarpBlock<ElementNumbers<Traits>>>>>>> {
  using K = PortableDecode;
  using Pattern = P;
  using Params = DecodeParams<K, Traits::kShares != 0, IsInvariant>;
  static constexpr bool kIsInvariant =
      IsInvariant; // bits of a sequence do not depend on the batch (portable_decode_invariant.cuh)

  DEV static void run(const Params &p) {
    const uint32_t shared = ptx::sharedAddress(ptx::launchedMemory());
    computeBlock(p, shared, [&](const Line<K> &line, int32_t unit, const UnitPart &part, int64_t quota) {
      computeUnit(p, line, unit, part, quota, shared);
    });
  }

protected:
  template <class Compute> DEV static void computeBlock(const Params &p, uint32_t shared, const Compute &compute) {
    const BlockWords words(shared + K::kSmemControl);
    Line<K> line;
    const Piece<K> piece = findPiece(p, words, line);
    if (!piece.isEmpty())
      computePiece(p, piece, line, shared, compute);
  }

private:
  static_assert(K::kBlockM == decode::kRows && K::kRowWarps == 1, "a warp has 16 rows");
  static_assert(2 * K::kWarps <= kParkedWord, "each warp has a sum of 64 bits, and a number");
  static_assert(K::kRowTiles == 1 && K::kChunkN == K::kBlockN / K::kWarps, "a warp scores its own keys");
  static_assert(K::kElementBytes == 2, "elements are two in a register");
  static_assert(K::kStateBytes * K::kWarps <= K::kSmemControl - K::kSmemK, "states fit where keys and values were");
  static_assert(areApart({{K::kSmemQ, K::kWarps * decode::kRows * K::kSmemRowBytesQK},
                          {K::kSmemK, K::kStages * K::kSmemStageBytesK},
                          {K::kSmemV, K::kStages * K::kSmemStageBytesV},
                          {K::kSmemControl, decode::kControlBytes}},
                         K::kSmemBytes),
                "tiles, rings and words lie apart in the shared memory that is planned");
};

} // namespace heddle
