// Owns how values of bytes that lie row by row come to lie key-major: in the workspace, where a launch before turns them
// over. Change it together with turned_values.cuh.
#pragma once

#include "codegen/Skeletons/Forward/Sm90Config.h"
#include "codegen/Skeletons/Shared/Skeleton.h"

namespace heddle {

/// There is something to turn over.
bool sm90CanTurn(const KernelRequest &request);

/// Values reach the kernel key-major, from the caller or from the launch before.
bool sm90AreKeyMajor(const KernelRequest &request, const Sm90Config &config);

/// Appends the launch, and what it writes.
PointerSource appendTurnedValues(LaunchPlan &plan, const KernelRequest &request);
KernelEntry turnValuesEntry();

} // namespace heddle
