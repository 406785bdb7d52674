//===- Sm90Defaults.h - what the Hopper skeleton begins with ----------------------------------===//
#ifndef HEDDLE_CODEGEN_SKELETONS_SM90DEFAULTS_H
#define HEDDLE_CODEGEN_SKELETONS_SM90DEFAULTS_H

#include "codegen/Skeletons/Sm90Config.h"

namespace heddle {

// long rows of all heads first: what they leave to others is shared early
inline constexpr int64_t kAllHeadsMib = 4096;
inline constexpr int64_t kDefaultSplitTiles = 96; // of 48, 64, 96 and 128 the fastest on global rows of 32k keys

/// Feasible for every request that applies; fields that follow from others are not yet derived.
Sm90Config sm90Default(const KernelRequest &request);

/// Takes back choices that other fields do not allow.
void sm90TakeBack(Sm90Config &config);

} // namespace heddle

#endif // HEDDLE_CODEGEN_SKELETONS_SM90DEFAULTS_H
