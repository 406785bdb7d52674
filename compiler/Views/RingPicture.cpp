//===- RingPicture.cpp - who asks whom for keys, as SVG -------------------===//
// A matrix of ranks: one hue from light to dark, so that lightness alone tells the classes apart. Places follow from the
// text, as in PictureSvg.cpp.
//===----------------------------------------------------------------------===//
#include "compiler/Views/ExplanationPrint.h"
#include "compiler/Views/Picture.h"
#include "compiler/Views/RingPlan.h"
#include "compiler/Views/SvgText.h"
#include "runtime/Core/CountText.h"

namespace heddle::views {
namespace {

constexpr int kMargin = 24, kContent = 560, kTitleSize = 16, kTextSize = 11, kLine = 15, kSwatch = 12;
constexpr size_t kMostCells = 64; ///< on a side; more ranks share cells

/// How much of the keys of a rank travels to another.
struct Share {
  double upTo;
  const char *fill, *words;
};
constexpr Share kShares[] = {
    {0, "#ffffff", "nothing"},      {0.01, "#dbe9f6", "up to 1% of the keys"}, {0.1, "#a9cfe5", "up to 10%"},
    {0.5, "#5ba3d0", "up to half"}, {0.999999, "#2070b4", "more than half"},   {1, "#08306b", "all keys"}};
constexpr const char *kOwn = "#d8d8d8";

class MatrixWriter {
public:
  MatrixWriter(const PatternFile &file, const RingRequest &request, const RingPlan &ring)
      : file(file), request(request), ring(ring), ranks(ring.plan->ranks()),
        perCell((ranks + kMostCells - 1) / kMostCells), cells((ranks + perCell - 1) / perCell),
        side(std::max<int>(int(512 / cells), 8)) {}

  std::string write() {
    const std::string title = "Keys that travel: " + titleOf(file, request.sizes);
    int y = paragraph(16, kTitleSize, title, " font-weight=\"bold\"") + 2;
    y = paragraph(y, kTextSize, ringWords(request, ring) + ". " + scaleWords(), " fill=\"#555555\"");
    y = paragraph(y + 8, kTextSize, "keys of rank 0 to " + std::to_string(ranks - 1) + " \u2192");
    y = matrix(y + 4);
    y = paragraph(y + 4, kTextSize, "queries of rank 0 to " + std::to_string(ranks - 1) + " \u2193");
    y = legend(y + 8);
    const std::string width = std::to_string(kContent + 2 * kMargin), height = std::to_string(y + 12);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + width + " " + height + "\" width=\"" + width +
           "\" height=\"" + height + "\" font-family=\"" + kFontFamily + "\" fill=\"#222222\">\n<title>" +
           escapeXml(title) + "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + text + "</svg>\n";
  }

private:
  std::string scaleWords() const {
    WideInt bytes = ring.plan->travelling() * request.call.bytesOfKey();
    return bytesText(static_cast<double>(bytes)) + " of k and v in all" +
           (perCell > 1 ? "; one cell is the mean of " + grouped(perCell) + " x " + grouped(perCell) + " ranks" : "");
  }

  void label(int x, int baseline, int size, const std::string &words, const std::string &more = "") {
    text += "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(baseline) + "\" font-size=\"" +
            std::to_string(size) + "\"" + more + ">" + escapeXml(words) + "</text>\n";
  }

  /// Lines below the top; where they end.
  int paragraph(int top, int size, const std::string &words, const std::string &more = "") {
    for (const std::string &line : wrapText(words, size, kContent)) {
      label(kMargin, top + size, size, line, more);
      top += size + 4;
    }
    return top;
  }

  void rect(int x, int y, int size, const std::string &fill, const std::string &title = "") {
    text += "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" + std::to_string(size) +
            "\" height=\"" + std::to_string(size) + "\" fill=\"" + fill + "\" stroke=\"#888888\" stroke-width=\"0.5\"" +
            (title.empty() ? "/>\n" : "><title>" + escapeXml(title) + "</title></rect>\n");
  }

  int matrix(int top) {
    for (size_t row = 0; row < cells; ++row)
      for (size_t column = 0; column < cells; ++column)
        cell(row, column, top);
    return top + int(cells) * side;
  }

  void cell(size_t row, size_t column, int top) {
    double share = 0;
    size_t pairs = 0;
    for (size_t rank = row * perCell; rank < std::min(ranks, (row + 1) * perCell); ++rank)
      for (size_t peer = column * perCell; peer < std::min(ranks, (column + 1) * perCell); ++peer)
        if (rank != peer) {
          share += double(ring.plan->step(rank, peer).columns) / double(ring.layout.rowsOf(peer));
          ++pairs;
        }
    const int x = kMargin + int(column) * side, y = top + int(row) * side;
    if (pairs == 0)
      return rect(x, y, side, kOwn);
    std::string words;
    if (perCell == 1 && share > 0)
      words = "rank " + std::to_string(row) + " takes " + counted(ring.plan->step(row, column).columns, "key") +
              " of rank " + std::to_string(column) + ", " + bytesText(bytesOf(row, column));
    rect(x, y, side, fillOf(share / double(pairs)), words);
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

  int legend(int y) {
    auto entry = [&](const char *fill, const char *words) {
      rect(kMargin, y, kSwatch, fill);
      label(kMargin + kSwatch + 6, y + kSwatch - 2, kTextSize, words);
      y += kLine + 2;
    };
    for (const Share &share : kShares)
      entry(share.fill, share.words);
    entry(kOwn, "a rank's own keys");
    return y;
  }

  using WideInt = attn::WideInt;
  const PatternFile &file;
  const RingRequest &request;
  const RingPlan &ring;
  size_t ranks, perCell, cells;
  int side;
  std::string text;
};

} // namespace

std::string ringSvg(const PatternFile &file, const RingRequest &request, const RingPlan &ring) {
  return MatrixWriter(file, request, ring).write();
}

} // namespace heddle::views
