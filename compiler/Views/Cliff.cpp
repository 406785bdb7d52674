#include "compiler/Views/Cliff.h"
#include "compiler/Views/CliffCauses.h"
#include "compiler/Views/PieceWords.h"
#include "dialect/Geometry/Lattice.h"
#include "runtime/Core/CountText.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace heddle::views {

using namespace heddle::attn;

namespace {

/// Tiles of half the size are counted down to this.
constexpr int64_t kLeastTile = 32;

/// What smaller tiles visit is said where it is at most so much of what was visited.
constexpr double kWorthSaying = 0.9;

/// What a branch visits for one of its pieces; of more than kMaxPieces the last ones go together.
struct Part {
  size_t variant, branch, piece;
  PieceList pieces;
  int64_t head = 0; ///< the first that takes the variant
  WideInt visited = 0;
  std::optional<WideInt> kept = {};
};

class Search {
public:
  Search(const PatternAnalysis &analysis, const ProblemSizes &sizes, TileShape tile, WideInt keptPairs,
         double visitedPairs)
      : analysis(analysis), sizes(sizes), tile(tile), keptPairs(keptPairs), area(WideInt(tile.rows) * tile.columns),
        visitedPairs(visitedPairs) {}

  /// None if no tile is visited for any piece.
  std::optional<Cliff> run() {
    collect();
    shareUnknown();
    const auto worst = std::max_element(parts.begin(), parts.end(), [&](const Part &a, const Part &b) {
      return a.visited * area - *a.kept < b.visited * area - *b.kept;
    });
    if (worst == parts.end() || worst->visited == 0)
      return std::nullopt;
    const CauseShare share = causeOf(*worst);
    const CauseWords &words = wordsOf(share.cause);
    Cliff cliff{words.name, where(*worst) + share.detail, words.advice, {}, worst->branch};
    cliff.advice += halved();
    return cliff;
  }

private:
  RowRateLimits limits() const { return rowRateLimits(analysis.variants.size()); }

  void collect() {
    std::vector<int64_t> firstHead(analysis.variants.size(), -1);
    for (const HeadGroup &alike : headGroups(analysis, sizes))
      if (int64_t &head = firstHead[alike.variant]; head < 0 || alike.first < head)
        head = alike.first;
    for (size_t v = 0; v < analysis.variants.size(); ++v)
      for (size_t b = 0; firstHead[v] >= 0 && b < analysis.variants[v].branches.size(); ++b) {
        const PieceList &pieces = analysis.variants[v].branches[b];
        const size_t count = analysis.variants[v].forward.branches[b].pieces.size();
        for (size_t p = 0; p < count; ++p) {
          const auto first = pieces.begin() + p;
          parts.push_back({v, b, p, PieceList(first, p + 1 == count ? pieces.end() : first + 1), firstHead[v]});
        }
      }
    for (Part &part : parts)
      count(part);
  }

  /// The pattern with these pieces alone, walked as `ranges`.
  PatternAnalysis only(const Part &part, VariantRanges forward, VariantRanges transposed) const {
    PatternAnalysis alone{{}, analysis.variantOfHead, analysis.maskTensors};
    for (const Variant &variant : analysis.variants)
      alone.variants.push_back({variant.groupOfCount, {}, {}, {}});
    Variant &variant = alone.variants[part.variant];
    variant.branches = {part.pieces};
    variant.forward = std::move(forward);
    variant.transposed = std::move(transposed);
    return alone;
  }

  VariantRanges walked(const Part &part, Direction direction) const {
    const VariantRanges &whole = analysis.variants[part.variant].ranges(direction);
    VariantRanges ranges{whole.rowRate, {whole.branches[part.branch]}};
    ranges.branches[0].pieces = {whole.branches[part.branch].pieces[part.piece]};
    return ranges;
  }

  ProblemSizes bounded() const {
    ProblemSizes result = sizes;
    result.mostEvaluations = std::max<int64_t>(1, sizes.mostEvaluations / int64_t(2 * parts.size()));
    return result;
  }

  void count(Part &part) const {
    const PatternAnalysis alone = only(part, walked(part, Direction::Forward), walked(part, Direction::Transposed));
    const ProblemSizes most = bounded();
    part.visited = countTiles(alone, most, tile, Direction::Forward).visited;
    part.kept = countPairs(alone, most);
  }

  /// Pieces whose pairs have no closed form keep what the others leave, by the tiles that they visit.
  void shareUnknown() {
    WideInt rest = keptPairs, visited = 0;
    for (const Part &part : parts) {
      rest -= part.kept.value_or(0);
      visited += part.kept ? 0 : part.visited;
    }
    rest = std::max<WideInt>(rest, 0);
    for (Part &part : parts)
      if (!part.kept)
        part.kept = visited == 0 ? 0 : WideInt(double(rest) * double(part.visited) / double(visited));
  }

  CauseShare causeOf(const Part &part) const {
    const Piece &piece = part.pieces.front();
    const VariantRanges own = buildRanges({part.pieces}, Direction::Forward, limits());
    CauseShare least = leastFill(piece, sizes, part.head, {tile, own.rowRate, own.branches[0].columnRate});
    auto consider = [&](CliffCause cause, double fill, const std::string &detail) {
      if (fill < least.fill)
        least = {cause, fill, detail};
    };
    considerMasked(part, least.fill, consider);
    considerRows(part, consider);
    considerOwnLattice(part, own, consider);
    return least;
  }

  /// What is asked pair by pair leaves what nothing else explains: `fill` is what the rest does.
  template <class Consider> void considerMasked(const Part &part, double fill, const Consider &consider) const {
    const Piece &piece = part.pieces.front();
    const double left = double(*part.kept) / (double(part.visited) * double(area)) / fill;
    if (part.pieces.size() > 1) {
      const size_t count = analysis.variants[part.variant].branches[part.branch].size();
      consider(CliffCause::pieces, left,
               std::to_string(count) + " pieces, of which at most " + std::to_string(kMaxPieces) +
                   " are kept apart: the last " + std::to_string(part.pieces.size()) +
                   " are one, with all that lies between them");
    } else if (const std::string why = whyMasked(piece, Direction::Forward); !why.empty()) {
      consider(piece.masked ? CliffCause::masked : CliffCause::keyLattice, left, why);
    }
  }

  /// Classes of rows that are not told apart.
  template <class Consider> void considerRows(const Part &part, const Consider &consider) const {
    const int64_t made = analysis.variants[part.variant].forward.rowRate;
    const int64_t rate = rowRate(part.pieces), kept = std::gcd(rate, made);
    if (kept < rate)
      consider(CliffCause::rowLattice, double(kept) / double(rate),
               "rows on a lattice of rate " + std::to_string(rate) + ", split into " + counted(made, "class"));
  }

  /// What the lattices of other pieces and branches cost: the same pieces, walked by themselves.
  template <class Consider>
  void considerOwnLattice(const Part &part, const VariantRanges &own, const Consider &consider) const {
    const VariantRanges &whole = analysis.variants[part.variant].forward;
    const int64_t columnRate = own.branches[0].columnRate, walkedRate = whole.branches[part.branch].columnRate;
    if (own.rowRate == whole.rowRate && columnRate == walkedRate)
      return;
    const PatternAnalysis alone = only(part, own, buildRanges({part.pieces}, Direction::Transposed, limits()));
    const TileCounts tiles = countTiles(alone, bounded(), tile, Direction::Forward);
    if (tiles.isBound)
      return;
    const double fill = double(tiles.visited) / double(part.visited);
    const double ofRows = double(whole.rowRate) / double(own.rowRate), ofKeys = double(columnRate) / double(walkedRate);
    const std::string at = " in tiles of " + std::to_string(tile.rows) + " x " + std::to_string(tile.columns);
    if (ofRows >= ofKeys)
      consider(CliffCause::commonLattice, fill,
               "rows at stride " + std::to_string(own.rowRate) + " walked at the common stride " +
                   std::to_string(whole.rowRate) + at);
    else
      consider(CliffCause::keyStride, fill,
               "keys at stride " + std::to_string(columnRate) + " walked at stride " + std::to_string(walkedRate) + at);
  }

  /// "head group 1, branch 0, piece 2: ", as far as there are several.
  std::string where(const Part &part) const {
    const Variant &variant = analysis.variants[part.variant];
    std::string text;
    auto add = [&](size_t of, const char *what, size_t index) {
      if (of > 1)
        text += (text.empty() ? "" : ", ") + std::string(what) + " " + std::to_string(index);
    };
    add(analysis.variants.size(), "head group", part.variant);
    add(variant.branches.size(), "branch", part.branch);
    add(variant.branches[part.branch].size(), "piece", part.piece);
    return text.empty() ? text : text + ": ";
  }

  /// What the whole pattern visits in tiles of half the size, where that helps.
  std::string halved() const {
    const TileShape half{tile.rows / 2, tile.columns / 2};
    if (half.rows < kLeastTile || half.columns < kLeastTile || keptPairs == 0)
      return "";
    const TileCounts counts = countTiles(analysis, sizes, half, Direction::Forward);
    const double inHalves = double(counts.visited) * double(half.rows) * double(half.columns);
    if (counts.isBound || inHalves > kWorthSaying * visitedPairs)
      return "";
    return "; " + std::to_string(half.rows) + " x " + std::to_string(half.columns) + ": " +
           timesText(inHalves / double(keptPairs));
  }

  const PatternAnalysis &analysis;
  const ProblemSizes &sizes;
  TileShape tile;
  WideInt keptPairs, area;
  double visitedPairs; ///< in the tiles of the whole pattern
  std::vector<Part> parts;
};

} // namespace

std::optional<Cliff> cliffOf(const PatternAnalysis &analysis, const ProblemSizes &sizes, TileShape tile,
                             WideInt keptPairs, const TileCounts &visited) {
  const double inTiles = double(visited.visited) * double(tile.rows) * double(tile.columns);
  if (visited.isBound || inTiles == 0 || double(keptPairs) >= kCliffEfficiency * inTiles)
    return std::nullopt;
  std::optional<Cliff> cliff = Search(analysis, sizes, tile, keptPairs, inTiles).run();
  if (cliff && keptPairs > 0)
    cliff->factor = inTiles / double(keptPairs);
  return cliff;
}

std::string timesText(double factor) {
  char times[48];
  std::snprintf(times, sizeof times, "%.1f", factor);
  return (factor < 100 ? times : grouped(CountedNumber(std::llround(factor)))) + std::string(" times");
}

std::string inWords(const Cliff &cliff) {
  return (cliff.factor ? timesText(*cliff.factor) + " the tiles that the kept pairs fill"
                       : std::string("tiles are visited and no pair is kept")) +
         " (" + cliff.cause + "): " + cliff.detail + "; helps: " + cliff.advice;
}

} // namespace heddle::views
