// K and V of a unit in the blocks of clusters: a ring for each warp as in page_ring.cuh, of which a warp uses its own slices
// only. Scores may begin before values are there. The first tile is copied before it is known which tiles a block has.
#pragma once

#include "Decode/page_ring.cuh"
#include "Ptx/cluster.cuh"

namespace heddle {

// Where a block stands in a launch by clusters of Blocks: the first clusters of all units begin first.
template <int Blocks> struct ClusterGrid {
  DEV static int32_t kvHead() { return static_cast<uint32_t>(blockIdx.x) / Blocks; }
  DEV static int32_t sequence() { return blockIdx.y; }
  DEV static uint32_t unit() { return kvHead() + static_cast<uint32_t>(gridDim.x) / Blocks * blockIdx.y; }
  DEV static uint32_t units() { return static_cast<uint32_t>(gridDim.x) / Blocks * gridDim.y; }
  DEV static int32_t cluster() { return blockIdx.z; } // of the unit
  DEV static int32_t clusters() { return gridDim.z; }
  DEV static int32_t block() { return cluster() * Blocks + ptx::rankInCluster(); } // of the unit
};

// As steps of a walk: every stride-th tile.
struct EvenSteps {
  int32_t stride;

  DEV int32_t next() const { return stride; }
};

// Some of the key tiles of a unit: steps.next() says how many there are until the next one.
template <class K, class Steps = EvenSteps> class StridedWalk : KeyWalk<K> {
  using Walk = KeyWalk<K>;
  using Columns = KeyColumns<typename K::Pattern, K::kBlockN>;
  using Walk::at, Walk::range, Walk::context, Walk::describe;

public:
  DEV StridedWalk(const Context<K> &context, RowSpan rows) : Walk(context, rows), ahead(0) { this->enter(0); }

  // All tiles. Call first.
  DEV int32_t count() {
    const int32_t end = ceilDiv(context.seqlenK, K::kBlockN);
    int32_t tiles = 0, from = 0;
#pragma unroll 1
    do {
      const auto next = Columns::nextRange(context, 0, 0, this->rows, from);
      if (next.begin == kNoTile)
        break;
      if (from == 0)
        range = next, at.tile = next.begin;
      tiles += next.end - next.begin;
      from = next.end;
    } while (from < end);
    return tiles;
  }
  // Of the unit, behind count() where there are any.
  DEV int32_t firstTile() const { return at.tile; }
  DEV void take(int32_t first, int32_t every) { ahead = first, steps = {every}; }
  DEV void take(const Steps &own) {
    steps = own;
    ahead = steps.next();
  }

  DEV KeyTile next() {
#pragma unroll 1
    for (;;) {
      const int32_t left = range.end - at.tile;
      if (ahead < left) {
        at.tile += ahead;
        ahead = steps.next();
        return describe(at.tile);
      }
      ahead -= left;
      at.tile = range.end;
      if (!this->findRange())
        return KeyTile::none();
    }
  }

private:
  int32_t ahead; // tiles until the next one
  Steps steps;
};

// Where the rows lie that a warp copies of a tile: a lane finds one key of the slice, and tells the lanes that copy its row.
template <class K> class SliceRows {
  using Params = ParamsOf<K>;

public:
  DEV SliceRows(const Params &p, int32_t sequence, int32_t kvHead) : p(p), pages(pagesOf(p, sequence, kvHead)) {
    keyBase = static_cast<const char *>(p.k) + static_cast<uint32_t>(kvHead) * p.kStride[2] * K::kKeyBytes;
    valueBase = static_cast<const char *>(p.v) + static_cast<uint32_t>(kvHead) * p.vStride[2] * K::kKeyBytes;
    if (p.cuSeqlensK) {
      const int64_t firstKey = firstKeyOf(p, sequence);
      keyBase += firstKey * p.kStride[1] * K::kKeyBytes;
      valueBase += firstKey * p.vStride[1] * K::kKeyBytes;
    }
  }

  DEV static int32_t firstOfWarp(int32_t firstKey) { return firstKey + warp() * K::kSliceKeys; }
  DEV static int32_t warp() { return ptx::rereadThreadIndex() / 32; }
  DEV static int32_t rowOfSlice(int j) { return ptx::rereadLane() / K::kLanesOfRow + j * K::kRowsAtOnce; }

  // The page of this lane's key of a tile, and its place in it; of keys from `end` on nothing is looked at.
  DEV void ask(int32_t firstKey, int32_t end) {
    const int32_t number = firstOfWarp(firstKey) + ptx::rereadThreadIndex() % K::kSliceKeys;
    const bool isPresent = number < end;
    const int32_t entry = isPresent && pages ? pageOfKey(p, number) : 0;
    row = number - entry * p.pageSize;
    page = ptx::loadGlobal4(pages + entry, isPresent && pages);
    if (K::kCheckPages && isPresent && static_cast<uint32_t>(page) >= static_cast<uint32_t>(p.pages))
      __trap();
  }

  // This lane's parts of rows, once pages are there; of a row that is none, what is not looked at.
  DEV void locate() {
    const uint32_t ofPage = page, ofRow = row;
    const uint64_t ofKey = addressOf(keyBase + (ofPage * p.kStride[0] + ofRow * p.kStride[1]) * K::kKeyBytes),
                   ofValue = addressOf(valueBase + (ofPage * p.vStride[0] + ofRow * p.vStride[1]) * K::kKeyBytes);
    const int32_t ofLane = ptx::rereadThreadIndex() % K::kLanesOfRow * kPieceBytes;
#pragma unroll
    for (int j = 0; j < K::kRowsOfLane; ++j) {
      key[j] = reinterpret_cast<const char *>(__shfl_sync(kWholeWarp, ofKey, rowOfSlice(j))) + ofLane;
      value[j] = reinterpret_cast<const char *>(__shfl_sync(kWholeWarp, ofValue, rowOfSlice(j))) + ofLane;
    }
  }

  const char *key[K::kRowsOfLane], *value[K::kRowsOfLane];

private:
  static_assert(K::kSliceKeys <= 32, "each lane finds a key");

  DEV static uint64_t addressOf(const char *pointer) { return reinterpret_cast<uint64_t>(pointer); }

  const Params &p;
  const int32_t *const pages;
  const char *keyBase, *valueBase;
  int32_t page, row;
};

// Where slices of a warp lie in the slots of its ring.
template <class K> struct WarpSlots {
  using Rows = SliceRows<K>;
  uint32_t keys, values; // of the first slot

  DEV explicit WarpSlots(uint32_t shared)
      : keys(shared + K::kSmemK + Rows::warp() * K::kKeySliceBytes),
        values(shared + K::kSmemV + Rows::warp() * K::kValueSliceBytes) {}

  DEV uint32_t keysOf(int32_t slot) const { return keys + slot * K::kSmemStageBytesK; }
  DEV uint32_t valuesOf(int32_t slot) const { return values + slot * K::kSmemStageBytesV; }

  // Two groups of copies, of the slice of a tile whose keys end at `end`.
  template <bool ArePassing> DEV void fill(int32_t slot, const Rows &rows, int32_t firstKey, int32_t end) const {
    bool isPresent[K::kRowsOfLane];
#pragma unroll
    for (int j = 0; j < K::kRowsOfLane; ++j)
      isPresent[j] = Rows::firstOfWarp(firstKey) + Rows::rowOfSlice(j) < end;
    KeySlice<K, K::kHeadDim, K::kKeyRowBytes, ArePassing>::load(keysOf(slot), rows.key, isPresent);
    ptx::commitCopies();
    KeySlice<K, K::kValueDim, K::kSmemRowBytesV, ArePassing>::load(valuesOf(slot), rows.value, isPresent);
    ptx::commitCopies();
  }
};

// The tile that a block copies first where the keys of the pattern begin at 0: its rows are found while the length comes.
template <class K> struct GuessedTile {
  SliceRows<K> rows;
  int32_t firstKey; // negative: there is none
  bool isCopied;

  DEV GuessedTile(const ParamsOf<K> &p, int32_t sequence, int32_t kvHead, int32_t tile)
      : rows(p, sequence, kvHead), isCopied(false) {
    const bool isKnown = !K::kCheckPages && !p.kvIndptr; // behind the length there may be no entries that may be read
    firstKey = isKnown ? tile * K::kBlockN : -1;
    rows.ask(max(firstKey, 0), isKnown ? p.pageSize * p.maxPages : 0);
  }

  // To the first slot, of a sequence of `keys` whose block likely has it.
  DEV void copy(int32_t keys, bool isLikely, uint32_t shared) {
    rows.locate();
    isCopied = isLikely && firstKey >= 0 && firstKey < keys;
    if (isCopied)
      WarpSlots<K>(shared).template fill<true>(0, rows, firstKey, keys);
  }
};

template <class K, class Walk = StridedWalk<K>> class ClusterRing {
public:
  // `arePassing`: keys leave the L2 before what else is there. `guess` is located.
  DEV ClusterRing(const GuessedTile<K> &guess, int32_t keys, const Walk &walk, bool arePassing, uint32_t shared)
      : keys(keys), slots(shared), walk(walk), rows(guess.rows), arePassing(arePassing), slot(0) {
#pragma unroll
    for (int i = 0; i < K::kStages; ++i)
      pending[i] = KeyTile::none();
    coming = this->walk.next();
    isLocated = coming.firstKey == guess.firstKey;
    isFilled = isLocated && guess.isCopied;
    if (isFilled) {
      followUp(pending, coming);
      slot = 1;
      coming = this->walk.next();
      isLocated = false;
    } else if (guess.isCopied) {
      ptx::waitCopies<0>(); // of a slot that gets another tile
      __syncwarp();
    }
    if (!isLocated)
      ask();
  }

  // Calls whenPrimed() once all slots but one are on their way, behind a group of copies that the caller has asked for
  // before, and use(tile) for each tile.
  template <class WhenPrimed, class Use> DEV void walkAll(const WhenPrimed &whenPrimed, const Use &use) {
#pragma unroll 1
    for (int32_t filled = 1;; ++filled) {
      __syncwarp();
      if (!isFilled)
        refill();
      isFilled = false;
      if (filled < K::kStages) {
        if (filled == K::kStages - 1) {
          ptx::waitCopies<2 * (K::kStages - 1)>();
          whenPrimed();
        }
        continue;
      }
      ptx::waitCopies<2 * K::kStages - 1>();
      __syncwarp();
      if (!pending[0].exists())
        return;
      use(pending[0]);
    }
  }

  DEV void waitForValues() const {
    ptx::waitCopies<2 * K::kStages - 2>();
    __syncwarp();
  }
  // Shared addresses of the slice of the warp in the tile that is used.
  DEV uint32_t keysOfSlice(int32_t) const { return slots.keysOf(slot); }
  DEV uint32_t valuesOfSlice(int32_t) const { return slots.valuesOf(slot); }

private:
  // The slot becomes that of the tile behind all that are pending, and the next one is used.
  DEV void refill() {
    followUp(pending, coming);
    if (coming.exists()) {
      if (!isLocated)
        rows.locate();
      isLocated = false;
      const int32_t firstKey = coming.firstKey;
      coming = walk.next();
      ask();
      copy(firstKey);
    } else {
      ptx::commitCopies();
      ptx::commitCopies();
    }
    slot = slot + 1 == K::kStages ? 0 : slot + 1;
  }

  DEV void ask() {
    if (coming.exists())
      rows.ask(coming.firstKey, keys);
  }

  DEV void copy(int32_t firstKey) const {
    if (arePassing)
      slots.template fill<true>(slot, rows, firstKey, keys);
    else
      slots.template fill<false>(slot, rows, firstKey, keys);
  }

  const int32_t keys;
  const WarpSlots<K> slots;
  Walk walk;
  KeyTile pending[K::kStages], coming;
  SliceRows<K> rows;        // of the tile that comes
  bool isLocated, isFilled; // `isFilled`: the next slot, with what was guessed
  const bool arePassing;
  int32_t slot;
};

} // namespace heddle
