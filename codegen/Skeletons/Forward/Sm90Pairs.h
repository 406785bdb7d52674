// Owns how exact floats come to Hopper's forward kernel: as pairs of fp16 in the workspace, which a launch before it makes.
// Change it together with pair_rows.cuh and float_pairs.cuh.
#pragma once

#include "codegen/Config/TraitsPrinter.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"

namespace heddle {

/// Products of `request` are of pairs.
bool sm90MakesPairs(const KernelRequest &request);

/// What tiles hold of each row of q and k, and of v; and what products are of.
struct Sm90Tiles {
  int64_t headDim, valueDim, bytes;
  ProductTraits product;
};
Sm90Tiles sm90Tiles(const KernelRequest &request);

/// Appends the launch that makes pairs, and what it writes.
PairedOperands appendPairRows(LaunchPlan &plan, const KernelRequest &request);
KernelEntry pairRowsEntry();
/// Constants of pair_rows.cuh.
void printPairRows(TraitsPrinter &printer, const KernelRequest &request);

} // namespace heddle
