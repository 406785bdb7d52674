#include "compiler/Views/Picture.h"
#include "runtime/Core/CountText.h"

#include <cstdio>

namespace heddle::views {

namespace {

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
        text += lookOf(panel.grid.at(row, column), picture).glyph;
    text += "\n";
  }
  return text;
}

} // namespace

std::string blockText(const Picture &picture) {
  std::string text = folded(picture.title + ": " + counted(picture.sizes.seqlenQ, "query") + " down, " +
                            counted(picture.sizes.seqlenK, "key") + " across");
  if (const std::string note = inventedNote(picture); !note.empty())
    text += folded(note);
  for (const Panel &panel : picture.panels)
    text += panelText(picture, panel, picture.showsPairs && panel.grid.columns <= 36 ? 2 : 1);
  std::string legend;
  for (Cell cell : kCells)
    if (picture.uses(cell))
      legend += std::string(legend.empty() ? "" : "   ") + lookOf(cell, picture).glyph + " " + describe(cell, picture);
  text += folded(legend);
  if (!picture.showsPairs && !picture.panels.empty())
    text += "one cell is " + counted(picture.panels[0].grid.cellRows, "query") + " x " +
            counted(picture.panels[0].grid.cellColumns, "key") +
            (picture.isMasked ? "; partial cells may keep nothing" : "") + "\n";
  return text;
}

} // namespace heddle::views
