// A matrix of ranks: one hue from light to dark, so that lightness alone tells the classes apart; below it what ranks do when.
// Places follow from the text, as in PictureSvg.cpp.
#include "compiler/Views/Colours.h"
#include "compiler/Views/ExplanationPrint.h"
#include "compiler/Views/Picture.h"
#include "compiler/Views/RingTimeline.h"
#include "compiler/Views/SvgText.h"
#include "runtime/Core/CountText.h"

namespace heddle::views {
namespace {

constexpr double kContent = 560, kLine = 15, kSwatch = 12;
constexpr size_t kMostCells = 64; ///< on a side; more ranks share cells

/// How much of the keys of a rank travels to another.
struct Share {
  double upTo;
  const char *fill, *words;
};
constexpr Share kShares[] = {
    {0, kWhite, "nothing"},         {0.01, kBlues[0], "up to 1% of the keys"}, {0.1, kBlues[1], "up to 10%"},
    {0.5, kBlues[2], "up to half"}, {0.999999, kBlues[3], "more than half"},   {1, kBlues[4], "all keys"}};
constexpr const char *kOwn = kGreys[0], *kTeam = kRed;

class MatrixWriter : SvgPage {
public:
  MatrixWriter(const PatternFile &file, const RingRequest &request, const RingPlan &ring)
      : SvgPage(kContent), file(file), request(request), ring(ring), ranks(ring.plan->ranks()),
        perCell((ranks + kMostCells - 1) / kMostCells), cells((ranks + perCell - 1) / perCell),
        side(double(std::max<size_t>(512 / cells, 8))) {}

  std::string write() {
    const std::string title = "Keys that travel: " + titleOf(file, request.sizes);
    double y = paragraph(16, kTitleSize, title, kBold) + 2;
    y = paragraph(y, kTextSize, ringWords(request, ring) + ". " + scaleWords(), kMuted);
    y = paragraph(y + 8, kTextSize, "keys of rank 0 to " + std::to_string(ranks - 1) + " \u2192");
    y = matrix(y + 4);
    y = paragraph(y + 4, kTextSize, "queries of rank 0 to " + std::to_string(ranks - 1) + " \u2193");
    y = legend(y + 8);
    y = drawTimeline(*this, y + 8, kContent, ring);
    return document(title, y + 12);
  }

private:
  std::string scaleWords() const {
    WideInt bytes = ring.plan->travelling() * request.call.bytesOfKey();
    return bytesText(static_cast<double>(bytes)) + " of k and v in all" +
           (perCell > 1 ? "; one cell is the mean of " + grouped(perCell) + " x " + grouped(perCell) + " ranks" : "");
  }

  void square(double x, double y, double size, const std::string &fill, const std::string &title = "") {
    rect({x, y, size}, size, "fill=\"" + fill + "\" stroke=\"#888888\" stroke-width=\"0.5\"", title);
  }

  double matrix(double top) {
    for (size_t row = 0; row < cells; ++row)
      for (size_t column = 0; column < cells; ++column)
        cell(row, column, top);
    teams(top);
    return top + double(cells) * side;
  }

  /// Outlines, where they are of whole cells.
  bool areShown() const { return ring.headRanks() > 1 && size_t(ring.headRanks()) % perCell == 0; }
  void teams(double top) {
    const double size = side * double(ring.headRanks()) / double(perCell);
    for (size_t rank = 0; areShown() && rank < ranks; rank += size_t(ring.headRanks())) {
      const double at = side * double(rank / perCell);
      outline(kMargin + at, top + at, size);
    }
  }
  void outline(double x, double y, double size) {
    rect({x, y, size}, size, std::string("fill=\"none\" stroke=\"") + kTeam + "\" stroke-width=\"2\"", "");
  }

  void cell(size_t row, size_t column, double top) {
    double share = 0;
    size_t pairs = 0;
    for (size_t rank = row * perCell; rank < std::min(ranks, (row + 1) * perCell); ++rank)
      for (size_t peer = column * perCell; peer < std::min(ranks, (column + 1) * perCell); ++peer)
        if (rank != peer) {
          share += double(ring.plan->step(rank, peer).columns) / double(ring.layout.rowsOf(peer));
          ++pairs;
        }
    const double x = kMargin + double(column) * side, y = top + double(row) * side;
    if (pairs == 0)
      return square(x, y, side, kOwn);
    std::string words;
    if (perCell == 1 && share > 0)
      words = "rank " + std::to_string(row) + " takes " + counted(ring.plan->step(row, column).columns, "key") +
              " of rank " + std::to_string(column) + ", " + bytesText(bytesOf(row, column));
    square(x, y, side, fillOf(share / double(pairs)), words);
  }

  double bytesOf(size_t rank, size_t peer) const {
    return static_cast<double>(ring.plan->step(rank, peer).headColumns * request.call.bytesOfKey());
  }

  static std::string fillOf(double share) {
    for (const Share &of : kShares)
      if (share <= of.upTo)
        return of.fill;
    return std::end(kShares)[-1].fill;
  }

  double legend(double y) {
    auto entry = [&](const char *fill, const char *words) {
      square(kMargin, y, kSwatch, fill);
      label(kMargin + kSwatch + 6, y + kSwatch - 2, kTextSize, words);
      y += kLine + 2;
    };
    for (const Share &share : kShares)
      entry(share.fill, share.words);
    entry(kOwn, "a rank's own keys");
    if (areShown()) {
      outline(kMargin, y, kSwatch);
      label(kMargin + kSwatch + 6, y + kSwatch - 2, kTextSize,
            "a team: its ranks exchange heads, and ask other teams for these alone");
      y += kLine + 2;
    }
    return y;
  }

  using WideInt = attn::WideInt;
  const PatternFile &file;
  const RingRequest &request;
  const RingPlan &ring;
  size_t ranks, perCell, cells;
  double side;
};

} // namespace

std::string ringSvg(const PatternFile &file, const RingRequest &request, const RingPlan &ring) {
  return MatrixWriter(file, request, ring).write();
}

} // namespace heddle::views
