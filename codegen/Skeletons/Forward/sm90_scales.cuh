// What elements of bytes are multiplied by, where scores and results of an item need it. A kernel whose elements have no
// factors keeps none, and multiplies by none.
#pragma once

#include "Forward/forward_rows.cuh"
#include "Forward/score_chain.cuh"
#include "Forward/sm90_shared.cuh"
#include "Forward/sm90_softmax.cuh"
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

// Whether keys of a tile may lie at a stride.
template <class K> constexpr bool kKeysMayBeStrided = K::kKeyRateCount > 1 || K::kKeyRates[0] > 1;

// Neighbouring keys of a tile without a stride that share a factor.
template <class K> struct ScaleRuns {
  static constexpr int kKeys = commonDivisor(K::kBlockN, K::kScaleRows), kTiles = kKeys / 8,
                       kCount = K::kBlockN / kKeys;
  static_assert(kKeys % 8 == 0, "the columns of a tile of scores share a factor");
};

// From scores of a tile to log2 units: a factor of each run of its keys, times that of a row.
template <class K> struct TileScales {
  float ofKeys[ScaleRuns<K>::kCount], ofRows[2];

  DEV float ofRun(int run, int half) const { return ofKeys[run] * ofRows[half]; }
};

// Of a score tile.
template <class K> DEV float scaleOf(const TileScales<K> &scales, int n, int half) {
  return scales.ofRun(K::KeyColumns::template runOf<ScaleRuns<K>::kTiles>(n), half);
}

// The same as of one number, of a lane's largest scores.
template <class K>
DEV bool admit(RowState<K> &rows, const Scores<K> &scores, const TileScales<K> &scales, RowValues<K> &factor) {
  constexpr int kTiles = ScaleRuns<K>::kTiles;
  RowValues<K> largest;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    largest[0][half] = -INFINITY;
#pragma unroll
    for (int run = 0; run < ScaleRuns<K>::kCount; ++run) {
      float most = -INFINITY;
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        const auto &own = scores[0][K::KeyColumns::template tileOfRun<kTiles>(run, i)];
        most = fmaxf(most, fmaxf(own[2 * half], own[2 * half + 1]));
      }
      largest[0][half] = fmaxf(largest[0][half], most * scales.ofRun(run, half));
    }
  }
  return raiseRowMax<K::kIsAnchored>(rows, largest, 1.f, factor);
}

// What the scores and the values of an item are multiplied by, which elements may have factors for: ofTile gives that of a
// tile, which change() may do to the scores before masks and chains see them. `of` has ownItem().
template <class K, bool AreScaled, bool HasBlocks> class ItemScales {
  using Params = ParamsOf<K>;

public:
  template <class Of> DEV void find(const Params &, const Of &) {}
  DEV float ofScores(const Params &p) const { return p.scaleLog2; }
  template <class Of> DEV float ofValues(const Params &, const Of &) const { return 1.f; }
  template <class Of> DEV float ofTile(const Params &p, const Of &, const KeyTileHeader<K> &) const {
    return weightScale<K>(ofScores(p));
  }
  template <class Of> DEV void change(Scores<K> &, float, const Params &, const Of &, const KeyTileHeader<K> &) const {}
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
  template <class Of> DEV float ofTile(const Params &p, const Of &, const KeyTileHeader<K> &) const {
    return weightScale<K>(ofScores(p));
  }
  template <class Of> DEV void change(Scores<K> &, float, const Params &, const Of &, const KeyTileHeader<K> &) const {}

private:
  float scaleLog2;
};
// Where blocks of rows of q and k have factors of their own: rows of an item, and keys of a tile, may lie at a stride, so each
// row keeps its factor, and keys at a stride find theirs one by one. Runs of keys share one, which costs nothing for each
// score: it goes into what scores are multiplied by on their way to weights.
template <class K> class ItemScales<K, true, true> {
  using Params = ParamsOf<K>;
  using Pattern = typename K::Pattern;
  using Runs = ScaleRuns<K>;

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
  template <class Of> DEV TileScales<K> ofTile(const Params &p, const Of &of, const KeyTileHeader<K> &tile) const {
    const WorkItem<K> item = of.ownItem();
    const float all = Pattern::kHasScore ? 1.f : p.scaleLog2;
    const bool isStrided = isStridedFor(p, item, tile);
    const float *const ofKeys = isStrided ? nullptr : factorsOfKeys(p, item);
    TileScales<K> scales;
#pragma unroll
    for (int run = 0; run < Runs::kCount; ++run) {
      const float ofRun = all * factorOf(ofKeys, tile.firstKey + run * Runs::kKeys, p.seqlenK);
      scales.ofKeys[run] = isStrided ? all : ofRun;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
      scales.ofRows[half] = isStrided ? 1.f : ofRow[half];
    return scales;
  }
  template <class Of>
  DEV void change(Scores<K> &scores, TileScales<K> &scales, const Params &p, const Of &of,
                  const KeyTileHeader<K> &tile) const {
    if constexpr (kKeysMayBeStrided<K>) {
      const WorkItem<K> item = of.ownItem();
      if (isStridedFor(p, item, tile))
        scaleKeys(scores, factorsOfKeys(p, item), tile.firstKey, rateOf(item, tile), p.seqlenK);
    }
    if constexpr (Pattern::kHasScore)
      scaleRuns(scores, scales);
  }

private:
  DEV static int32_t blocksOf(int32_t rows) { return (rows + K::kScaleRows - 1) / K::kScaleRows; }
  DEV static int32_t rateOf(const WorkItem<K> &item, const KeyTileHeader<K> &tile) {
    return Pattern::keyRate(item.variant, Pattern::kBranchCount == 1 ? 0 : tile.flags >> flag::kBranch);
  }
  // Whether each key finds its factor.
  DEV static bool isStridedFor(const Params &p, const WorkItem<K> &item, const KeyTileHeader<K> &tile) {
    return kKeysMayBeStrided<K> && p.descaleK && rateOf(item, tile) > 1;
  }
  // Of the item's kv head; null: all are 1.
  DEV static const float *factorsOfKeys(const Params &p, const WorkItem<K> &item) {
    const int64_t first = static_cast<int64_t>(item.batch * p.kvHeads + item.kvHead) * blocksOf(p.seqlenK);
    return p.descaleK ? p.descaleK + first : nullptr;
  }
  DEV static float factorOf(const float *ofKeys, int32_t key, int32_t keys) {
    return ofKeys ? ofKeys[min(key, keys - 1) / K::kScaleRows] : 1.f;
  }

  DEV void scaleKeys(Scores<K> &scores, const float *ofKeys, int32_t firstKey, int32_t rate, int32_t keys) const {
    const uint32_t first = firstKey + rate * (ptx::rereadThreadIndex() % 4 * 2), last = keys - 1;
#pragma unroll
    for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float ofKey = ofKeys[min(first + rate * (8 * n + e), last) / K::kScaleRows];
#pragma unroll
        for (int half = 0; half < 2; ++half)
          scores[0][n][2 * half + e] *= ofRow[half] * ofKey;
      }
  }

  // What a chain makes of scores is in natural units.
  DEV static void scaleRuns(Scores<K> &scores, TileScales<K> &scales) {
#pragma unroll
    for (int n = 0; n < K::kScoreTiles; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        scores[0][n][slot] *= scaleOf(scales, n, slot / 2);
#pragma unroll
    for (int run = 0; run < Runs::kCount; ++run)
      scales.ofKeys[run] = kLog2OfE;
    scales.ofRows[0] = scales.ofRows[1] = 1.f;
  }

  float ofRow[2];
};

} // namespace heddle
