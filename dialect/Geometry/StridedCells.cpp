#include "dialect/Geometry/CellList.h"

#include <algorithm>
#include <tuple>

namespace heddle::attn {
namespace {

int64_t floorMod(int64_t a, int64_t modulus) { return (a % modulus + modulus) % modulus; }

class StridedCells : public ListRule {
public:
  const char *name() const override { return "strided_cells"; }
  const char *deviceFile() const override { return "Shared/strided_cells.cuh"; }
  bool dependsOnRow() const override { return false; }

  std::vector<int64_t> cells(const std::vector<int64_t> &arguments, int64_t, const TensorData *) const override {
    const auto [modulus, residue, first, end] = std::tie(arguments[0], arguments[1], arguments[2], arguments[3]);
    std::vector<int64_t> cells;
    for (int64_t cell = first + floorMod(residue - first, modulus); cell < end; cell += modulus)
      cells.push_back(cell);
    return cells;
  }

  int64_t longest(const std::vector<int64_t> &arguments, const TensorData *) const override {
    return std::max<int64_t>(arguments[3] - arguments[2], 0) / arguments[0] + 1;
  }

  std::string inWords(const std::vector<int64_t> &arguments, const std::string &cells) const override {
    return cells + " = " + std::to_string(arguments[1]) + " mod " + std::to_string(arguments[0]);
  }
};

} // namespace

std::shared_ptr<const ListRule> stridedCells() {
  static const auto rule = std::make_shared<const StridedCells>();
  return rule;
}

int32_t stridedCellsNext(int32_t modulus, int32_t residue, int32_t first, int32_t end, int32_t, int32_t from) {
  const int64_t least = std::max(first, from), cell = least + floorMod(int64_t(residue) - least, modulus);
  return cell < end ? static_cast<int32_t>(cell) : kNoCell;
}

} // namespace heddle::attn
