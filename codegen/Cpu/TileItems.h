// Owns the list of tiles that threads take: of every head of every batch element, each residue class of its rows in
// tiles. Sizes are those of queries, or of keys where those are rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace heddle {

/// Where a tile lies: rows rho + rate * (first + m), m < rows, of head number `head` of `batch`. A class may have fewer
/// rows than the longest one, so a tile can be empty.
struct TilePlace {
  int32_t batch, head, rate, rho, first, rows;
  int32_t rowIndex(int32_t m) const { return rho + rate * (first + m); }
};

class TileItems {
public:
  TileItems(int64_t rowCount, int32_t block) : rowCount(rowCount), block(block) {}

  /// Appends the tiles of one head.
  void add(int32_t batch, int32_t head, int32_t rate) {
    const int64_t tiles = ceilDiv(ceilDiv(rowCount, rate), block);
    heads.push_back({batch, head, rate, total});
    total += rate * tiles;
  }
  int64_t count() const { return total; }

  /// The last tiles of a head come first: they are the long ones of a causal pattern.
  TilePlace placeOf(int64_t item) const {
    auto after = std::upper_bound(heads.begin(), heads.end(), item,
                                  [](int64_t wanted, const Head &head) { return wanted < head.firstItem; });
    const Head &of = *std::prev(after);
    const int64_t end = after == heads.end() ? total : after->firstItem, local = end - 1 - item;
    const int32_t rho = int32_t(local % of.rate), first = int32_t(local / of.rate * block);
    const int64_t rowsOfClass = std::max<int64_t>(rowCount - rho + of.rate - 1, 0) / of.rate;
    return {of.batch, of.head, of.rate, rho, first, int32_t(std::min<int64_t>(block, rowsOfClass - first))};
  }

private:
  static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
  struct Head {
    int32_t batch, head, rate;
    int64_t firstItem;
  };
  std::vector<Head> heads;
  int64_t rowCount, total = 0;
  int32_t block;
};

} // namespace heddle
