#include "compiler/Views/PatternDiff.h"
#include "dialect/Geometry/RowRuns.h"

#include <algorithm>

namespace heddle::views {

using namespace heddle::attn;

namespace {

int64_t ceilDivide(int64_t value, int64_t unit) { return floorDivide(value + unit - 1, unit); }

/// What was seen in the cells of a row of cells.
class CellRow {
public:
  explicit CellRow(const Grid &grid) : cellColumns(grid.cellColumns), seen(grid.columns) {}

  void see(int64_t key, bool isInFirst, bool isInSecond) { seen[key / cellColumns] |= flagOf(isInFirst, isInSecond); }

  void see(const AlikeRows &rows, const KeyStretch &stretch) {
    const uint8_t flag = flagOf(stretch.copies[0] > 0, stretch.copies[1] > 0);
    const int64_t first = stretch.residue + stretch.rate * leastOf(rows, stretch.begin);
    const int64_t last = stretch.residue + stretch.rate * (-leastOf(rows, negated(stretch.end)) - 1);
    for (int64_t cell = first / cellColumns; cell <= last / cellColumns; ++cell)
      if (!(seen[cell] & flag) && reaches(rows, stretch, cell))
        seen[cell] |= flag;
  }

  void appendTo(std::vector<Cell> &cells) const {
    for (uint8_t flags : seen)
      cells.push_back(cellOf(flags));
  }

private:
  static constexpr uint8_t kBoth = 1, kFirst = 2, kSecond = 4;

  static uint8_t flagOf(bool isInFirst, bool isInSecond) {
    return isInFirst && isInSecond ? kBoth : isInFirst ? kFirst : isInSecond ? kSecond : 0;
  }
  static Cell cellOf(uint8_t flags) {
    if ((flags & kFirst) && (flags & kSecond))
      return Cell::Differs;
    return flags & kFirst ? Cell::OnlyFirst : flags & kSecond ? Cell::OnlySecond : flags ? Cell::Full : Cell::Skipped;
  }
  static SweepNumber negated(const SweepNumber &number) { return {-number.value, -number.slope, -number.turn}; }
  /// The least of all these rows.
  static int64_t leastOf(const AlikeRows &rows, const SweepNumber &number) {
    return number.value + std::min<int64_t>(number.slope * (rows.steps - 1), 0) +
           std::min<int64_t>(number.turn * (rows.turns - 1), 0);
  }
  /// The steps at which value + slope * step <= limit, of all there are.
  static IndexRange stepsUpTo(int64_t limit, int64_t value, int64_t slope, int64_t steps) {
    if (slope == 0)
      return {0, value <= limit ? steps : 0};
    if (slope > 0)
      return {0, std::min(steps, floorDivide(limit - value, slope) + 1)};
    return {std::max<int64_t>(0, ceilDivide(value - limit, -slope)), steps};
  }
  /// Whether a row has a key of the stretch, whose runs are not empty, in the cell.
  bool reaches(const AlikeRows &rows, const KeyStretch &stretch, int64_t cell) const {
    const int64_t begin = ceilDivide(cell * cellColumns - stretch.residue, stretch.rate),
                  end = ceilDivide((cell + 1) * cellColumns - stretch.residue, stretch.rate);
    for (int64_t turn = 0; begin < end && turn < rows.turns; ++turn) {
      const IndexRange before =
          stepsUpTo(end - 1, stretch.begin.value + stretch.begin.turn * turn, stretch.begin.slope, rows.steps);
      const IndexRange behind =
          stepsUpTo(-begin - 1, -stretch.end.value - stretch.end.turn * turn, -stretch.end.slope, rows.steps);
      if (std::max(before.begin, behind.begin) < std::min(before.end, behind.end))
        return true;
    }
    return false;
  }

  int64_t cellColumns;
  std::vector<uint8_t> seen;
};

/// `Rows` says who keeps what in a row of cells.
template <class Rows> class DiffPainter {
public:
  DiffPainter(Rows &rows, const PictureRequest &request) : rows(rows), sizes(request.sizes) {
    empty.cellRows = std::max<int64_t>(ceilDivide(sizes.seqlenQ, request.maxRows), 1);
    empty.cellColumns = std::max<int64_t>(ceilDivide(sizes.seqlenK, request.maxColumns), 1);
    empty.rows = ceilDivide(sizes.seqlenQ, empty.cellRows);
    empty.columns = ceilDivide(sizes.seqlenK, empty.cellColumns);
  }

  std::vector<int64_t> headValues(int64_t head) const { return rows.headValues(head); }

  template <class Progress> Panel paint(int64_t head, Progress progress) {
    Panel panel{{}, empty, std::nullopt};
    for (int64_t row = 0; row < empty.rows; ++row) {
      progress(double(row) / double(empty.rows));
      CellRow cells(empty);
      look(head, {row * empty.cellRows, std::min((row + 1) * empty.cellRows, sizes.seqlenQ)}, cells);
      cells.appendTo(panel.grid.cells);
    }
    return panel;
  }

  bool isCutShort = false; ///< what was painted means nothing

private:
  void look(int64_t head, IndexRange range, CellRow &cells) {
    if constexpr (std::is_same_v<Rows, RowRuns>) {
      isCutShort |= !rows.visit(head, range, [&](const AlikeRows &alike) {
        for (const KeyStretch &stretch : alike.stretches)
          cells.see(alike, stretch);
      });
    } else {
      for (int64_t row = range.begin; row < range.end; ++row)
        rows.forEachKey(head, row, [&](int64_t key, int64_t left, int64_t right) { cells.see(key, left, right); });
    }
  }

  Rows &rows;
  const ProblemSizes &sizes;
  Grid empty;
};

} // namespace

Result<Picture> drawDifference(const DiffSide &first, const DiffSide &second, const PictureRequest &request,
                               const PairEffort &effort) {
  const ProblemSizes &sizes = request.sizes;
  Picture picture{"a: " + titleOf(first.file, first.sizes) + ", b: " + titleOf(second.file, second.sizes),
                  sizes,
                  false,
                  false,
                  {},
                  "a",
                  "b",
                  request.invented};
  picture.showsPairs = sizes.seqlenQ <= request.maxRows && sizes.seqlenK <= request.maxColumns;
  std::optional<RowRuns> runs =
      RowRuns::create({first.file.analysis(), first.sizes}, {second.file.analysis(), second.sizes});
  if (runs) {
    DiffPainter painter(*runs, request);
    picture.panels = paintHeads(painter, request);
    if (!painter.isCutShort)
      return picture;
  }
  HEDDLE_ASSIGN(RowPairs rows, RowPairs::create(first, second, request.head, effort, runs.has_value()));
  DiffPainter painter(rows, request);
  picture.panels = paintHeads(painter, request);
  return picture;
}

} // namespace heddle::views
