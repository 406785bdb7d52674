// The producer side of the portable skeleton: a ring of kStages slots for K and one for V, filled by
// asynchronous copies ahead of use, across ranges and branches. Tile number t lies in slot t % kStages of
// both rings. Copies of one advance() form one group: K of tile t and V of tile t - kValueLag.
#pragma once

#include "Forward/key_products.cuh"
#include "Forward/key_tiles.cuh"
#include "Forward/params.cuh"
#include "Ptx/async_copy.cuh"
#include "Shared/shared_tiles.cuh"

namespace heddle {

// With overlapped scores V is used one tile later than K, so it is also loaded one tile later.
constexpr int kStages = KernelTraits::kStages;
constexpr int kValueLag = KernelTraits::kOverlapScores ? 1 : 0;

using QueryTile = SharedTile<KernelTraits::kBlockM, KernelTraits::kHeadDim, KernelTraits::kSmemRowBytesQK>;
using KeyStage = SharedTile<KernelTraits::kBlockN, KernelTraits::kHeadDim, kKeyRowBytes, kKeyBytes>;
using ValueStage = SharedTile<KernelTraits::kBlockN, KernelTraits::kValueDim, KernelTraits::kSmemRowBytesV, kKeyBytes>;

DEV void loadQuery(const KernelParams &p, const WorkItem &item, uint32_t tile) {
  QueryTile::load(tile, StridedRows{headBase(p.q, p.qStride, item.batch, item.head), p.qStride[1] * kElementBytes,
                                    item.firstRow, item.queryRate, item.endRow(p)});
}

class KeyValueRing {
public:
  DEV KeyValueRing(const KernelParams &p, const WorkItem &item, const PatternContext &context, uint32_t shared)
      : keyBase(headBase<kKeyBytes>(p.k, p.kStride, item.batch, item.kvHead)),
        valueBase(headBase<kKeyBytes>(p.v, p.vStride, item.batch, item.kvHead)), p(p), variant(item.variant),
        shared(shared), walk(context, item), slot(kStages - 1) {}

  // Starts the loads of the first kStages - 1 tiles, one group each.
  DEV void prime() {
    pending[0] = KeyTile::none();
#pragma unroll
    for (int t = 0; t + 1 < kStages; ++t) {
      pending[t + 1] = walk.next();
      loadKeys(pending[t + 1], t);
      if (t >= kValueLag)
        loadValues(pending[t + 1 - kValueLag], t - kValueLag);
      ptx::commitCopies();
    }
  }

  // Waits for the next tile (for V: of kValueLag tiles earlier), then refills what the CTA no longer uses.
  // A block barrier: every warp must have finished with the tile before the previous one.
  DEV KeyTile advance() {
    ptx::waitCopies<kStages - 2>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i + 1 < kStages; ++i)
      pending[i] = pending[i + 1];
    pending[kStages - 1] = walk.next();
    int freed = slot;
    slot = slot + 1 == kStages ? 0 : slot + 1;
    loadKeys(pending[kStages - 1], freed);
    loadValues(pending[kStages - 1 - kValueLag], kValueLag ? before(freed) : freed);
    ptx::commitCopies();
    return pending[0];
  }

  // Shared addresses of the tile that advance() returned last, and of V kValueLag tiles before it.
  DEV uint32_t keys() const { return keySlot(slot); }
  DEV uint32_t values() const { return valueSlot(kValueLag ? before(slot) : slot); }

  // For a ring of one stage, where K and V are loaded in turn.
  DEV KeyTile startKeys() {
    KeyTile tile = walk.next();
    loadKeys(tile, 0);
    ptx::commitCopies();
    return tile;
  }
  DEV void startValues(const KeyTile &tile) const {
    loadValues(tile, 0);
    ptx::commitCopies();
  }

private:
  DEV static int before(int slot) { return slot == 0 ? kStages - 1 : slot - 1; }
  DEV uint32_t keySlot(int slot) const { return shared + KernelTraits::kSmemK + slot * KernelTraits::kSmemStageBytesK; }
  DEV uint32_t valueSlot(int slot) const {
    return shared + KernelTraits::kSmemV + slot * KernelTraits::kSmemStageBytesV;
  }

  DEV StridedRows rowsOf(const KeyTile &tile, const char *base, int64_t stride) const {
    return StridedRows{base, stride * kKeyBytes, tile.firstKey, Pattern::keyRate(variant, tile.branch), p.seqlenK};
  }
  DEV void loadKeys(const KeyTile &tile, int slot) const {
    if (tile.exists())
      KeyStage::load(keySlot(slot), rowsOf(tile, keyBase, p.kStride[1]));
  }
  DEV void loadValues(const KeyTile &tile, int slot) const {
    if (tile.exists())
      ValueStage::load(valueSlot(slot), rowsOf(tile, valueBase, p.vStride[1]));
  }

  const char *keyBase, *valueBase;
  const KernelParams &p;
  int32_t variant;
  uint32_t shared;
  KeyTileWalk walk;
  KeyTile pending[kStages];
  int slot;
};

} // namespace heddle
