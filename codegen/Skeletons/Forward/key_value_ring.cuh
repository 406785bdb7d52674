// The producer side of the portable skeleton: a ring of kStages slots for K and one for V, filled by
// asynchronous copies ahead of use, across ranges and branches. Tile number t lies in slot t % kStages of
// both rings. Copies of one advance() form one group: K of tile t and V of tile t - kValueLag.
#pragma once

#include "Forward/key_products.cuh"
#include "Forward/key_tiles.cuh"
#include "Forward/forward_params.cuh"
#include "Ptx/async_copy.cuh"
#include "Shared/shared_tiles.cuh"

namespace heddle {

template <class K> DEV void loadQuery(const ParamsOf<K> &p, const WorkItem<K> &item, uint32_t tile) {
  using QueryTile = SharedTile<K, K::kBlockM, K::kHeadDim, K::kSmemRowBytesQK>;
  QueryTile::load(tile, StridedRows{headBase<K>(p.q, p.qStride, item.batch, item.head), p.qStride[1] * K::kElementBytes,
                                    item.firstRow, item.queryRate, item.endRow(p)});
}

template <class K> class KeyValueRing {
  using Params = ParamsOf<K>;
  using KeyStage = SharedTile<K, K::kBlockN, K::kHeadDim, K::kKeyRowBytes, K::kKeyBytes>;
  using ValueStage = SharedTile<K, K::kBlockN, K::kValueDim, K::kSmemRowBytesV, K::kKeyBytes>;
  // With overlapped scores V is used one tile later than K, so it is also loaded one tile later.
  static constexpr int kValueLag = K::kOverlapScores ? 1 : 0;

public:
  DEV KeyValueRing(const Params &p, const WorkItem<K> &item, const Context<K> &context, uint32_t shared)
      : keyBase(headBase<K, K::kKeyBytes>(p.k, p.kStride, item.batch, item.kvHead)),
        valueBase(headBase<K, K::kKeyBytes>(p.v, p.vStride, item.batch, item.kvHead)), p(p), variant(item.variant),
        shared(shared), walk(context, item), slot(K::kStages - 1) {}

  // Starts the loads of the first kStages - 1 tiles, one group each.
  DEV void prime() {
    pending[0] = KeyTile::none();
#pragma unroll
    for (int t = 0; t + 1 < K::kStages; ++t) {
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
    ptx::waitCopies<K::kStages - 2>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i + 1 < K::kStages; ++i)
      pending[i] = pending[i + 1];
    pending[K::kStages - 1] = walk.next();
    int freed = slot;
    slot = slot + 1 == K::kStages ? 0 : slot + 1;
    loadKeys(pending[K::kStages - 1], freed);
    loadValues(pending[K::kStages - 1 - kValueLag], kValueLag ? before(freed) : freed);
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
  DEV static int before(int slot) { return slot == 0 ? K::kStages - 1 : slot - 1; }
  DEV uint32_t keySlot(int slot) const { return shared + K::kSmemK + slot * K::kSmemStageBytesK; }
  DEV uint32_t valueSlot(int slot) const { return shared + K::kSmemV + slot * K::kSmemStageBytesV; }

  DEV StridedRows rowsOf(const KeyTile &tile, const char *base, int64_t stride) const {
    return StridedRows{base, stride * K::kKeyBytes, tile.firstKey, K::Pattern::keyRate(variant, tile.branch),
                       p.seqlenK};
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
  const Params &p;
  int32_t variant;
  uint32_t shared;
  KeyTileWalk<K> walk;
  KeyTile pending[K::kStages];
  int slot;
};

} // namespace heddle
