//===- Picture.h - a pattern as a grid of cells ------------------------------===//
// Owns what `heddle show` draws: for each group of heads that look alike a grid of cells over queries and keys.
// Small problems show every pair. Larger ones show cells of whole tiles; what a cell says is sound: nothing is kept
// in a skipped cell, everything in a full one.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_VIEWS_PICTURE_H
#define HEDDLE_COMPILER_VIEWS_PICTURE_H

#include "compiler/Driver/PatternFile.h"

#include <algorithm>

namespace heddle::views {

enum class Cell : uint8_t {
  Skipped, ///< no pair is kept
  Partial, ///< some pairs are kept; a kernel evaluates the mask there
  Lattice, ///< every pair of a residue class is kept and no other: dense for a kernel that loads at a stride
  Full,    ///< every pair is kept
  Twice    ///< every pair is kept by two branches or more, and counts as often
};

/// Row-major cells; cell (r, c) covers queries [r * cellRows, (r + 1) * cellRows) and keys likewise, as far as they
/// exist.
struct Grid {
  int64_t rows = 0, columns = 0, cellRows = 1, cellColumns = 1;
  std::vector<Cell> cells;
  Cell at(int64_t row, int64_t column) const { return cells[row * columns + column]; }
  bool uses(Cell cell) const { return std::find(cells.begin(), cells.end(), cell) != cells.end(); }
};

struct Panel {
  std::vector<int64_t> heads;     ///< ascending; they look alike
  Grid grid;
  std::optional<double> density;  ///< kept pairs / (seqlen_q * seqlen_k) of one of these heads, branches added
};

struct Picture {
  std::string title;
  attn::ProblemSizes sizes;
  bool showsPairs = false;        ///< every cell is one pair
  bool isMasked = false;          ///< partial cells may keep nothing
  std::vector<Panel> panels;
};

struct PictureRequest {
  attn::ProblemSizes sizes;
  std::optional<int64_t> head;    ///< only this one
  attn::TileShape tile;           ///< cells are multiples of it, unless every pair is shown
  int64_t maxRows = 128, maxColumns = 128;
};

/// Fails if a pair has to be asked of the pattern's predicate and that has no form on this machine.
Result<Picture> draw(const PatternFile &file, const PictureRequest &request);

/// A standalone SVG 1.1 document.
std::string svg(const Picture &picture);
/// Block characters, at most 80 columns if maxColumns was at most 72.
std::string blockText(const Picture &picture);

/// "heads 0 to 3", "head 5", "heads 0, 2, 4".
std::string headsInWords(const std::vector<int64_t> &heads);
std::string describe(Cell cell, bool showsPairs);

} // namespace heddle::views

#endif
