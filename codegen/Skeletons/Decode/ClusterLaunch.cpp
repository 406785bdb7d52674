//===- ClusterLaunch.cpp - host half of cluster_decode.cuh -------------------------------------===//
//
// Owns the shape and the shared-memory plan of the kernel by clusters. Change it together with cluster_layout.cuh.
//
//===----------------------------------------------------------------------===//
#include "codegen/Skeletons/Decode/ClusterLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Decode/FewUnits.h"
#include "codegen/Skeletons/Decode/cluster_layout.cuh"
#include "codegen/Skeletons/Decode/decode_layout.cuh"
#include "codegen/Skeletons/Shared/BlockLimits.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {
namespace {

constexpr int64_t kWordBytes = sizeof(uint32_t);
/// Two tiles of 64 keys, d = 128: with three, one of 4k keys takes 10.3 us for 9.9, lists of one sequence 20.9 for 20.6 (H200).
constexpr int64_t kBytesUnderWay = 1 << 16;

/// Keys of a warp in a tile: as many bytes whatever the elements.
int64_t chunkN(const KernelRequest &request) {
  constexpr int64_t kWideBytes = 2;
  return decode::kClusterTile * kWideBytes / traitsOf(request.elements.k).bytes / decode::kClusterWarps;
}

SmemLayout layoutWith(const KernelRequest &request, int64_t stages) {
  const int64_t blockN = chunkN(request) * decode::kClusterWarps;
  SmemLayout layout;
  layout.append("q", decode::kRows * rowBytes(request, request.headDim));
  layout.append("k", blockN * keyRowBytes(request, request.headDim), stages);
  layout.append("v", blockN * keyRowBytes(request, request.valueDim), stages);
  layout.append("slices", decode::kClusterBlocks * decode::kSliceBytes);
  layout.append("barrier", 8);
  return layout;
}

FewUnits unitsOf(const KernelRequest &request) {
  return {request,
          {decode::kClusterWarps, decode::kClusterBlocks, decode::kClusterBlocksOfSm, decode::kClusterRows,
           decode::kMostClusters, decode::kMostClusterKeys, kBytesUnderWay},
          [&request](int64_t stages) { return layoutWith(request, stages); }};
}

} // namespace

bool hasClusterKernel(const KernelRequest &request) {
  return request.kind.base == KindBase::decode && unitsOf(request).areServed();
}

KernelEntry clusterEntry() {
  return {"heddle_cluster_kernel", "heddle::ClusterDecode<ClusterTraits, Pattern>", decode::kClusterBlocks};
}

std::string clusterTraits(const KernelRequest &request, const DecodeConfig &config) {
  return unitsOf(request).traits("Cluster", config, chunkN(request));
}

void appendClusterLaunch(LaunchPlan &plan, const KernelRequest &request) {
  const FewUnits units = unitsOf(request);
  units.appendLaunch(plan, clusterEntry().name);
  ClearSpec &ofOther = plan.launches.front().clears.front(), &own = plan.launches.back().clears.front();
  const LaunchExpr words =
      units.clusters() * (decode::kClusterBlocks * decode::kClusterWarps * decode::kClusterRecordBytes / kWordBytes);
  ofOther.words = ofOther.words * (LaunchExpr(1) - units.isServed());
  own.words = words * units.isServed();
  WorkspaceRegion &zeros = plan.regions[size_t(own.target.index)];
  zeros.bytes = max(zeros.bytes, words * kWordBytes);
}

} // namespace heddle
