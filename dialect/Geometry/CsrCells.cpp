#include "dialect/Geometry/CellList.h"

#include <map>
#include <memory>

namespace heddle::attn {
namespace {

/// One list, with the tensors that hold it.
class Rows {
public:
  Rows(const std::vector<int64_t> &arguments, const TensorData *tensors)
      : tensors(tensors), offsets(unsigned(arguments[0])), indices(unsigned(arguments[1])),
        first(arguments[2] * arguments[3]), count(arguments[3] - 1), entries(arguments[4]) {}

  int64_t size() const { return count; }

  template <class Visit> void forEach(int64_t row, Visit visit) const {
    if (row < 0 || row >= count)
      return;
    const int64_t begin = std::max<int64_t>(entryOf(tensors, offsets, first + row), 0);
    const int64_t end = std::min(entryOf(tensors, offsets, first + row + 1), entries);
    for (int64_t place = begin; place < end; ++place)
      visit(entryOf(tensors, indices, place));
  }

private:
  const TensorData *tensors;
  unsigned offsets, indices;
  int64_t first, count, entries;
};

class CsrCells : public ListRule {
public:
  explicit CsrCells(bool isTransposed) : isTransposed(isTransposed) {}

  const char *name() const override { return isTransposed ? kCsrCellsTransposed : kCsrCells; }
  const char *deviceFile() const override { return nullptr; }
  std::shared_ptr<const ListRule> transposed(std::vector<IntExpr> &) const override { return of(!isTransposed); }

  static std::shared_ptr<const ListRule> of(bool isTransposed) {
    static const std::shared_ptr<const ListRule> rules[] = {std::make_shared<CsrCells>(false),
                                                            std::make_shared<CsrCells>(true)};
    return rules[isTransposed];
  }

  std::vector<int64_t> cells(const std::vector<int64_t> &arguments, int64_t row,
                             const TensorData *tensors) const override {
    const Rows rows(arguments, tensors);
    std::vector<int64_t> cells;
    if (!isTransposed)
      rows.forEach(row, [&](int64_t cell) { cells.push_back(cell); });
    for (int64_t other = 0; isTransposed && other < rows.size(); ++other)
      rows.forEach(other, [&](int64_t cell) {
        if (cell == row)
          cells.push_back(other);
      });
    return cells;
  }

  int64_t longest(const std::vector<int64_t> &arguments, const TensorData *tensors) const override {
    const Rows rows(arguments, tensors);
    std::map<int64_t, int64_t> lengths;
    int64_t most = 0;
    for (int64_t row = 0; row < rows.size(); ++row)
      rows.forEach(row, [&](int64_t cell) { most = std::max(most, ++lengths[isTransposed ? cell : row]); });
    return most;
  }

  std::string inWords(const std::vector<int64_t> &, const std::string &cells) const override {
    return "the " + cells + " that tensors name for the query's";
  }

private:
  bool isTransposed; ///< cells are those of rows that name the row
};

} // namespace

std::shared_ptr<const ListRule> csrCells() { return CsrCells::of(/*isTransposed=*/false); }

} // namespace heddle::attn
