// Owns how values of bytes that lie row by row come to lie key-major: in the workspace, where each is turned over once, for
// all blocks. Change it together with turned_values.cuh.
#pragma once

#include "codegen/Skeletons/Forward/Sm90Config.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Skeletons/Shared/TensorMapLaunch.h"

namespace heddle {

/// There is something to turn over.
bool sm90CanTurn(const KernelRequest &request);

/// Values reach the consumers key-major, from the caller or from the workspace.
bool sm90AreKeyMajor(const KernelRequest &request, const Sm90Config &config);

/// Says where the last launch keeps them, and its marks.
void planTurnedValues(LaunchPlan &plan, const KernelRequest &request, OperandCopies &copies);

} // namespace heddle
