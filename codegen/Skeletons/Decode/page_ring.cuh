// K and V of a unit: a ring of kStages key tiles, filled by asynchronous copies ahead of use. A warp copies its slice of
// each tile, 1 / kWarps of the keys. Of a unit whose rows all warps have, it uses only this, and waits for nobody until the
// unit ends; of a tall one it uses all slices. Rows are found through the table of pages, whose entries are asked for a
// tile before they are used.
#pragma once

#include "Forward/key_products.cuh"
#include "Decode/packed_rows.cuh"
#include "Decode/tall_sums.cuh"
#include "Forward/key_tile.cuh"
#include "Ptx/async_copy.cuh"
#include "Ptx/memory.cuh"
#include "Shared/elements.cuh"

namespace heddle {

// Nothing is waited for.
struct AllThere {
  DEV void operator()() const {}
};

// What a warp copies of a tile.
template <class Traits> struct KeySlices : Traits {
  static constexpr int kSliceKeys = Traits::kChunkN;
  // As many lanes copy a row as a line has pieces, so that a copy of a warp is of few lines, if rows have whole lines.
  static constexpr int kLanesOfRow =
      (Traits::kHeadDim * Traits::kKeyBytes | Traits::kValueDim * Traits::kKeyBytes) % 128 ? 4 : 8;
  static constexpr int kRowsAtOnce = 32 / kLanesOfRow;
  static constexpr int kRowsOfLane = kSliceKeys / kRowsAtOnce;
  static constexpr int kKeySliceBytes = kSliceKeys * Traits::kKeyRowBytes;
  static constexpr int kValueSliceBytes = kSliceKeys * Traits::kSmemRowBytesV;
  static_assert(Traits::kBlockN == Traits::kWarps * kSliceKeys, "the warps of a block share a tile");
  static_assert(Traits::kStages >= 2, "copies run ahead of use");
};

// Through the key tiles of a pattern.
template <class K> class KeyWalk : protected RangeWalk<KeyColumns<typename K::Pattern, K::kBlockN>> {
  using Walk = RangeWalk<KeyColumns<typename K::Pattern, K::kBlockN>>;

protected:
  using Walk::at, Walk::range, Walk::context, Walk::columnRate;
  using Walk::Walk;

  DEV KeyTile describe(int32_t number) const {
    const int32_t rate = columnRate(), firstKey = at.residue + rate * number * K::kBlockN;
    const bool isFull = number >= range.fullBegin && number < range.fullEnd;
    const bool reachesEnd = firstKey + rate * (K::kBlockN - 1) >= context.seqlenK;
    return KeyTile{firstKey, K::Pattern::kBranchCount == 1 ? 0 : at.branch, !isFull || reachesEnd};
  }
};

// The first of those that are pending has been used, and another one comes behind the last.
template <int Stages> DEV void followUp(KeyTile (&pending)[Stages], const KeyTile &coming) {
#pragma unroll
  for (int i = 0; i + 1 < Stages; ++i)
    pending[i] = pending[i + 1];
  pending[Stages - 1] = coming;
}

// The key tiles of a unit in the order in which they are used; the same in all lanes of all warps.
template <class K> class UnitWalk : KeyWalk<K> {
  using Walk = KeyWalk<K>;
  using Walk::at, Walk::range, Walk::describe;

public:
  DEV UnitWalk(const Context<K> &context, const Unit<K> &unit)
      : Walk(context, unit.span()), share(unit), areTall(unit.isTall) {
    this->enter(unit.variant);
    if (share.isGroup())
      range = share.range(), at.tile = range.begin;
  }

  DEV bool isTall() const { return areTall; }
  // How many tiles are the work from `first` on, kNoTile: all that are left.
  DEV int32_t tilesOf(int32_t first, int32_t work) const {
    return work == kNoTile ? kNoTile : tilesBefore(first + work) - tilesBefore(first);
  }

  // The tiles of the first `work`.
  DEV void skip(int32_t work) {
    int32_t count = tilesBefore(work);
#pragma unroll 1
    while (count > 0 && findTile()) {
      const int32_t step = min(count, share.endOfOwn(at.tile, range.end) - at.tile);
      at.tile += step;
      count -= step;
    }
  }

  // The same where of(tile) says which tiles these are, once it knows the first one of all; of(0) where there is none.
  template <class Of> DEV void skipTo(const Of &of) {
    int32_t count = -1; // not known
#pragma unroll 1
    while (findTile()) {
      if (count < 0)
        count = tilesBefore(of(at.tile));
      if (count == 0)
        return;
      const int32_t step = min(count, range.end - at.tile);
      at.tile += step;
      count -= step;
    }
    if (count < 0)
      of(0);
  }

  DEV KeyTile next() { return findTile() ? describe(at.tile++) : KeyTile::none(); }

private:
  DEV int32_t tilesBefore(int32_t work) const {
    constexpr uint32_t kTallWork = decode::tallWork(K::kWarps);
    return areTall ? (work + kTallWork - 1) / kTallWork : work;
  }

  // findRange() without tiles that others walk.
  DEV bool findTile() {
    if (share.isGroup())
      return at.tile < range.end;
#pragma unroll 1
    while (this->findRange()) {
      if (!share.isShared(at.tile))
        return true;
      at.tile = share.behindShared(range.end);
    }
    return false;
  }

  const KeyShare<K> share;
  const bool areTall; // the rows
};

// The upper 64 bits of a product.
DEV uint32_t highProduct(uint32_t a, uint64_t b) {
  const uint64_t low = static_cast<uint64_t>(a) * static_cast<uint32_t>(b);
  return static_cast<uint32_t>((static_cast<uint64_t>(a) * static_cast<uint32_t>(b >> 32) + (low >> 32)) >> 32);
}

// The number of its page in a table.
template <class Params> DEV int32_t pageOfKey(const Params &p, int32_t key) {
  return static_cast<int32_t>(highProduct(4u * key, p.pageInverse));
}

// Work of a unit: `count` from `first` on, kNoTile: all that is left.
struct BlockWork {
  int32_t first, count;
};

// Rows of one tensor in one slice, whose lines stay in the L2 like others or pass through it.
template <class K, int Dim, int SharedRowBytes, bool ArePassing> struct KeySlice {
  static constexpr int kPieces = Dim * K::kKeyBytes / kPieceBytes;
  static constexpr int kLanes = K::kLanesOfRow, kRows = K::kRowsAtOnce;
  static_assert(kPieces % kLanes == 0, "lanes of a row copy as much each");

  // `to`: the slot; `from`: where this lane's parts of its rows begin, of those that there are.
  DEV static void load(uint32_t to, const char *const (&from)[K::kRowsOfLane],
                       const bool (&isPresent)[K::kRowsOfLane]) {
    const int32_t lane = ptx::rereadLane(), row = lane / kLanes, piece = lane % kLanes;
#pragma unroll
    for (int j = 0; j < K::kRowsOfLane; ++j) {
      const int32_t swizzle = (row + j * kRows) % 8;
      const uint32_t first = to + (row + j * kRows) * SharedRowBytes + (piece ^ swizzle) * kPieceBytes;
      loadRow<0>(first, first ^ (4 * kPieceBytes), from[j], isPresent[j]);
    }
  }

private:
  // From piece I * kLanes on; of four lanes those of odd I lie where swizzling has them.
  template <int I> DEV static void loadRow(uint32_t even, uint32_t odd, const char *from, bool isPresent) {
    if constexpr (I < kPieces / kLanes) {
      constexpr int kOffset = I * kLanes * kPieceBytes;
      const uint32_t to = (kLanes == 4 && I % 2 ? odd : even) + kOffset / 128 * 128;
      if constexpr (ArePassing)
        ptx::copyAsync16OfPassingLineOrZero<kOffset>(to, from, isPresent);
      else
        ptx::copyAsync16OfLineOrZero<kOffset>(to, from, isPresent);
      loadRow<I + 1>(even, odd, from, isPresent);
    }
  }
};

template <class K> class PageRing {
  using Params = ParamsOf<K>;

public:
  // `arePassing`: keys leave the L2 before what else is there.
  DEV PageRing(const Params &p, const Context<K> &context, const Unit<K> &unit, bool arePassing, uint32_t shared)
      : p(p), pages(pagesOf(p, unit.sequence.number, unit.kvHead)), keys(unit.sequence.keys), variant(unit.variant),
        walk(context, unit), arePassing(arePassing), slot(0) {
    const int32_t ofLane = ptx::rereadThreadIndex() % K::kLanesOfRow * kPieceBytes;
    keyBase =
        static_cast<const char *>(p.k) + static_cast<uint32_t>(unit.kvHead) * p.kStride[2] * K::kKeyBytes + ofLane;
    valueBase =
        static_cast<const char *>(p.v) + static_cast<uint32_t>(unit.kvHead) * p.vStride[2] * K::kKeyBytes + ofLane;
    if (p.cuSeqlensK) {
      const int64_t firstKey = firstKeyOf(p, unit.sequence.number);
      keyBase += firstKey * p.kStride[1] * K::kKeyBytes;
      valueBase += firstKey * p.vStride[1] * K::kKeyBytes;
    }
    keySlots = shared + K::kSmemK;
    valueSlots = shared + K::kSmemV;
  }

  // Of the unit's work what is `first` and on, at most `work`. The first pages are asked for before all else; meanwhile() has
  // a group of copies of its own. All slots but one are filled.
  template <class Meanwhile> DEV void prime(int32_t first, int32_t work, const Meanwhile &meanwhile) {
    left = walk.tilesOf(first, work);
    walk.skip(first);
    fill(meanwhile);
  }
  // The same where find(tile) knows which work this is by the first tile of the unit.
  template <class Find, class Meanwhile> DEV void primeParts(const Find &find, const Meanwhile &meanwhile) {
    walk.skipTo([&](int32_t tile) {
      const BlockWork work = find(tile);
      left = walk.tilesOf(work.first, work.count);
      return work.first;
    });
    fill(meanwhile);
  }

private:
  template <class Meanwhile> DEV void fill(const Meanwhile &meanwhile) {
#pragma unroll
    for (int i = 0; i < K::kStages; ++i)
      pending[i] = KeyTile::none();
    coming = next();
    ask(ofComing, coming);
    meanwhile();
    ptx::commitCopies();
    if (kTallStages < K::kStages && walk.isTall())
      ptx::commitCopies(); // that of a slot which is not there
#pragma unroll 1
    for (int i = 0; i + 1 < stages(); ++i)
      refill();
  }

public:
  // Refills what nobody uses any more, and waits for the next tile. Of tall units the block calls together, and waits first:
  // all warps use a slot. Else a warp refills its own slices before it waits, so no slot is empty meanwhile.
  template <bool IsTall> DEV KeyTile advance() {
    if constexpr (IsTall) {
      ptx::waitCopies<kTallStages - 2>();
      __syncthreads();
      refill();
      return pending[K::kStages - kTallStages];
    } else {
      __syncwarp();
      refill();
      ptx::waitCopies<K::kStages - 1>();
      __syncwarp();
      return pending[0];
    }
  }

  // Where all warps use all slices, but each waits for its own alone until another barrier: behind one after which nobody uses
  // the last tile any more, its slot is refilled before the next tile is waited for. The block calls together.
  DEV KeyTile advanceTogether() {
    __syncthreads();
    refill();
    ptx::waitCopies<K::kStages - 1>();
    __syncwarp();
    return pending[0];
  }

  // Shared addresses of a slice of the tile that was returned last.
  DEV uint32_t keysOfSlice(int32_t slice) const {
    return keySlots + slot * K::kSmemStageBytesK + slice * K::kKeySliceBytes;
  }
  DEV uint32_t valuesOfSlice(int32_t slice) const {
    return valueSlots + slot * K::kSmemStageBytesV + slice * K::kValueSliceBytes;
  }

private:
  // The slot becomes that of the tile behind all that are pending, and the next one is used.
  DEV void refill() {
    followUp(pending, coming);
    load(slot, ofComing, coming);
    slot = slot + 1 == stages() ? 0 : slot + 1;
    coming = next();
    ask(ofComing, coming);
  }
  DEV int stages() const { return kTallStages < K::kStages && walk.isTall() ? kTallStages : K::kStages; }
  DEV KeyTile next() { return left-- > 0 ? walk.next() : KeyTile::none(); }

  // Which rows of a tile this lane copies parts of: page and place in it.
  struct RowsOfLane {
    int32_t page[K::kRowsOfLane], row[K::kRowsOfLane];
    bool isPresent[K::kRowsOfLane];
  };

  // What a tile that does not exist has is not looked at.
  DEV void ask(RowsOfLane &rows, const KeyTile &tile) const {
    if (!tile.exists())
      return;
    const int32_t rate = K::Pattern::keyRate(variant, K::Pattern::kBranchCount == 1 ? 0 : tile.branch);
    const int32_t number = ptx::rereadThreadIndex() / 32 * K::kSliceKeys + ptx::rereadLane() / K::kLanesOfRow;
#pragma unroll
    for (int j = 0; j < K::kRowsOfLane; ++j) {
      const int32_t key = tile.firstKey + rate * (number + K::kRowsAtOnce * j);
      rows.isPresent[j] = key < keys;
      const int32_t entry = rows.isPresent[j] ? pageOfKey(p, key) : 0;
      rows.row[j] = key - entry * p.pageSize;
      rows.page[j] = ptx::loadGlobal4(pages + entry, rows.isPresent[j] && pages);
      const bool isNone = static_cast<uint32_t>(rows.page[j]) >= static_cast<uint32_t>(p.pages);
      if (K::kCheckPages && rows.isPresent[j] && isNone)
        __trap();
    }
  }

  DEV void load(int into, const RowsOfLane &rows, const KeyTile &tile) const {
    if (tile.exists()) {
      const char *key[K::kRowsOfLane], *value[K::kRowsOfLane];
#pragma unroll
      for (int j = 0; j < K::kRowsOfLane; ++j) {
        const uint32_t ofPage = rows.page[j], ofRow = rows.row[j]; // of a row that is none, what is not looked at
        key[j] = keyBase + (ofPage * p.kStride[0] + ofRow * p.kStride[1]) * K::kKeyBytes;
        value[j] = valueBase + (ofPage * p.vStride[0] + ofRow * p.vStride[1]) * K::kKeyBytes;
      }
      if (arePassing)
        loadSlices<true>(into, key, value, rows.isPresent);
      else
        loadSlices<false>(into, key, value, rows.isPresent);
    }
    ptx::commitCopies();
  }

  template <bool ArePassing>
  DEV void loadSlices(int into, const char *const (&key)[K::kRowsOfLane], const char *const (&value)[K::kRowsOfLane],
                      const bool (&isPresent)[K::kRowsOfLane]) const {
    using Keys = KeySlice<K, K::kHeadDim, K::kKeyRowBytes, ArePassing>;
    using Values = KeySlice<K, K::kValueDim, K::kSmemRowBytesV, ArePassing>;
    const int32_t warp = ptx::rereadThreadIndex() / 32;
    Keys::load(keySlots + into * K::kSmemStageBytesK + warp * K::kKeySliceBytes, key, isPresent);
    Values::load(valueSlots + into * K::kSmemStageBytesV + warp * K::kValueSliceBytes, value, isPresent);
  }

  static constexpr int kTallStages = TallShape<K>::kStages;

  const Params &p;
  const int32_t *pages;
  int32_t keys, variant, left;
  const char *keyBase, *valueBase; // of this lane's parts of rows
  uint32_t keySlots, valueSlots;
  UnitWalk<K> walk;
  KeyTile pending[K::kStages], coming;
  RowsOfLane ofComing;
  const bool arePassing;
  int slot;
};

} // namespace heddle
