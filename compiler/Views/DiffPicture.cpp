//===- DiffPicture.cpp - drawing where two patterns disagree ------------------===//
#include "compiler/Views/KeptRows.h"
#include "compiler/Views/PatternDiff.h"
#include "runtime/Core/CountText.h"

namespace heddle::views {

using namespace heddle::attn;

namespace {

int64_t ceilDivide(int64_t value, int64_t unit) { return (value + unit - 1) / unit; }

class DiffPainter {
public:
  static Result<DiffPainter> create(const DiffSide &first, const DiffSide &second, const PictureRequest &request) {
    HEDDLE_ASSIGN(KeptRows a, KeptRows::create(first.file, first.sizes, first.operands));
    HEDDLE_ASSIGN(KeptRows b, KeptRows::create(second.file, second.sizes, second.operands));
    return DiffPainter(std::move(a), std::move(b), request);
  }

  Panel paint(int64_t head) {
    Panel panel{{head}, empty, std::nullopt};
    std::vector<Seen> seen(panel.grid.columns);
    for (int64_t row = 0; row < sizes.seqlenQ; ++row) {
      look(head, row, panel.grid.cellColumns, seen);
      if ((row + 1) % panel.grid.cellRows != 0 && row + 1 != sizes.seqlenQ)
        continue;
      for (Seen &cell : seen)
        panel.grid.cells.push_back(cell.cell());
      seen.assign(seen.size(), {});
    }
    return panel;
  }

private:
  /// What was seen in a cell so far.
  struct Seen {
    bool both = false, onlyFirst = false, onlySecond = false;
    Cell cell() const {
      if (onlyFirst && onlySecond)
        return Cell::Differs;
      return onlyFirst ? Cell::OnlyFirst : onlySecond ? Cell::OnlySecond : both ? Cell::Full : Cell::Skipped;
    }
  };

  DiffPainter(KeptRows first, KeptRows second, const PictureRequest &request)
      : first(std::move(first)), second(std::move(second)), sizes(request.sizes) {
    empty.cellRows = std::max<int64_t>(ceilDivide(sizes.seqlenQ, request.maxRows), 1);
    empty.cellColumns = std::max<int64_t>(ceilDivide(sizes.seqlenK, request.maxColumns), 1);
    empty.rows = ceilDivide(sizes.seqlenQ, empty.cellRows);
    empty.columns = ceilDivide(sizes.seqlenK, empty.cellColumns);
  }

  void look(int64_t head, int64_t row, int64_t cellColumns, std::vector<Seen> &seen) {
    first.read(head, row, left);
    second.read(head, row, right);
    for (size_t j = 0; j < left.size(); ++j) {
      Seen &cell = seen[j / cellColumns];
      cell.both |= left[j] && right[j];
      cell.onlyFirst |= left[j] && !right[j];
      cell.onlySecond |= !left[j] && right[j];
    }
  }

  KeptRows first, second;
  std::vector<uint16_t> left, right;
  ProblemSizes sizes;
  Grid empty;
};

} // namespace

Result<Picture> drawDifference(const DiffSide &first, const DiffSide &second, const PictureRequest &request) {
  const ProblemSizes &sizes = request.sizes;
  const WideInt pairs = WideInt(request.head ? 1 : sizes.heads) * sizes.seqlenQ * sizes.seqlenK;
  if (pairs > kMostComparedPairs)
    return Status::unsupported("a picture asks for every pair, and " + grouped(pairs) + " are more than the " +
                               grouped(kMostComparedPairs) + " that are compared one by one; take a smaller --seqlen");
  Picture picture{"a: " + titleOf(first.file, first.sizes) + ", b: " + titleOf(second.file, second.sizes),
                  sizes,
                  false,
                  false,
                  {},
                  "a",
                  "b",
                  request.invented};
  HEDDLE_ASSIGN(DiffPainter painter, DiffPainter::create(first, second, request));
  picture.panels = paintHeads(painter, request);
  picture.showsPairs = sizes.seqlenQ <= request.maxRows && sizes.seqlenK <= request.maxColumns;
  return picture;
}

} // namespace heddle::views
