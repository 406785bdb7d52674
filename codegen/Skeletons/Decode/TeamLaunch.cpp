//===- TeamLaunch.cpp - host half of team_decode.cuh -------------------------------------------===//
//
// Owns the shape and the shared-memory plan of the batch-invariant kernel by clusters. Change it together with team_layout.cuh.
//
//===----------------------------------------------------------------------===//
#include "codegen/Skeletons/Decode/TeamLaunch.h"
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Decode/FewUnits.h"
#include "codegen/Skeletons/Decode/team_layout.cuh"
#include "codegen/Skeletons/Shared/BlockLimits.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr int64_t kBarrierBytes = 8;
/// 1M of 4 kv heads: 1k keys in such tables take 9.7 us, 20.4 by the kernel for other calls, but long sequences of 8 kv heads want all
/// processors, which clusters do not reach: 16k 32 and 33, 64k 95 and 86, 1M 1,270 and 992 (H200).
constexpr int64_t kMostKeys = 1 << 22;
constexpr int64_t kBytesUnderWay = 1 << 17;

/// Keys of a warp in a tile: as many bytes whatever the elements.
int64_t chunkN(const KernelRequest &request) {
  constexpr int64_t kChunk = 16, kWideBytes = 2;
  return kChunk * kWideBytes / traitsOf(request.elements.k).bytes;
}
int64_t blockN(const KernelRequest &request) { return chunkN(request) * decode::kTeamWarps; }

SmemLayout layoutWith(const KernelRequest &request, int64_t stages) {
  SmemLayout layout;
  layout.append("q", decode::kRows * rowBytes(request, request.headDim));
  layout.append("k", blockN(request) * keyRowBytes(request, request.headDim), stages);
  layout.append("v", blockN(request) * keyRowBytes(request, request.valueDim), stages);
  layout.append("slices", decode::kTeamBuffers * decode::kTeamBlocks * decode::kTeamSliceBytes);
  layout.append("words", decode::wordBytes<int64_t>(decode::kTeamWarps, chunkN(request)));
  layout.append("barrier", decode::kTeamBuffers * kBarrierBytes);
  return layout;
}

FewUnits unitsOf(const KernelRequest &request) {
  return {request,
          {decode::kTeamWarps, decode::kTeamBlocks, decode::kTeamBlocksOfSm, decode::kTeamRows,
           decode::kMostTeamClusters, kMostKeys, kBytesUnderWay},
          [&request](int64_t stages) { return layoutWith(request, stages); }};
}

/// Keys of the first parts.
int64_t partKeys(int64_t blockN) { return std::max<int64_t>(decode::kPartKeys, blockN); }

} // namespace

bool hasTeamKernel(const KernelRequest &request) {
  return request.kind.base == KindBase::decodeInvariant && unitsOf(request).areServed();
}

KernelEntry teamEntry() {
  return {"heddle_team_kernel", "heddle::TeamDecode<TeamTraits, Pattern>", decode::kTeamBlocks};
}

std::string teamTraits(const KernelRequest &request, const DecodeConfig &config) {
  return unitsOf(request).traits("Team", config, chunkN(request));
}

void appendTeamLaunch(LaunchPlan &plan, const KernelRequest &request, const DecodeConfig &config) {
  if (config.chunkN == chunkN(request) && partKeys(config.blockN()) == partKeys(blockN(request)))
    unitsOf(request).appendLaunch(plan, teamEntry().name);
}

} // namespace heddle
