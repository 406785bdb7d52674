// Owns what `heddle show` draws: for each group of heads that look alike a grid of cells over queries and keys.
// Small problems show every pair. Larger ones show cells of whole tiles; what a cell says is sound: nothing is kept
// in a skipped cell, everything in a full one.
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "compiler/Io/OperandTensor.h"

#include <algorithm>
#include <functional>
#include <map>

namespace heddle::views {

enum class Cell : uint8_t {
  Skipped, ///< no pair is kept
  Partial, ///< some pairs are kept; a kernel evaluates the mask there
  Lattice, ///< every pair of a residue class is kept and no other: dense for a kernel that loads at a stride
  Full,    ///< every pair is kept
  Twice,   ///< every pair is kept by two branches or more, and counts as often
  // Where two patterns are drawn, Full keeps the same pairs in both, Skipped none in either.
  OnlyFirst,  ///< the first keeps pairs here that the second does not, and not the other way round
  OnlySecond, ///< the other way round
  Differs     ///< each keeps pairs that the other does not
};
/// In the order of legends.
inline constexpr Cell kCells[] = {Cell::Full,      Cell::Twice,      Cell::Lattice, Cell::Partial,
                                  Cell::OnlyFirst, Cell::OnlySecond, Cell::Differs, Cell::Skipped};

/// Row-major cells; cell (r, c) covers queries [r * cellRows, (r + 1) * cellRows) and keys likewise, as far as they
/// exist.
struct Grid {
  int64_t rows = 0, columns = 0, cellRows = 1, cellColumns = 1;
  std::vector<Cell> cells;
  Cell at(int64_t row, int64_t column) const { return cells[row * columns + column]; }
  bool uses(Cell cell) const { return std::find(cells.begin(), cells.end(), cell) != cells.end(); }
};

struct Panel {
  std::vector<int64_t> heads; ///< ascending; they look alike
  Grid grid;
  std::optional<double> density; ///< kept pairs / (seqlen_q * seqlen_k) of one of these heads, branches added
};

struct Picture {
  std::string title;
  attn::ProblemSizes sizes;
  bool showsPairs = false; ///< every cell is one pair
  bool isMasked = false;   ///< partial cells may keep nothing
  std::vector<Panel> panels;
  std::string first, second;         ///< what the two patterns are called, if the picture compares two
  std::vector<std::string> invented; ///< tensors that nobody gave: "cu (documents)"

  bool comparesTwo() const { return !first.empty(); }
  bool uses(Cell cell) const {
    return std::any_of(panels.begin(), panels.end(), [&](const Panel &panel) { return panel.grid.uses(cell); });
  }
};

struct PictureRequest {
  attn::ProblemSizes sizes;
  std::optional<int64_t> head; ///< only this one
  attn::TileShape tile;        ///< cells are multiples of it, unless every pair is shown
  int64_t maxRows = 128, maxColumns = 128;
  Operands operands = {};                          ///< tensors that the pattern reads
  std::vector<std::string> invented = {};          ///< what those are called that nobody gave
  std::function<void(double share)> progress = {}; ///< how far it is, from 0 to 1
};

/// How cells of a kind look. No two kinds of a picture differ in hue alone: they differ in lightness as well, and where
/// two patterns are compared in hatching.
struct CellLook {
  const char *fill;  ///< "#rrggbb"
  const char *hatch; ///< a path in a square of kHatchSide, drawn over the fill; "" is none
  const char *glyph; ///< one column of a terminal
};
inline constexpr int kHatchSide = 6;
CellLook lookOf(Cell cell, const Picture &picture);

/// Fails if a pair has to be asked of the pattern's predicate and that has no form on this machine.
Result<Picture> draw(const PatternFile &file, const PictureRequest &request);

/// A standalone SVG 1.1 document.
std::string svg(const Picture &picture);
/// Block characters, at most 80 columns if maxColumns was at most 72.
std::string blockText(const Picture &picture);

/// "heads 0 to 3", "head 5", "heads 0, 2, 4".
std::string headsInWords(const std::vector<int64_t> &heads);
/// What a cell of this picture stands for.
std::string describe(Cell cell, const Picture &picture);
/// "Invented: cu (documents). Give yours ...", or "" if all tensors were given.
std::string inventedNote(const Picture &picture);
/// "name (size = 7)".
std::string titleOf(const PatternFile &file, const attn::ProblemSizes &sizes);

/// One panel for each group of heads that look alike. `painter.headValues(head)`: heads with equal ones do, and are
/// painted once, by `painter.paint(head, progress)`, which leaves the heads out.
template <class Painter> std::vector<Panel> paintHeads(Painter &&painter, const PictureRequest &request) {
  std::vector<Panel> panels;
  std::map<std::vector<int64_t>, size_t> known;
  const int64_t first = request.head.value_or(0), end = request.head ? *request.head + 1 : request.sizes.heads;
  for (int64_t head = first; head < end; ++head) {
    const auto [place, isNew] = known.try_emplace(painter.headValues(head), panels.size());
    if (isNew) {
      Panel panel = painter.paint(head, [&](double share) {
        if (request.progress)
          request.progress((double(head - first) + share) / double(end - first));
      });
      const auto alike = std::find_if(panels.begin(), panels.end(), [&](const Panel &other) {
        return other.grid.cells == panel.grid.cells && other.density == panel.density;
      });
      place->second = size_t(alike - panels.begin());
      if (alike == panels.end())
        panels.push_back(std::move(panel));
    }
    panels[place->second].heads.push_back(head);
  }
  return panels;
}

} // namespace heddle::views
