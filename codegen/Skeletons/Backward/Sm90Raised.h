// Owns how floats come to Hopper's backward kernel: as pairs of fp16, or as their big numbers alone, in the workspace, which
// a launch before the walks makes. Change it together with raise_rows.cuh and sm90_raised_rows.cuh.
#pragma once

#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Backward/BackwardLaunch.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"

namespace heddle {

/// Rows of q, k, v and d_out are floats, which are raised.
bool isRaised(const KernelRequest &request);

/// Bytes of a tile of so many rows.
int64_t backwardTileBytes(const KernelRequest &request, int64_t rows, int64_t dim);
/// What products are of.
ProductTraits backwardProduct(const KernelRequest &request);

/// What the launch writes: rows, and what they are to be multiplied by.
struct RaisedRows {
  PointerSource q, dOut, k, v, queryFactors, outFactors, keyFactors;
};

/// Appends the launch, the first of the plan, whose results live through launch `last`.
RaisedRows appendRaiseRows(BackwardPlan &to, int64_t last);
KernelEntry raiseRowsEntry();
/// Constants of raise_rows.cuh.
void printRaiseRows(TraitsPrinter &printer, const KernelRequest &request);

/// `operand`, as the launch writes it.
MapOperand raisedOperand(const KernelRequest &request, MapOperand operand, const PointerSource &copy);
/// The records of keys in tiles of `boxRows`.
MapOperand keyFactorOperand(const RaisedRows &rows, int64_t boxRows);

} // namespace heddle
