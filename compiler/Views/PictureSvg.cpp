// Places follow from the text: titles, labels and legends are broken into lines, and what is below moves down, so that
// nothing is cut off or drawn over (tests/unit/picture_text_test.cpp measures every text).
#include "compiler/Views/Picture.h"
#include "compiler/Views/SvgText.h"
#include "runtime/Core/CountText.h"

#include <cstdio>

namespace heddle::views {

namespace {

constexpr double kSide = 300, kLeastSide = 8, kLeastColumn = 190, kLeastContent = 420, kGap = 36;
constexpr int kPanelSize = 12, kAxisSize = 10;
constexpr double kSwatch = 12, kSwatchGap = 5, kLegendGap = 18, kLegendRow = 18;

std::string number(double value) { return svgNumber(value); }

std::string hatchName(Cell cell) { return "hatch" + std::to_string(int(cell)); }

std::string panelWords(const Panel &panel) {
  std::string words = headsInWords(panel.heads);
  if (panel.density) {
    char density[48];
    std::snprintf(density, sizeof density, ", density %.3g %%", *panel.density * 100);
    words += density;
  }
  return words;
}

/// "keys 0 to 4095".
std::string axisWords(const char *what, int64_t count) {
  return count > 1 ? std::string(what) + " 0 to " + std::to_string(count - 1) : std::string(what) + " 0";
}

class SvgWriter : SvgPage {
public:
  explicit SvgWriter(const Picture &picture) : picture(picture) {
    const size_t panels = std::max<size_t>(picture.panels.size(), 1);
    perRow = std::min<size_t>(panels, 3);
    const double longest = double(std::max({picture.sizes.seqlenQ, picture.sizes.seqlenK, int64_t(1)}));
    width = std::max(kSide * double(picture.sizes.seqlenK) / longest, kLeastSide);
    height = std::max(kSide * double(picture.sizes.seqlenQ) / longest, kLeastSide);
    column = std::max(width, kLeastColumn);
    content = std::max(double(perRow) * column + double(perRow - 1) * kGap, kLeastContent);
  }

  std::string write() {
    double y = paragraph(16, kTitleSize, picture.title, kBold) + 2;
    y = paragraph(y, kTextSize, subtitle(), kMuted);
    if (const std::string note = inventedNote(picture); !note.empty())
      y = paragraph(y, kTextSize, note, kMuted);
    for (size_t first = 0; first < picture.panels.size(); first += perRow)
      y = panels(first, y + 10);
    const double bottom = legend(y + 14) + 8;
    return document(picture.title, bottom, hatches());
  }

private:
  std::string subtitle() const {
    std::string words = counted(picture.sizes.seqlenQ, "query") + ", " + counted(picture.sizes.seqlenK, "key");
    if (picture.showsPairs || picture.panels.empty())
      return words;
    const Grid &grid = picture.panels[0].grid;
    return words + "; one cell is " + grouped(grid.cellRows) + " x " + grouped(grid.cellColumns) +
           (picture.isMasked ? ", partial cells may keep nothing" : "");
  }

  /// The value of an attribute `fill`.
  std::string fillOf(Cell cell) const {
    const CellLook look = lookOf(cell, picture);
    return *look.hatch ? "url(#" + hatchName(cell) + ")" : std::string(look.fill);
  }

  std::string hatches() const {
    std::string patterns;
    const std::string side = std::to_string(kHatchSide);
    for (Cell cell : kCells)
      if (const CellLook look = lookOf(cell, picture); *look.hatch && picture.uses(cell))
        patterns += "<pattern id=\"" + hatchName(cell) + "\" width=\"" + side + "\" height=\"" + side +
                    "\" patternUnits=\"userSpaceOnUse\"><rect width=\"" + side + "\" height=\"" + side + "\" fill=\"" +
                    look.fill + "\"/><path d=\"" + look.hatch +
                    "\" stroke=\"#000000\" stroke-opacity=\"0.55\" stroke-width=\"0.9\"/></pattern>\n";
    return patterns.empty() ? "" : "<defs>\n" + patterns + "</defs>\n";
  }

  /// One row of panels below `top`; where it ends.
  double panels(size_t first, double top) {
    const size_t end = std::min(first + perRow, picture.panels.size());
    double grids = top;
    for (size_t i = first; i < end; ++i)
      grids = std::max(grids, paragraph({columnOf(i), top, column}, kPanelSize, panelWords(picture.panels[i])));
    grids += lineHeight(kAxisSize) + 3;
    for (size_t i = first; i < end; ++i)
      panel(picture.panels[i], columnOf(i), grids);
    return grids + height + lineHeight(kAxisSize);
  }

  double columnOf(size_t panel) const { return kMargin + double(panel % perRow) * (column + kGap); }

  void panel(const Panel &panel, double x, double top) {
    label(x, top - 4, kAxisSize, axisWords("keys", picture.sizes.seqlenK) + " \u2192", kMuted);
    text += "<g shape-rendering=\"crispEdges\">\n";
    rect({x, top, width}, height, "fill=\"" + fillOf(Cell::Skipped) + "\"");
    for (Cell cell : kCells)
      if (cell != Cell::Skipped)
        cells(panel.grid, cell, x, top);
    text += "</g>\n";
    if (picture.showsPairs)
      rulers(panel.grid, x, top);
    rect({x, top, width}, height, "fill=\"none\" stroke=\"#888888\"");
    label(x, top + height + 12, kAxisSize, axisWords("queries", picture.sizes.seqlenQ) + " \u2193", kMuted);
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
      path +=
          "M" + number(left) + " " + number(from) + "H" + number(right) + "V" + number(to) + "H" + number(left) + "Z";
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
      text += "<path fill=\"" + fillOf(cell) + "\" d=\"" + path + "\"/>\n";
  }

  /// Thin white lines between pairs, where those are wide enough to be told apart.
  void rulers(const Grid &grid, double x, double y) {
    double perRow = height / double(std::max<int64_t>(grid.rows, 1)),
           perColumn = width / double(std::max<int64_t>(grid.columns, 1));
    if (perRow < 4 || perColumn < 4)
      return;
    std::string path;
    for (int64_t row = 1; row < grid.rows; ++row)
      path += "M" + number(x) + " " + number(y + double(row) * perRow) + "h" + number(width);
    for (int64_t column = 1; column < grid.columns; ++column)
      path += "M" + number(x + double(column) * perColumn) + " " + number(y) + "v" + number(height);
    text += "<path stroke=\"#ffffff\" stroke-width=\"0.6\" fill=\"none\" d=\"" + path + "\"/>\n";
  }

  /// In rows, as many to a row as fit; where the last one ends.
  double legend(double y) {
    double x = kMargin, below = y;
    const double indent = kSwatch + kSwatchGap;
    for (Cell cell : kCells) {
      if (!picture.uses(cell))
        continue;
      const std::string words = describe(cell, picture);
      const double needed = std::min(indent + textWidth(words, kTextSize), content);
      if (x > kMargin && x + needed > kMargin + content) {
        x = kMargin;
        y = below;
      }
      rect({x, y, kSwatch}, kSwatch, "fill=\"" + fillOf(cell) + "\" stroke=\"#888888\" stroke-width=\"0.5\"");
      below =
          std::max(below, std::max(paragraph({x + indent, y - 1, content - indent}, kTextSize, words), y + kLegendRow));
      x += needed + kLegendGap;
    }
    return below;
  }

  const Picture &picture;
  size_t perRow;
  double width, height, column;
};

} // namespace

std::string svg(const Picture &picture) { return SvgWriter(picture).write(); }

} // namespace heddle::views
