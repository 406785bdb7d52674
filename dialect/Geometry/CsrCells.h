//===- CsrCells.h - lists of key cells from tensors -------------*- C++ -*-===//
// Owns the lists of attn.csr on the host: row r of list l names entries offsets[l * rows + r] to offsets[l * rows + r +
// 1] - 1 of the indices, where `rows` is one more than there are rows. Generated code has its own text
// (dialect/IR/CsrFunctions.cpp).
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_DIALECT_GEOMETRY_CSRCELLS_H
#define HEDDLE_DIALECT_GEOMETRY_CSRCELLS_H

#include "dialect/Geometry/CellList.h"

namespace heddle::attn {

inline constexpr const char *kCsrCells = "csr_cells", *kCsrCellsTransposed = "csr_cells_transposed";

/// Arguments: the tensors of offsets and of indices, the number of the list, offsets of a list, indices in all. What
/// lies beyond the tensors is in no row.
std::shared_ptr<const ListRule> csrCells();

} // namespace heddle::attn

#endif
