// What the skeleton of batch-invariant decode has beside its kernel where a GPU has clusters: a kernel for calls of few units
// (team_decode.cuh), which such calls launch in its place. Bits are the same.
#pragma once

#include "codegen/Skeletons/Decode/DecodeConfig.h"
#include "codegen/Skeletons/Shared/Skeleton.h"

namespace heddle {

struct KernelRequest;
struct LaunchPlan;

/// The pattern has one lattice, and the architecture clusters with room for two tiles.
bool hasTeamKernel(const KernelRequest &request);

/// The functions from here on are of requests that have it.
KernelEntry teamEntry();
/// A struct that differs from KernelTraits, which precedes it, in its numbers.
std::string teamTraits(const KernelRequest &request, const DecodeConfig &config);
/// Behind the only launch of a plan, whose workspace it uses; each has blocks where the other one has none. Configurations with
/// other slices or parts than the kernel's get none.
void appendTeamLaunch(LaunchPlan &plan, const KernelRequest &request, const DecodeConfig &config);

} // namespace heddle
