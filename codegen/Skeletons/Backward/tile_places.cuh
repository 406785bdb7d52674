// Where the scores of a lane lie in a tile: rows are keys and columns queries, or the other way.
#pragma once

#include "Backward/tile_scores.cuh"
#include "Backward/walk_items.cuh"

namespace heddle {

// A lane's keys are firstKey and firstKey + 8 * keyRate, its queries 8 n and 8 n + 1 from the first.
template <class K> struct TilePlace {
  using Kernel = K;
  using Pattern = typename K::Pattern;
  using Functions = typename Pattern::Transposed;
  typename Pattern::Context context;
  int32_t variant, branch, queryRate, keyRate;
  int32_t firstKey, lastKey; // rows of k; lastKey is the item's
  int32_t firstColumn;       // position of the lane's first query
  DEV TilePlace(const ParamsOf<K> &p, const KeyItem<K> &item, const QueryTile &tile, int32_t firstKey)
      : context(makeContext(p, item.batch, tile.head)), variant(Pattern::variant(context)),
        branch(Pattern::kBranchCount == 1 ? 0 : tile.branch()), queryRate(Functions::queryRate(variant, branch)),
        keyRate(item.rate), firstKey(firstKey), lastKey(item.last) {
    firstColumn = p.qOrigin + tile.firstRow + queryRate * static_cast<int32_t>(threadIdx.x % 4 * 2);
  }
  DEV int32_t key(int half) const { return firstKey + keyRate * half * 8; }
  DEV bool rowExists(int half) const { return key(half) <= lastKey; }
  DEV int32_t rowPosition(int half) const { return context.kOrigin + key(half); }
  DEV int32_t keyPosition(int, int slot) const { return rowPosition(slot / 2); }
  DEV int32_t queryPosition(int n, int slot) const { return firstColumn + queryRate * (n * 8 + slot % 2); }
  DEV bool columnExists(int n, int slot) const { return queryPosition(n, slot) - context.qOrigin < context.seqlenQ; }
  DEV int32_t document(int n, int slot) const { return Pattern::scoreDocument(context, queryPosition(n, slot)); }
  DEV ScoreDocuments documents(int n) const {
    const int32_t first = document(n, 0), second = document(n, 1);
    return {{first, second, first, second}};
  }
};

// A lane's queries are firstRow and firstRow + 8 * queryRate, its keys 8 n and 8 n + 1 from the first.
template <class K> struct QueryPlace {
  using Kernel = K;
  using Pattern = typename K::Pattern;
  using Functions = Pattern;
  typename Pattern::Context context;
  int32_t variant, branch, queryRate, keyRate;
  int32_t firstRow, lastRow;
  int32_t firstColumn; // position of the lane's first key
  int32_t rowDocuments[2];
  DEV QueryPlace(const ParamsOf<K> &p, const QueryItem<K> &item, const QueryTile &tile, int32_t firstRow)
      : context(makeContext(p, item.batch, item.head)), variant(item.variant),
        branch(Pattern::kBranchCount == 1 ? 0 : tile.branch()), queryRate(item.rate),
        keyRate(Pattern::keyRate(variant, branch)), firstRow(firstRow), lastRow(item.last) {
    firstColumn = p.kOrigin + tile.firstRow + keyRate * static_cast<int32_t>(threadIdx.x % 4 * 2);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rowDocuments[half] = Pattern::scoreDocument(context, rowPosition(half));
  }
  DEV int32_t row(int half) const { return firstRow + queryRate * half * 8; }
  DEV bool rowExists(int half) const { return row(half) <= lastRow; }
  DEV int32_t rowPosition(int half) const { return context.qOrigin + row(half); }
  DEV int32_t queryPosition(int, int slot) const { return rowPosition(slot / 2); }
  DEV int32_t keyPosition(int n, int slot) const { return firstColumn + keyRate * (n * 8 + slot % 2); }
  DEV bool columnExists(int n, int slot) const { return keyPosition(n, slot) - context.kOrigin < context.seqlenK; }
  DEV int32_t document(int, int slot) const { return rowDocuments[slot / 2]; }
  DEV ScoreDocuments documents(int) const {
    return {{rowDocuments[0], rowDocuments[0], rowDocuments[1], rowDocuments[1]}};
  }
};

} // namespace heddle
