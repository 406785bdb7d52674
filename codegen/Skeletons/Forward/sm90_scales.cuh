// What elements of bytes are multiplied by, where scores and results of an item need it. A kernel whose elements have no
// factors keeps none, and multiplies by none.
#pragma once

#include "Forward/forward_rows.cuh"
#include "Forward/online_softmax.cuh"
#include "Forward/sm90_shared.cuh"
#include "Forward/work_items.cuh"

namespace heddle {

constexpr int commonDivisor(int a, int b) { return b == 0 ? a : commonDivisor(b, a % b); }

// What the producer says of a key tile.
template <class K> struct KeyTileHeader {
  int32_t firstKey;
  int32_t flags;     // decides within a step
  int32_t following; // the same, uniform: decides how the walk goes on

  DEV explicit KeyTileHeader(int32_t slot) {
    const auto header = loadRecord<TileHeader>(K::tileHeader(slot));
    firstKey = header.firstKey;
    flags = header.flags;
    following = uniform(flags);
  }
};

// What the scores and the values of an item are multiplied by, which elements may have factors for. `of` has ownItem().
template <class K, bool AreScaled, bool HasBlocks> class ItemScales {
  using Params = ParamsOf<K>;

public:
  template <class Of> DEV void find(const Params &, const Of &) {}
  DEV float ofScores(const Params &p) const { return p.scaleLog2; }
  template <class Of> DEV float ofValues(const Params &, const Of &) const { return 1.f; }
  template <class Of> DEV void scale(Scores<K> &, const Params &, const Of &, const KeyTileHeader<K> &) const {}
};
template <class K> class ItemScales<K, true, false> {
  using Params = ParamsOf<K>;

public:
  template <class Of> DEV void find(const Params &p, const Of &of) {
    const WorkItem<K> item = of.ownItem();
    scaleLog2 = p.scaleLog2 * p.ofScores(item.batch * p.heads + item.head, item.batch * p.kvHeads + item.kvHead);
  }
  DEV float ofScores(const Params &) const { return scaleLog2; }
  template <class Of> DEV float ofValues(const Params &p, const Of &of) const {
    const WorkItem<K> item = of.ownItem();
    return p.ofValues(item.batch * p.kvHeads + item.kvHead);
  }
  template <class Of> DEV void scale(Scores<K> &, const Params &, const Of &, const KeyTileHeader<K> &) const {}

private:
  float scaleLog2;
};
// Where blocks of rows of q and k have factors of their own: rows of an item, and keys of a tile, may lie at a stride, so each
// row keeps its factor, and keys at a stride find theirs one by one.
template <class K> class ItemScales<K, true, true> {
  using Params = ParamsOf<K>;
  // Neighbouring keys of a tile without a stride that have one factor.
  static constexpr int kTogether = commonDivisor(K::kBlockN, K::kScaleRows);
  static_assert(kTogether % 8 == 0, "the columns of a tile of scores have one factor");

public:
  template <class Of> DEV void find(const Params &p, const Of &of) {
    const WorkItem<K> item = of.ownItem();
    const LaneRows<K> lane(p, item);
    const int64_t first = static_cast<int64_t>(item.batch * p.heads + item.head) * blocksOf(p.seqlenQ);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      ofRow[half] = p.descaleQ ? p.descaleQ[first + min(lane.index(0, half), p.seqlenQ - 1) / K::kScaleRows] : 1.f;
  }
  DEV float ofScores(const Params &p) const { return p.scaleLog2; }
  template <class Of> DEV float ofValues(const Params &p, const Of &of) const {
    const WorkItem<K> item = of.ownItem();
    return p.ofValues(item.batch * p.kvHeads + item.kvHead);
  }
  template <class Of>
  DEV void scale(Scores<K> &scores, const Params &p, const Of &of, const KeyTileHeader<K> &tile) const {
    using Pattern = typename K::Pattern;
    const WorkItem<K> item = of.ownItem();
    const int32_t branch = Pattern::kBranchCount == 1 ? 0 : tile.flags >> flag::kBranch;
    const int32_t rate = Pattern::keyRate(item.variant, branch);
    const float *ofKeys = p.descaleK;
    if (ofKeys)
      ofKeys += static_cast<int64_t>(item.batch * p.kvHeads + item.kvHead) * blocksOf(p.seqlenK);
    if (rate == 1)
      scaleRuns(scores, ofKeys, tile.firstKey, p.seqlenK);
    else
      scaleKeys(scores, ofKeys, tile.firstKey + rate * static_cast<int32_t>(ptx::rereadThreadIndex() % 4 * 2), rate,
                p.seqlenK);
  }

private:
  DEV static int32_t blocksOf(int32_t rows) { return (rows + K::kScaleRows - 1) / K::kScaleRows; }
  DEV static float factorOf(const float *ofKeys, int32_t key, int32_t keys) {
    return ofKeys ? ofKeys[min(key, keys - 1) / K::kScaleRows] : 1.f;
  }

  DEV void scaleRuns(Scores<K> &scores, const float *ofKeys, int32_t firstKey, int32_t keys) const {
    constexpr int kTiles = kTogether / 8;
#pragma unroll
    for (int run = 0; run < K::kScoreTiles / kTiles; ++run) {
      const float ofRun = factorOf(ofKeys, firstKey + run * kTogether, keys);
      const float factor[2] = {ofRow[0] * ofRun, ofRow[1] * ofRun};
#pragma unroll
      for (int n = run * kTiles; n < (run + 1) * kTiles; ++n)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot)
          scores[0][n][slot] *= factor[slot / 2];
    }
  }

  // firstKey: of this lane's first column.
  DEV void scaleKeys(Scores<K> &scores, const float *ofKeys, int32_t firstKey, int32_t rate, int32_t keys) const {
#pragma unroll
    for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float ofKey = factorOf(ofKeys, firstKey + rate * (8 * n + e), keys);
#pragma unroll
        for (int half = 0; half < 2; ++half)
          scores[0][n][2 * half + e] *= ofRow[half] * ofKey;
      }
  }

  float ofRow[2];
};

} // namespace heddle
