//===- NearCells.h - cells at a stride from the query's own -----*- C++ -*-===//
// Owns the list of the cells that lie a multiple of a step from a query cell, on both sides of it: blocks that are
// thinned out. Nothing asks it for single pairs, which a mask knows itself. The device's text is
// codegen/Skeletons/near_cells.cuh.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_GEOMETRY_NEARCELLS_H
#define HEDDLE_DIALECT_GEOMETRY_NEARCELLS_H

#include "dialect/Geometry/CellList.h"

#include <memory>

namespace heddle::attn {

/// Arguments: step > 0, first, last: the cells row + m * step with first <= m <= last.
std::shared_ptr<const ListRule> nearCells();

/// What generated code calls on the host (ListCalls.h).
int32_t nearCellsNext(int32_t step, int32_t first, int32_t last, int32_t row, int32_t from);

} // namespace heddle::attn

#endif
