// What the skeleton of decode has beside its kernel where a GPU has clusters: a kernel for calls of few units
// (cluster_decode.cuh), which such calls launch in its place.
#pragma once

#include "codegen/Skeletons/Decode/DecodeConfig.h"
#include "codegen/Skeletons/Shared/Skeleton.h"

namespace heddle {

struct KernelRequest;
struct LaunchPlan;

/// The pattern has one lattice, and the architecture clusters with room for two tiles.
bool hasClusterKernel(const KernelRequest &request);

/// The functions from here on are of requests that have it.
KernelEntry clusterEntry();
/// A struct that differs from KernelTraits, which precedes it, in its numbers.
std::string clusterTraits(const KernelRequest &request, const DecodeConfig &config);
/// Behind the only launch of a plan; each has blocks where the other one has none.
void appendClusterLaunch(LaunchPlan &plan, const KernelRequest &request);

} // namespace heddle
