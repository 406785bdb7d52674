//===- cells_at_stride_test.cpp - lists in closed form ----------------------===//
// Lists of cells at a stride, from 0 on and from the query's own: the analysis, the host's next cell and the device's
// text agree with the definition.
//===----------------------------------------------------------------------===//
#include "dialect/Geometry/CellList.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>

using heddle::attn::kNoCell;

#define DEV inline
using std::max;
#include "codegen/Skeletons/Shared/near_cells.cuh"
#include "codegen/Skeletons/Shared/strided_cells.cuh"

namespace {

const int32_t kNearby = 90; // cells about 0 that are asked

int32_t leastFrom(const std::set<int64_t> &cells, int32_t from) {
  auto next = cells.lower_bound(from);
  return next == cells.end() ? kNoCell : static_cast<int32_t>(*next);
}

} // namespace

TEST_CASE("cells at a stride from the query's own") {
  for (int32_t step : {1, 2, 5, 64})
    for (auto [first, last] : {std::pair<int32_t, int32_t>{-3, 2}, {0, 0}, {2, 7}, {-9, -4}, {1, 0}})
      for (int32_t row : {-7, 0, 13}) {
        std::set<int64_t> expected, expectedRows;
        for (int64_t cell = -1000; cell <= 1000; ++cell) {
          if ((cell - row) % step == 0 && first <= (cell - row) / step && (cell - row) / step <= last)
            expected.insert(cell);
          if ((row - cell) % step == 0 && first <= (row - cell) / step && (row - cell) / step <= last)
            expectedRows.insert(cell); // of these query cells, key cell `row` is in the list
        }
        const std::vector<int64_t> cells(expected.begin(), expected.end()),
            rows(expectedRows.begin(), expectedRows.end());
        CHECK(heddle::attn::nearCells()->cells({step, first, last}, row) == cells);
        std::vector<heddle::attn::IntExpr> turned = {step, first, last};
        const auto inverse = heddle::attn::nearCells()->transposed(turned);
        CHECK(inverse->cells({*turned[0].constant(), *turned[1].constant(), *turned[2].constant()}, row) == rows);
        CHECK(heddle::attn::nearCells()->longest({step, first, last}) == int64_t(cells.size()));
        bool isSame = true;
        for (int32_t from = -kNearby; from <= kNearby; ++from) {
          isSame &= heddle::attn::nearCellsNext(step, first, last, row, from) == leastFrom(expected, from);
          isSame &= heddle::near_cells_next(step, first, last, row, from) == leastFrom(expected, from);
        }
        CHECK(isSame);
      }
}

TEST_CASE("cells of a residue class") {
  for (int32_t modulus : {2, 3, 64})
    for (auto [first, end] : {std::pair<int32_t, int32_t>{0, 40}, {-20, 33}, {5, 5}})
      for (int32_t residue : {0, 1}) {
        std::set<int64_t> expected;
        for (int64_t cell = first; cell < end; ++cell)
          if ((cell - residue) % modulus == 0)
            expected.insert(cell);
        const std::vector<int64_t> cells(expected.begin(), expected.end());
        CHECK(heddle::attn::stridedCells()->cells({modulus, residue, first, end}, 7) == cells);
        bool isSame = true;
        for (int32_t from = -kNearby; from <= kNearby; ++from) {
          isSame &= heddle::attn::stridedCellsNext(modulus, residue, first, end, 7, from) == leastFrom(expected, from);
          isSame &= heddle::strided_cells_next(modulus, residue, first, end, 7, from) == leastFrom(expected, from);
        }
        CHECK(isSame);
      }
}
