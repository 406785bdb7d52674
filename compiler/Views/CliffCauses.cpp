#include "compiler/Views/CliffCauses.h"
#include "compiler/Views/PieceWords.h"
#include "runtime/Core/CountText.h"

#include <algorithm>
#include <cmath>

namespace heddle::views {

using namespace heddle::attn;

const CauseWords &wordsOf(CliffCause cause) {
  static const CauseWords table[] = {
      {"masked", "the words of the language (segment, window, dilate, blocks, csr), by which tiles are skipped"},
      {"pieces", "fewer masks in one `or`, or `lse` of masks that never meet"},
      {"row_lattice", "rates with a smaller common multiple"},
      {"common_lattice",
       "rates with a smaller common multiple, or a kernel for each lattice (`lse` branches, `chained_mib`)"},
      {"key_lattice", "one rate for the keys of a branch, the same in every segment (`and` of segment and stride)"},
      {"key_stride", "an `lse` branch for each rate, of masks that never meet, or rates that divide each other"},
      {"segments", "longer segments, or smaller tiles (`heddle tune`)"},
      {"documents", "longer documents, packed tiles, or smaller tiles (`heddle tune`)"},
      {"blocks", "blocks of a tile's size, or smaller tiles (`heddle tune`)"},
      {"single_keys", "lists of whole blocks (attn.blocks around them)"},
      {"band", "a wider band, or smaller tiles (`heddle tune`)"},
      {"box", "as many as a tile holds, or smaller tiles (`heddle tune`)"},
      {"queries", "more queries in a call, or tiles of fewer queries (`heddle tune`)"},
      {"keys", "longer sequences, or tiles of fewer keys (`heddle tune`)"},
      {"borders", "borders at multiples of a tile, or smaller tiles (`heddle tune`)"},
  };
  return table[int(cause)];
}

std::string TileLattice::inWords() const {
  std::string text = "tiles of " + std::to_string(tile.rows) + " x " + std::to_string(tile.columns);
  if (rowRate > 1 || columnRate > 1)
    text += " at strides " + std::to_string(rowRate) + " x " + std::to_string(columnRate);
  return text;
}

namespace {

/// How full tiles are along an axis that cells of this length fill.
double fillOf(double length, double tile) {
  const bool isAligned = std::fmod(length, tile) == 0 || std::fmod(tile, length) == 0;
  return isAligned ? std::min(1.0, length / tile) : length / (length + tile);
}

class Shares {
public:
  Shares(const ProblemSizes &sizes, int64_t head, const TileLattice &tiles) : sizes(sizes), head(head), tiles(tiles) {}

  CauseShare of(const Piece &piece) {
    for (const CellLoop &loop : piece.cells)
      loop.isEven() ? segments(loop) : documents(loop);
    for (const CellBand &band : piece.bands)
      blocksBeside(band);
    strided(piece);
    if (piece.list)
      listed(*piece.list);
    diagonal(piece.diagonal);
    sequences();
    box(CliffCause::queries, piece.q, sizes.qOrigin, sizes.seqlenQ, tiles.rows());
    box(CliffCause::keys, piece.k, sizes.kOrigin, sizes.seqlenK, tiles.columns());
    return least;
  }

private:
  void consider(CliffCause cause, double fill, const std::string &what) {
    if (fill > 0 && fill < least.fill)
      least = {cause, fill, what + " in " + tiles.inWords()};
  }

  double inBoth(double length) const { return std::min(fillOf(length, tiles.rows()), fillOf(length, tiles.columns())); }

  void segments(const CellLoop &loop) {
    if (const auto span = valueOf(loop.span, sizes, head); span && *span > 0)
      consider(CliffCause::segments, inBoth(double(*span)), "segments of " + counted(*span, "token"));
  }

  /// By their mean length.
  void documents(const CellLoop &loop) {
    const auto count = valueOf(loop.count, sizes, head);
    if (!count || *count < 1)
      return;
    const int64_t mean = std::max<int64_t>(1, std::min(sizes.seqlenQ, sizes.seqlenK) / *count);
    consider(CliffCause::documents, inBoth(double(mean)), "documents of " + counted(mean, "token") + " on average");
  }

  void blocksBeside(const CellBand &band) {
    if (!band.loop.isEven())
      return;
    const auto span = valueOf(band.loop.span, sizes, head), lower = valueOf(band.steps.lower, sizes, head),
               upper = valueOf(band.steps.upper, sizes, head);
    if (!span || !lower || !upper || *span < 1 || *lower > *upper)
      return;
    const double width = double(*upper - *lower + 1) * double(*span);
    const double reached = width + std::max(0.0, tiles.rows() - double(*span));
    consider(CliffCause::band, width / std::max(reached, tiles.columns()),
             "a band of " + counted(*upper - *lower + 1, "block") + " of " + counted(*span, "token"));
  }

  /// Blocks in a residue class, of queries and of keys.
  void strided(const Piece &piece) {
    for (const auto &[classes, side] : {std::pair(&piece.qCells, tiles.rows()), {&piece.kCells, tiles.columns()}})
      for (const CellClass &cells : *classes)
        if (const auto span = valueOf(cells.loop.span, sizes, head); span && *span > 0)
          consider(CliffCause::blocks, fillOf(double(*span), side),
                   "blocks of " + counted(*span, "token") + ", one of " + std::to_string(cells.modulus) + ",");
  }

  void listed(const CellList &list) {
    const auto span = valueOf(list.loop.span, sizes, head);
    if (!span || *span < 1)
      return;
    const double inRows = list.rule->dependsOnRow() ? fillOf(double(*span), tiles.rows()) : 1;
    const double fill = inRows * fillOf(double(*span), tiles.columns());
    if (*span == 1)
      consider(CliffCause::singleKeys, fill, "listed single keys");
    else
      consider(CliffCause::blocks, fill, "listed blocks of " + counted(*span, "token"));
  }

  /// A tile of rows reaches all that its first and its last row do.
  void diagonal(const Interval &band) {
    const auto lower = valueOf(band.lower, sizes, head), upper = valueOf(band.upper, sizes, head);
    if (!lower || !upper || *lower > *upper)
      return;
    const double width = double(*upper - *lower) + 1;
    consider(CliffCause::band, width / (width + tiles.rows()),
             "a band " + counted(*upper - *lower + 1, "key") + " wide");
  }

  void sequences() {
    if (sizes.seqlenQ < 1 || sizes.seqlenK < 1)
      return;
    const int64_t queryTiles = countRowTiles(sizes.seqlenQ, tiles.rowRate, tiles.tile.rows);
    consider(CliffCause::queries, double(sizes.seqlenQ) / (double(queryTiles) * double(tiles.tile.rows)),
             counted(sizes.seqlenQ, "query"));
    const double keyTiles = std::ceil(double(sizes.seqlenK) / tiles.columns());
    consider(CliffCause::keys, double(sizes.seqlenK) / (keyTiles * tiles.columns()), counted(sizes.seqlenK, "key"));
  }

  /// What the piece bounds itself, not the sequence.
  void box(CliffCause axis, const Interval &bounds, int64_t origin, int64_t length, double side) {
    int64_t first = origin, last = origin + length - 1;
    for (const IntExpr &term : lowerTerms(bounds))
      first = std::max(first, valueOf(term, sizes, head).value_or(first));
    for (const IntExpr &term : upperTerms(bounds))
      last = std::min(last, valueOf(term, sizes, head).value_or(last));
    const int64_t width = last - first + 1;
    if (width > 0 && width < length)
      consider(CliffCause::box, fillOf(double(width), side),
               counted(width, axis == CliffCause::queries ? "query" : "key") + " of " + grouped(length));
  }

  const ProblemSizes &sizes;
  int64_t head;
  const TileLattice &tiles;
  CauseShare least;
};

} // namespace

CauseShare leastFill(const Piece &piece, const ProblemSizes &sizes, int64_t head, const TileLattice &tiles) {
  CauseShare least = Shares(sizes, head, tiles).of(piece);
  if (least.detail.empty())
    least.detail = "borders of what is kept in " + tiles.inWords();
  return least;
}

} // namespace heddle::views
