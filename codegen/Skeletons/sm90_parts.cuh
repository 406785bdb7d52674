// Items that are computed in parts, by several blocks: a part takes a stretch of the item's key tiles and leaves the
// state of its rows in the workspace. The warp that arrives last for its 16 rows combines the parts in their order,
// whoever computed them, so that results do not depend on the timing.
//   kSplitLast    the items of the last, incomplete round of the grid are cut so that no block stays idle
//   kSplitTiles   items with a longer range than twice this many tiles are cut into parts of about so many; the block that
//                 meets the item shares the parts with those that have nothing left to do
#pragma once

namespace heddle {

constexpr bool kSplitsLast = KernelTraits::kSplitLast != 0;
constexpr int kSplitTiles = KernelTraits::kSplitTiles;
constexpr bool kSplitsLong = kSplitTiles > 0;
constexpr bool kHasParts = kSplitsLast || kSplitsLong;

constexpr int kMaxParts = 64;
constexpr uint32_t kVoidEntry = 0xffffffff;
constexpr int kPartSlots = 256; // states of parts that several blocks share; kSharedPartSlots of the host half

// The workspace in 32-bit words, zero at the start up to the states.
namespace workspace {
constexpr int kNextItem = 0;                                            // of a dynamic grid
constexpr int kReserved = 1, kTaken = 2;                                // slots given to parts, slots whose part was taken up
constexpr int kChain = 4;                                               // if there are no parts: see ItemSequence
constexpr int kArrivals = 4;                                            // of each slot and warp
constexpr int kEntries = kArrivals + kPartSlots * kMaxConsumerWarps;    // of each slot: item number + 1, record
constexpr int kStates = kEntries + 2 * kPartSlots;
} // namespace workspace

constexpr int32_t kNoTile = 0x7fffffff;

// Key tiles [first, first + count) by their numbers.
struct TileStretch {
  int32_t first, count;
};

// Which part of how many, and the slot of part 0. Zero: the item in one piece. Alone: the queue was full and one block
// computes all parts, one after the other, in two slots of its own.
struct PartRecord {
  uint32_t bits;

  DEV static PartRecord make(int32_t slot, int32_t parts, int32_t part, bool isAlone) {
    return PartRecord{static_cast<uint32_t>(isAlone) << 31 | slot << 16 | parts << 8 | part};
  }
  DEV int32_t part() const { return bits & 0xff; }
  DEV int32_t parts() const { return bits >> 8 & 0xff; }
  DEV int32_t slot() const { return bits >> 16 & 0x7fff; }
  DEV bool isAlone() const { return bits >> 31; }
  DEV bool isPart() const { return bits != 0; }
  DEV bool isLast() const { return part() + 1 == parts(); }
  DEV PartRecord following() const { return PartRecord{bits + 1}; }

  // Cuts are where the longest range is cut evenly; what lies before or behind it belongs to the ends.
  DEV int32_t firstTile(const TileStretch &longest) const {
    if (part() == 0)
      return 0;
    return part() >= parts() ? kNoTile : longest.first + longest.count * part() / parts();
  }
};

// What a block computes next: an item or a part of it.
struct Unit {
  int32_t number; // of the item; negative: there is nothing left
  PartRecord record;

  DEV bool exists() const { return number >= 0; }
};

// The state of this warp's rows in a slot: for each lane, 16 bytes of every value tile, then references and sums.
class PartState {
public:
  static constexpr int kPieceBytes = 32 * 16; // of a warp
  static constexpr int kWarpBytes = (kValueTiles + 1) * kPieceBytes;

  DEV PartState(const KernelParams &p, int32_t slot) {
    const int32_t thread = ptx::rereadThreadIndex();
    const int64_t warp = static_cast<int64_t>(slot) * kConsumerWarps + thread / 32;
    at = reinterpret_cast<char *>(p.workspace + workspace::kStates) + warp * kWarpBytes + thread % 32 * 16;
  }

  DEV void store(const RowState &rows) const {
#pragma unroll
    for (int n = 0; n < kValueTiles; ++n)
      storePiece(n, rows.out[0][n][0], rows.out[0][n][1], rows.out[0][n][2], rows.out[0][n][3]);
    storePiece(kValueTiles, rows.reference[0][0], rows.reference[0][1], rows.sum[0][0], rows.sum[0][1]);
  }

  // rows += the state.
  DEV void addTo(RowState &rows) const {
    float state[4];
    ptx::loadGlobal16(at + kValueTiles * kPieceBytes, state);
    float mine[2], theirs[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float reference = fmaxf(rows.reference[0][half], state[half]);
      mine[half] = ptx::exp2Approx(rows.reference[0][half] - reference);
      theirs[half] = ptx::exp2Approx(state[half] - reference);
      rows.reference[0][half] = reference;
      rows.sum[0][half] = fmaf(state[2 + half], theirs[half], rows.sum[0][half] * mine[half]);
    }
#pragma unroll
    for (int n = 0; n < kValueTiles; ++n) {
      float out[4];
      ptx::loadGlobal16(at + n * kPieceBytes, out);
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        rows.out[0][n][slot] = fmaf(out[slot], theirs[slot / 2], rows.out[0][n][slot] * mine[slot / 2]);
    }
  }

private:
  DEV void storePiece(int n, float a, float b, float c, float d) const {
    ptx::storeGlobal16(at + n * kPieceBytes, true, __float_as_uint(a), __float_as_uint(b), __float_as_uint(c),
                       __float_as_uint(d));
  }

  char *at;
};

// This warp's arrival at the parts of its rows. True for the last one, which sees what the others stored.
DEV bool arrivesLast(const KernelParams &p, PartRecord record) {
  ptx::fenceGlobal();
  __syncwarp();
  uint32_t *arrivals =
      p.workspace + workspace::kArrivals + record.slot() * kMaxConsumerWarps + ptx::rereadThreadIndex() / 32;
  const uint32_t before = ptx::addGlobalIf(arrivals, 1, isLastLane());
  const bool isLast = uniform(isLastLane() & (static_cast<int32_t>(before) + 1 == record.parts()));
  ptx::fenceGlobal();
  return isLast;
}

// After the tiles of a part: true if rows now hold all parts of the item.
DEV bool joinParts(const KernelParams &p, PartRecord record, RowState &rows) {
  const int32_t slot = record.slot();
  if (record.isAlone()) {
    PartState(p, slot + 1).store(rows);
    clearRows(rows);
#pragma unroll 1
    for (int32_t i = record.part() == 0; i < 2; ++i)
      PartState(p, slot + i).addTo(rows);
    PartState(p, slot).store(rows);
    return record.isLast();
  }
  PartState(p, slot + record.part()).store(rows);
  const bool isLast = arrivesLast(p, record);
  const int32_t count = isLast ? record.parts() : 0;
  clearRows(rows);
#pragma unroll 1
  for (int32_t part = 0; part < count; ++part)
    PartState(p, slot + part).addTo(rows);
  return isLast;
}

// Gives the parts of an item to whoever has nothing left, this block among them, and keeps part 0; or all parts, if there
// are not slots enough. All lanes of the planning warp call together.
DEV PartRecord shareParts(const KernelParams &p, int32_t number, int32_t parts) {
  const int32_t lane = ptx::rereadThreadIndex() % 32;
  const int32_t slot = __shfl_sync(kWholeWarp, ptx::addGlobalIf(p.workspace + workspace::kReserved, parts, lane == 0), 0);
  const bool isAlone = slot + parts > kPartSlots;
#pragma unroll 1
  for (int32_t part = lane; part < parts; part += 32)
    if (slot + part < kPartSlots)
      ptx::storeCoherent8(p.workspace + workspace::kEntries + 2 * (slot + part),
                          isAlone || part == 0 ? kVoidEntry : number + 1, PartRecord::make(slot, parts, part, false).bits);
  __syncwarp();
  return isAlone ? PartRecord::make(kPartSlots + 2 * blockIdx.x, parts, 0, true) : PartRecord::make(slot, parts, 0, false);
}

// One lane: the next entry that is shared, in `entry`; false if there is none. Whoever shares an item takes parts
// afterwards, so none is left over when all blocks have found none.
DEV bool takeEntry(uint32_t *workspace, uint32_t (&entry)[2]) {
  uint32_t taken = ptx::loadCoherent4(workspace + workspace::kTaken);
  for (;;) {
    const uint32_t reserved = ptx::loadCoherent4(workspace + workspace::kReserved);
    if (taken >= min(reserved, static_cast<uint32_t>(kPartSlots)))
      return false;
    const uint32_t before = ptx::swapGlobal(workspace + workspace::kTaken, taken, taken + 1);
    if (before == taken)
      break;
    taken = before;
  }
  do
    ptx::loadCoherent8(workspace + workspace::kEntries + 2 * taken, entry);
  while (entry[0] == 0); // reserved, not yet written
  return true;
}

// A part of an item that another block, or this one, shares.
DEV Unit takePart(const KernelParams &p) {
  uint32_t entry[2] = {0, 0};
  if (ptx::rereadThreadIndex() % 32 == 0)
    do
      if (!takeEntry(p.workspace, entry))
        entry[0] = 0;
    while (entry[0] == kVoidEntry);
  const int32_t number = __shfl_sync(kWholeWarp, entry[0], 0);
  return Unit{number - 1, PartRecord{__shfl_sync(kWholeWarp, entry[1], 0)}};
}

} // namespace heddle
