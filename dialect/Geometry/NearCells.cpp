// Cells at a stride from the query's own.
#include "dialect/Geometry/CellList.h"
#include "dialect/Geometry/ExprProgram.h"

#include <algorithm>
#include <tuple>

namespace heddle::attn {
namespace {

class NearCells : public ListRule {
public:
  const char *name() const override { return "near_cells"; }
  const char *deviceFile() const override { return "Shared/near_cells.cuh"; }
  bool movesWithRow() const override { return true; }

  std::shared_ptr<const ListRule> transposed(std::vector<IntExpr> &arguments) const override {
    arguments = {arguments[0], IntExpr(0) - arguments[2], IntExpr(0) - arguments[1]};
    return nearCells();
  }

  std::vector<int64_t> cells(const std::vector<int64_t> &arguments, int64_t row, const TensorData *) const override {
    const auto [step, first, last] = std::tie(arguments[0], arguments[1], arguments[2]);
    std::vector<int64_t> cells;
    for (int64_t m = first; m <= last; ++m)
      cells.push_back(row + m * step);
    return cells;
  }

  int64_t longest(const std::vector<int64_t> &arguments, const TensorData *) const override {
    return std::max<int64_t>(arguments[2] - arguments[1] + 1, 0);
  }

  std::string inWords(const std::vector<int64_t> &arguments, const std::string &cells) const override {
    return cells + " from " + std::to_string(arguments[1]) + " to " + std::to_string(arguments[2]) + " steps of " +
           std::to_string(arguments[0]) + " after the query's";
  }
};

} // namespace

std::shared_ptr<const ListRule> nearCells() {
  static const auto rule = std::make_shared<const NearCells>();
  return rule;
}

int32_t nearCellsNext(int32_t step, int32_t first, int32_t last, int32_t row, int32_t from) {
  const int64_t m = std::max<int64_t>(first, -floorDivide(int64_t(row) - from, step));
  return m <= last ? static_cast<int32_t>(row + m * step) : kNoCell;
}

} // namespace heddle::attn
