//===- StridedCells.h - every n-th cell -------------------------*- C++ -*-===//
// Owns the list of the cells of one residue class, the same for every query cell: how tiles find key blocks at a
// stride. Nothing asks it for single pairs, which a mask knows itself. The device's text is
// codegen/Skeletons/strided_cells.cuh.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_GEOMETRY_STRIDEDCELLS_H
#define HEDDLE_DIALECT_GEOMETRY_STRIDEDCELLS_H

#include "dialect/Geometry/CellList.h"

#include <memory>

namespace heddle::attn {

/// Arguments: modulus > 0, residue, first, end: the cells c with first <= c < end and c = residue mod modulus.
std::shared_ptr<const ListRule> stridedCells();

/// What generated code calls on the host (ListCalls.h).
int32_t stridedCellsNext(int32_t modulus, int32_t residue, int32_t first, int32_t end, int32_t row, int32_t from);

} // namespace heddle::attn

#endif
