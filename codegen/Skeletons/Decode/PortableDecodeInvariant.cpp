//===- PortableDecodeInvariant.cpp - host half of portable_decode_invariant.cuh ------------------------------===//
//
// Owns what the skeleton adds to that of decode, whose knobs, constraints and kernel it has: the states
// that parts of units leave in the workspace. Change it together with invariant_parts.cuh.
//
//===----------------------------------------------------------------------===//
#include "codegen/Config/KernelRequest.h"
#include "codegen/Skeletons/Decode/DecodeConfig.h"
#include "codegen/Skeletons/Decode/decode_layout.cuh"
#include "codegen/Skeletons/Shared/Family.h"
#include "codegen/Skeletons/Shared/Registry.h"
#include "codegen/Skeletons/Shared/Sibling.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {
namespace {

using Symbol = LaunchSymbol;

class PortableDecodeInvariant final : public Sibling<KindBase::decodeInvariant, portableDecodeSkeleton> {
public:
  PortableDecodeInvariant() : Sibling("portable_decode_invariant") {}
  LaunchPlan planLaunch(const KernelRequest &request, const KernelConfig &config) const override;

protected:
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

// Units have at most as many parts as there are blocks for each kv head; rows of a sequence are at most all of them.
LaunchPlan PortableDecodeInvariant::planLaunch(const KernelRequest &request, const KernelConfig &given) const {
  const DecodeConfig config(ofOther(given));
  LaunchPlan plan = Sibling::planLaunch(request, given);
  KernelLaunch &launch = plan.launches.front();
  const LaunchExpr kvHeads = max(LaunchExpr(Symbol::kvHeads), 1);
  const LaunchExpr parts = max(ceilDiv(launch.grid[0], kvHeads), decode::kFanIn);
  const LaunchExpr slots = ceilDiv(parts, decode::kFanIn) + (decode::kFanIn + decode::kSumsOfBlock);
  const LaunchExpr packed = LaunchExpr(Symbol::seqlenQ) * ceilDiv(Symbol::heads, kvHeads);
  const LaunchExpr groups = min(max(ceilDiv(packed, decode::kRows), 1), config.warps);
  const LaunchExpr slotBytes = groups * decode::blockStateBytes(request.valueDim, config.warps);
  plan.regions.back().bytes = launch.grid[0] * slots * slotBytes;
  launch.appendI64(slots);
  launch.appendI64(slotBytes);
  return plan;
}

} // namespace

const Skeleton &portableDecodeInvariantSkeleton() { return theOnly<PortableDecodeInvariant>(); }

} // namespace heddle
