//===- PictureSvg.cpp - a picture as SVG ---------------------------------------===//
// Colours differ in lightness as well as in hue, so that they are told apart in grey and by colour-blind readers.
//===----------------------------------------------------------------------===//
#include "compiler/Views/Picture.h"

#include <cstdio>

namespace heddle::views {

namespace {

constexpr double kSide = 300, kGap = 36, kLeft = 46, kTop = 64, kPanelTop = 44, kBelow = 26, kLegend = 34;

const char *colour(Cell cell) {
  switch (cell) {
  case Cell::Skipped: return "#eeeeee";
  case Cell::Partial: return "#f0a202";
  case Cell::Lattice: return "#6fb1e0";
  case Cell::Full: return "#1b4f8a";
  case Cell::Twice: return "#0a1a33";
  case Cell::OnlyFirst: return "#d1495b";
  case Cell::OnlySecond: return "#2e9e6b";
  case Cell::Differs: return "#f0a202";
  }
  return "#ffffff";
}

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text) {
    switch (c) {
    case '&': result += "&amp;"; break;
    case '<': result += "&lt;"; break;
    case '>': result += "&gt;"; break;
    case '"': result += "&quot;"; break;
    default: result += c;
    }
  }
  return result;
}

/// Shortest text with at most two decimals.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string result = text;
  while (result.back() == '0')
    result.pop_back();
  if (result.back() == '.')
    result.pop_back();
  return result;
}

class SvgWriter {
public:
  explicit SvgWriter(const Picture &picture) : picture(picture) {
    size_t panels = std::max<size_t>(picture.panels.size(), 1);
    perRow = std::min<size_t>(panels, 3);
    bands = (panels + perRow - 1) / perRow;
    double longest = double(std::max({picture.sizes.seqlenQ, picture.sizes.seqlenK, int64_t(1)}));
    width = kSide * double(picture.sizes.seqlenK) / longest;
    height = kSide * double(picture.sizes.seqlenQ) / longest;
    band = kPanelTop + height + kBelow;
  }

  std::string write() {
    double totalWidth = std::max(kLeft + perRow * std::max(width, 150.0) + (perRow - 1) * kGap + 24, 460.0);
    double totalHeight = kTop + bands * band + kLegend;
    text = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(totalWidth) + " " + number(totalHeight) +
           "\" width=\"" + number(totalWidth) + "\" height=\"" + number(totalHeight) +
           "\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"#222222\">\n<title>" + escaped(picture.title) +
           "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    label(kLeft, 30, 18, picture.title, "start", " font-weight=\"bold\"");
    label(kLeft, 50, 12, subtitle(), "start", " fill=\"#555555\"");
    for (size_t i = 0; i < picture.panels.size(); ++i)
      panel(picture.panels[i], kLeft + double(i % perRow) * (std::max(width, 150.0) + kGap), kTop + double(i / perRow) * band);
    legend(kTop + bands * band + 6);
    return text + "</svg>\n";
  }

private:
  std::string subtitle() const {
    std::string words = std::to_string(picture.sizes.seqlenQ) + " queries, " + std::to_string(picture.sizes.seqlenK) + " keys";
    if (picture.showsPairs || picture.panels.empty())
      return words;
    const Grid &grid = picture.panels[0].grid;
    return words + "; one cell is " + std::to_string(grid.cellRows) + " x " + std::to_string(grid.cellColumns) +
           (picture.isMasked ? ", partial cells may keep nothing" : "");
  }

  void label(double x, double y, int size, const std::string &words, const char *anchor, const std::string &more = "") {
    text += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" font-size=\"" + std::to_string(size) +
            "\" text-anchor=\"" + anchor + "\"" + more + ">" + escaped(words) + "</text>\n";
  }

  void rect(double x, double y, double w, double h, const std::string &fill) {
    text += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(w) + "\" height=\"" + number(h) +
            "\" " + fill + "/>\n";
  }

  void panel(const Panel &panel, double x, double y) {
    std::string words = headsInWords(panel.heads);
    if (panel.density) {
      char density[48];
      std::snprintf(density, sizeof density, ", density %.3g %%", *panel.density * 100);
      words += density;
    }
    label(x, y + 20, 13, words, "start");
    double top = y + kPanelTop;
    text += "<g shape-rendering=\"crispEdges\">\n";
    rect(x, top, width, height, std::string("fill=\"") + colour(Cell::Skipped) + "\"");
    for (Cell cell : kCells)
      if (cell != Cell::Skipped)
        cells(panel.grid, cell, x, top);
    text += "</g>\n";
    if (picture.showsPairs)
      rulers(panel.grid, x, top);
    rect(x, top, width, height, "fill=\"none\" stroke=\"#888888\"");
    label(x, top - 5, 10, "keys \u2192", "start", " fill=\"#555555\"");
    if (x == kLeft) {
      label(x - 6, top + 9, 10, "0", "end", " fill=\"#555555\"");
      label(x - 6, top + height, 10, std::to_string(picture.sizes.seqlenQ), "end", " fill=\"#555555\"");
    }
    label(x + width, top + height + 13, 10, std::to_string(picture.sizes.seqlenK), "end", " fill=\"#555555\"");
    label(x, top + height + 13, 10, "queries \u2193", "start", " fill=\"#555555\"");
  }

  /// One path per class: runs of a row that the row above starts and ends alike grow downward.
  void cells(const Grid &grid, Cell cell, double x, double y) {
    struct Run {
      int64_t begin, end, top;
    };
    std::vector<Run> open;
    std::string path;
    double perRow = height * double(grid.cellRows) / double(picture.sizes.seqlenQ);
    double perColumn = width * double(grid.cellColumns) / double(picture.sizes.seqlenK);
    auto close = [&](const Run &run, int64_t bottom) {
      double left = x + double(run.begin) * perColumn, right = std::min(x + double(run.end) * perColumn, x + width);
      double from = y + double(run.top) * perRow, to = std::min(y + double(bottom) * perRow, y + height);
      path += "M" + number(left) + " " + number(from) + "H" + number(right) + "V" + number(to) + "H" + number(left) + "Z";
    };
    for (int64_t row = 0; row <= grid.rows; ++row) {
      std::vector<Run> now;
      for (int64_t c = 0; row < grid.rows && c < grid.columns; ++c) {
        if (grid.at(row, c) != cell)
          continue;
        int64_t begin = c;
        while (c < grid.columns && grid.at(row, c) == cell)
          ++c;
        now.push_back({begin, c, row});
      }
      for (const Run &run : open) {
        auto same = std::find_if(now.begin(), now.end(),
                                 [&](const Run &other) { return other.begin == run.begin && other.end == run.end; });
        if (same != now.end())
          same->top = run.top;
        else
          close(run, row);
      }
      open = std::move(now);
    }
    if (!path.empty())
      text += std::string("<path fill=\"") + colour(cell) + "\" d=\"" + path + "\"/>\n";
  }

  /// Thin white lines between pairs, where those are wide enough to be told apart.
  void rulers(const Grid &grid, double x, double y) {
    double perRow = height / double(std::max<int64_t>(grid.rows, 1)), perColumn = width / double(std::max<int64_t>(grid.columns, 1));
    if (perRow < 4 || perColumn < 4)
      return;
    std::string path;
    for (int64_t row = 1; row < grid.rows; ++row)
      path += "M" + number(x) + " " + number(y + double(row) * perRow) + "h" + number(width);
    for (int64_t column = 1; column < grid.columns; ++column)
      path += "M" + number(x + double(column) * perColumn) + " " + number(y) + "v" + number(height);
    text += "<path stroke=\"#ffffff\" stroke-width=\"0.6\" fill=\"none\" d=\"" + path + "\"/>\n";
  }

  void legend(double y) {
    double x = kLeft;
    for (Cell cell : kCells) {
      if (!picture.uses(cell))
        continue;
      rect(x, y, 12, 12, std::string("fill=\"") + colour(cell) + "\" stroke=\"#888888\" stroke-width=\"0.5\"");
      std::string words = describe(cell, picture);
      label(x + 17, y + 10, 11, words, "start");
      x += 17 + 6.2 * double(words.size()) + 18;
    }
  }

  const Picture &picture;
  size_t perRow, bands;
  double width, height, band;
  std::string text;
};

} // namespace

std::string svg(const Picture &picture) { return SvgWriter(picture).write(); }

} // namespace heddle::views
