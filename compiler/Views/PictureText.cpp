//===- PictureText.cpp - a picture in the terminal -----------------------------===//
#include "compiler/Views/Picture.h"

#include <cstdio>

namespace heddle::views {

namespace {

const char *glyph(Cell cell) {
  switch (cell) {
  case Cell::Skipped: return "\u00b7";
  case Cell::Partial: return "\u2592";
  case Cell::Lattice: return "\u2593";
  case Cell::Full: return "\u2588";
  case Cell::Twice: return "#";
  case Cell::OnlyFirst: return "a";
  case Cell::OnlySecond: return "b";
  case Cell::Differs: return "x";
  }
  return "?";
}

constexpr size_t kWidest = 80;

/// Breaks a line at blanks so that nothing is wider than the terminal; later lines are indented.
std::string folded(const std::string &line) {
  std::string text, rest = line;
  while (rest.size() > kWidest) {
    size_t at = rest.rfind(' ', kWidest);
    if (at == std::string::npos || at < 4)
      break;
    text += rest.substr(0, at) + "\n";
    rest = "    " + rest.substr(at + 1);
  }
  return text + rest + "\n";
}

std::string panelText(const Picture &picture, const Panel &panel, int width) {
  std::string text = headsInWords(panel.heads);
  if (panel.density) {
    char density[32];
    std::snprintf(density, sizeof density, ", density %.4g %%", *panel.density * 100);
    text += density;
  }
  text += "\n";
  for (int64_t row = 0; row < panel.grid.rows; ++row) {
    text += "  ";
    for (int64_t column = 0; column < panel.grid.columns; ++column)
      for (int i = 0; i < width; ++i)
        text += glyph(panel.grid.at(row, column));
    text += "\n";
  }
  return text;
}

} // namespace

std::string blockText(const Picture &picture) {
  std::string text = folded(picture.title + ": " + std::to_string(picture.sizes.seqlenQ) + " queries down, " +
                            std::to_string(picture.sizes.seqlenK) + " keys across");
  for (const Panel &panel : picture.panels)
    text += panelText(picture, panel, picture.showsPairs && panel.grid.columns <= 36 ? 2 : 1);
  std::string legend;
  for (Cell cell : kCells)
    if (picture.uses(cell))
      legend += std::string(legend.empty() ? "" : "   ") + glyph(cell) + " " + describe(cell, picture);
  text += folded(legend);
  if (!picture.showsPairs && !picture.panels.empty())
    text += "one cell is " + std::to_string(picture.panels[0].grid.cellRows) + " queries x " +
            std::to_string(picture.panels[0].grid.cellColumns) + " keys" +
            (picture.isMasked ? "; partial cells may keep nothing" : "") + "\n";
  return text;
}

} // namespace heddle::views
