// Owns how the kernels of a pattern's passes become one launch plan: the carry between them lies in the caller's
// workspace, as regions that live from the pass that writes them to the one that reads them. Every kernel but the first
// continues what the one before it left; the last one writes the results. All passes of some rows come before those of
// the next rows, so that the carry does not grow with the sequence.
#pragma once

#include "codegen/Config/Constraint.h"
#include "codegen/Config/ForwardConfig.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {

/// The field of families that chain.
inline constexpr const char *kChainedField = "chained_mib";

/// MiB of the carry that are worth trying; 0: one kernel.
inline constexpr int64_t kChainedMib[] = {0, 32, 256};

/// What to begin with: 0, or enough that the kernels of most calls are launched once, where the passes visit a fraction
/// of the tiles (longvit_1k at 32k: 0.320 ms, 2.203 ms fused).
int64_t defaultChainedMib(const KernelRequest &request);

/// Rounds of rows begin at multiples of it: where the tiles of every class of every pass do.
int64_t roundStep(const KernelRequest &request, int64_t blockM);

/// `plans`: of the kernels of KernelRequest::passRequest, in order, each of one launch, as if there were no others.
/// Rounds have as many times `step` rows as fit `mib` MiB of carry, one at least.
LaunchPlan chainedPlan(const std::vector<LaunchPlan> &plans, int64_t step, int64_t mib);

/// Why configurations of the request cannot be chained; nothing if this one is not, or can be.
std::optional<std::string> checkChained(const KernelRequest &request, const ForwardConfig &config);

/// For skeletons that chain. The request has passes, or there is nothing to choose.
void appendChainedKnob(std::vector<Knob> &knobs, const KernelRequest &request, size_t group);

} // namespace heddle
