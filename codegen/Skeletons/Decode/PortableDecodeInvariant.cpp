//===- PortableDecodeInvariant.cpp - host half of portable_decode_invariant.cuh ------------------------------===//
//
// Owns what the skeleton adds to that of decode, whose knobs, constraints and kernel it has: the states
// that parts of units leave in the workspace. Change it together with invariant_parts.cuh.
//
//===----------------------------------------------------------------------===//
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Decode/DecodeConfig.h"
#include "codegen/Skeletons/Decode/TeamLaunch.h"
#include "codegen/Skeletons/Decode/decode_layout.cuh"
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/Sibling.h"
#include "runtime/Core/LaunchPlan.h"

#include <algorithm>

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

class PortableDecodeInvariant final : public Sibling<KindBase::decodeInvariant, portableDecodeSkeleton> {
public:
  PortableDecodeInvariant() : Sibling("portable_decode_invariant") {}
  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override;
  std::string traits(const KernelRequest &request, const KernelConfig &config) const override {
    return Sibling::traits(request, config) +
           (hasTeamKernel(request) ? teamTraits(request, DecodeConfig(ofOther(config))) : "");
  }

protected:
  std::vector<KernelEntry> entries(const KernelRequest &request, const KernelConfig &config) const override {
    std::vector<KernelEntry> all = Sibling::entries(request, config);
    if (hasTeamKernel(request))
      all.push_back(teamEntry());
    return all;
  }
  Status checkRequest(const KernelRequest &request) const override;
};

Status PortableDecodeInvariant::checkRequest(const KernelRequest &request) const {
  HEDDLE_TRY(Sibling::checkRequest(request));
  if (request.valueDim > request.headDim)
    return Status::unsupported("serves values of at most as many dims as keys, not " +
                               std::to_string(request.valueDim) + " beside " + std::to_string(request.headDim) +
                               "; kind decode serves these");
  return {};
}

// Of a unit that visits all keys of a sequence: line_parts.cuh.
LaunchExpr teamsOfUnit(const KernelRequest &request, const DecodeConfig &config) {
  const int64_t keys = std::max<int64_t>(decode::kPartKeys, config.blockN());
  const int64_t branches = std::max<int64_t>(1, request.branchCount());
  const LaunchExpr parts = (ceilDiv(LaunchExpr(Symbol::pageSize) * Symbol::maxPages, keys) + 1) * branches;
  LaunchExpr teams = min(ceilDiv(parts, decode::kFanIn), decode::kFirstParts / decode::kFanIn);
  for (int64_t first = decode::kFirstParts; first * decode::kPartKeys < decode::kMostKeys; first *= 2)
    teams = teams + min(max(parts - first, 0), 1) * (decode::kPartsOfOctave / decode::kFanIn);
  return max(teams, 1);
}

// Rows of a sequence are at most all of them.
LaunchPlan PortableDecodeInvariant::planLaunch(const KernelRequest &request, const KernelConfig &given) const {
  const DecodeConfig config(ofOther(given));
  LaunchPlan plan = Sibling::planLaunch(request, given);
  KernelLaunch &launch = plan.launches.front();
  const LaunchExpr slots = teamsOfUnit(request, config) + (decode::kFanIn + decode::kSumsOfBlock);
  const LaunchExpr packed = LaunchExpr(Symbol::seqlenQ) * ceilDiv(Symbol::heads, max(LaunchExpr(Symbol::kvHeads), 1));
  const LaunchExpr halves = min(max(ceilDiv(packed, decode::kRows / 2), 1), 2 * config.warps); // of groups
  const LaunchExpr slotBytes = halves * decode::blockHalfBytes(request.valueDim, config.warps);
  plan.regions.back().bytes = launch.grid[0] * slots * slotBytes;
  launch.appendI64(slots);
  launch.appendI64(slotBytes);
  if (hasTeamKernel(request))
    appendTeamLaunch(plan, request, config);
  return plan;
}

} // namespace

const Skeleton &portableDecodeInvariantSkeleton() { return theOnly<PortableDecodeInvariant>(); }

} // namespace heddle
